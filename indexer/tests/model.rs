//! Tests with directories of models with made-up weights, for programs that are built with the embedder; run by `tests/embedder`.

#![cfg(feature = "embedder")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

#[path = "made_model/mod.rs"]
mod made;
// The embedder is not a member of the workspace, so these tests of one of its modules would not run there.
#[expect(dead_code, reason = "only its tests are used")]
#[path = "../../crates/embedder/src/math.rs"]
mod math;
mod reference;

use std::fs;
use std::path::Path;

use indexer::vectors::{check_embedder, open_embedder};
use tempfile::TempDir;

use made::{SPECIAL, Shape};

const TINY: Shape = Shape { layers: 2, width: 12, heads: 3, inner: 20, positions: 64, tokens: 16 };
/// Words of the tokenizers of the tests.
const WORDS: [&str; 9] = ["rent", "hire", "car", "vehicle", "blood", "pressure", "a", "of", "the"];

fn tiny_model() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    made::write(dir.path(), TINY, &WORDS, &made::random(TINY));
    dir
}

fn open_error(dir: &Path) -> String {
    open_embedder(dir).unwrap_err().to_string()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn the_error_names_the_missing_file_of_a_model() {
    let dir = tempfile::tempdir().unwrap();
    let error = open_error(dir.path());
    assert!(error.contains("config.json") && error.contains("model.safetensors"), "{error}");
    let complete = tiny_model();
    let config = fs::read_to_string(complete.path().join("config.json")).unwrap();
    for (config, words) in [
        ("{", "EOF"),
        (r#"{"model_type": "mpnet"}"#, "\"mpnet\" but only \"bert\" is supported"),
        (r#"{"model_type": "bert"}"#, "missing field"),
        (&config.replace("\"hidden_size\":12", "\"hidden_size\":4096"), "hidden_size is 4096"),
        (&config.replace("_heads\":3", "_heads\":0"), "num_attention_heads is 0"),
        (&config.replace("_layers\":2", "_layers\":49"), "num_hidden_layers is 49"),
        (&config.replace("\"gelu\"", "\"swish\""), "swish"),
        (&config.replace('{', "{\"position_embedding_type\":\"relative_key\","), "relative_key"),
    ] {
        fs::write(dir.path().join("config.json"), config).unwrap();
        let error = open_error(dir.path());
        assert!(error.contains(words) && error.contains("config.json"), "{error}");
    }
    fs::write(dir.path().join("config.json"), &config).unwrap();
    assert!(open_error(dir.path()).contains("tokenizer.json is missing"));
    fs::create_dir(dir.path().join("1_Pooling")).unwrap();
    fs::write(dir.path().join("1_Pooling/config.json"), r#"{"pooling_mode_cls_token": true}"#).unwrap();
    assert!(open_error(dir.path()).contains("mean pooling"));
    fs::write(dir.path().join("1_Pooling/config.json"), r#"{"pooling_mode_mean_tokens": true}"#).unwrap();
    fs::write(dir.path().join("tokenizer.json"), "[]").unwrap();
    assert!(open_error(dir.path()).contains("tokenizer.json cannot be used"));
    fs::copy(complete.path().join("tokenizer.json"), dir.path().join("tokenizer.json")).unwrap();
    assert!(open_error(dir.path()).contains("model.safetensors is missing"));
    fs::write(dir.path().join("config.json"), config.replace("\"vocab_size\":16", "\"vocab_size\":11"))
        .unwrap();
    assert!(open_error(dir.path()).contains("a token with the number 11"));
}

/// The template that adds tokens to each text has ids of its own.
#[test]
fn the_error_names_the_id_of_an_added_token_without_a_vector() {
    let dir = tiny_model();
    let file = dir.path().join("tokenizer.json");
    let sound = fs::read_to_string(&file).unwrap();
    assert!(sound.contains("\"ids\":[2]"), "{sound}");
    fs::write(&file, sound.replace("\"ids\":[2]", "\"ids\":[99]")).unwrap();
    let error = open_error(dir.path());
    assert!(error.contains("tokenizer.json") && error.contains("a token with the number 99"), "{error}");
}

#[test]
fn more_added_tokens_than_a_text_may_have_are_refused() {
    let dir = tiny_model();
    let file = dir.path().join("config.json");
    let sound = fs::read_to_string(&file).unwrap();
    fs::write(&file, sound.replace("\"max_position_embeddings\":64", "\"max_position_embeddings\":2"))
        .unwrap();
    let error = open_error(dir.path());
    assert!(error.contains("tokenizer.json") && error.contains("adds 2 tokens to each text"), "{error}");
}

#[test]
fn the_error_names_damaged_weights_and_weights_of_another_shape() {
    let dir = tiny_model();
    let weights = dir.path().join("model.safetensors");
    let sound = fs::read(&weights).unwrap();
    for damaged in [b"not at all".as_slice(), &sound[..sound.len() - 1]] {
        fs::write(&weights, damaged).unwrap();
        assert!(open_error(dir.path()).contains("model.safetensors cannot be used"));
    }
    let mut other = made::random(TINY);
    other.remove("encoder.layer.1.output.dense.bias");
    made::write(dir.path(), TINY, &WORDS, &other);
    assert!(open_error(dir.path()).contains("it has no encoder.layer.1.output.dense.bias"));
    made::write(dir.path(), TINY, &WORDS, &made::random(Shape { inner: 24, ..TINY }));
    let error = open_error(dir.path());
    assert!(error.contains("has the shape [24, 12] instead of [20, 12]"), "{error}");
}

#[test]
fn vectors_are_those_of_the_definition() {
    let weights = made::random(TINY);
    let dir = tempfile::tempdir().unwrap();
    made::write(dir.path(), TINY, &WORDS, &weights);
    let embedder = open_embedder(dir.path()).unwrap();
    let texts = ["rent a car", "blood", "", "the pressure of the blood of a vehicle", "Hire unknown Cars"];
    // embedded together, so that a vector must not depend on the other texts
    for (text, vector) in texts.iter().zip(embedder.embed(&texts).unwrap()) {
        let number = |word: &str| SPECIAL.iter().chain(&WORDS).position(|known| *known == word).unwrap_or(0);
        let inner = text.split_whitespace().map(|word| number(&word.to_lowercase()));
        let tokens: Vec<usize> = [1].into_iter().chain(inner).chain([2]).collect();
        let expected = reference::embedded(&weights, TINY, &tokens);
        for (value, expected) in vector.iter().zip(&expected) {
            assert!(
                (f64::from(*value) - expected).abs() < 1e-5,
                "{text}: {vector:?} instead of {expected:?}"
            );
        }
    }
}

/// The dimension of a word in the model of the next test; synonyms share one.
fn meaning(word: &str) -> usize {
    match word {
        "rent" | "hire" => 0,
        "car" | "vehicle" => 1,
        "blood" | "pressure" => 2,
        _ => 3,
    }
}

#[test]
fn similar_meanings_have_a_larger_cosine() {
    let weights = made::weights(TINY, |name, count| {
        let mut values = vec![if name.ends_with("LayerNorm.weight") { 1.0 } else { 0.0 }; count];
        if name == "embeddings.word_embeddings.weight" {
            for (token, word) in SPECIAL.iter().chain(&WORDS).enumerate() {
                values[token * TINY.width + meaning(word)] = 1.0;
            }
        }
        values
    });
    let dir = tempfile::tempdir().unwrap();
    made::write(dir.path(), TINY, &WORDS, &weights);
    let embedder = open_embedder(dir.path()).unwrap();
    let long = "a car of the blood ".repeat(5_000);
    let texts = ["rent a car", "hire of vehicle", "the blood pressure", &long, ""];
    let vectors = embedder.embed(&texts).unwrap();
    assert!(vectors.iter().all(|vector| vector.len() == embedder.dimension()));
    for vector in &vectors {
        assert!((cosine(vector, vector) - 1.0).abs() < 1e-3, "of length one");
    }
    assert!(cosine(&vectors[0], &vectors[1]) > 0.99, "{}", cosine(&vectors[0], &vectors[1]));
    assert!(cosine(&vectors[0], &vectors[2]) < 0.8, "{}", cosine(&vectors[0], &vectors[2]));
}

#[test]
fn the_identity_is_a_hash_of_the_files() {
    let (first, second) = (tiny_model(), tiny_model());
    let identity = |dir: &TempDir| open_embedder(dir.path()).unwrap().identity();
    assert_eq!(identity(&first), identity(&second));
    let shorter = Shape { positions: 32, ..TINY };
    made::write(second.path(), shorter, &WORDS, &made::random(shorter));
    assert_ne!(identity(&first), identity(&second));
}

#[test]
fn the_check_reports_kind_size_licence_and_speed() {
    let dir = tiny_model();
    fs::write(dir.path().join("README.md"), "---\nlanguage: en\nlicense: apache-2.0\n---\n# A model\n")
        .unwrap();
    fs::write(dir.path().join("LICENSE.txt"), "Apache License").unwrap();
    let report = check_embedder(dir.path()).unwrap();
    assert_eq!(report.problem, None);
    let row = |label: &str| report.rows.iter().find(|(found, _)| *found == label).unwrap().1.clone();
    assert_eq!(row("model"), "bert, 2 layers");
    assert_eq!(row("vectors"), "12 numbers");
    assert_eq!(row("texts"), "the first 64 tokens are read");
    assert_eq!(row("licence"), "LICENSE.txt; apache-2.0, says README.md");
    assert_eq!(row("missing"), "nothing");
    assert!(
        row("speed").contains(" ms per text of ") && row("speed").ends_with("on one core"),
        "{}",
        row("speed")
    );
}

#[test]
fn the_check_names_the_missing_files_and_the_reason() {
    let dir = tiny_model();
    fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
    fs::remove_file(dir.path().join("model.safetensors")).unwrap();
    let report = check_embedder(dir.path()).unwrap();
    assert!(report.rows.contains(&("missing", "tokenizer.json, model.safetensors".to_owned())));
    assert!(report.rows.contains(&("model", "bert, 2 layers".to_owned())));
    assert!(report.rows.iter().any(|(label, text)| *label == "licence" && text.starts_with("none found")));
    assert!(report.problem.unwrap().ends_with("has no tokenizer.json, no model.safetensors"));
    let other = tiny_model();
    fs::write(other.path().join("config.json"), r#"{"model_type": "mpnet"}"#).unwrap();
    let report = check_embedder(other.path()).unwrap();
    assert!(report.rows.contains(&("model", "mpnet".to_owned())), "{:?}", report.rows);
    assert!(report.problem.unwrap().contains("only \"bert\" is supported"));
    let absent = check_embedder(&other.path().join("nowhere")).unwrap();
    assert!(absent.problem.unwrap().contains("has no config.json, no tokenizer.json, no model.safetensors"));
}
