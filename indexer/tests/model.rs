//! Tests with model directories, for programs that are built with the embedder; run by `tests/embedder`.

#![cfg(feature = "embedder")]
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use indexer::vectors::open_embedder;

/// Directory of a complete model, set by `tests/embedder`.
#[expect(clippy::disallowed_methods, reason = "the only setting of these tests")]
fn model() -> PathBuf {
    PathBuf::from(
        std::env::var("AGENTDEX_TEST_EMBEDDER")
            .expect("AGENTDEX_TEST_EMBEDDER names no model: run tests/embedder"),
    )
}

fn open_error(dir: &Path) -> String {
    open_embedder(dir).unwrap_err().to_string()
}

const CONFIG: &str = r#"{"model_type": "bert", "vocab_size": 30522, "hidden_size": 384, "num_hidden_layers": 6,
    "num_attention_heads": 12, "intermediate_size": 1536, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "max_position_embeddings": 512, "type_vocab_size": 2, "initializer_range": 0.02, "layer_norm_eps": 1e-12,
    "pad_token_id": 0}"#;

#[test]
fn the_error_names_the_missing_file_of_a_model() {
    let dir = tempfile::tempdir().unwrap();
    let error = open_error(dir.path());
    assert!(error.contains("config.json") && error.contains("model.safetensors"), "{error}");
    for (config, word) in [
        ("{", "EOF"),
        (r#"{"model_type": "mpnet"}"#, "\"mpnet\" and this program runs \"bert\""),
        (r#"{"model_type": "bert"}"#, "missing field"),
        (&CONFIG.replace("384", "4096"), "hidden_size is 4096"),
        (
            &CONFIG.replace("\"num_attention_heads\": 12", "\"num_attention_heads\": 0"),
            "num_attention_heads is 0",
        ),
    ] {
        fs::write(dir.path().join("config.json"), config).unwrap();
        let error = open_error(dir.path());
        assert!(error.contains(word) && error.contains("config.json"), "{error}");
    }
    fs::write(dir.path().join("config.json"), CONFIG).unwrap();
    assert!(open_error(dir.path()).contains("tokenizer.json is missing"));
    fs::create_dir(dir.path().join("1_Pooling")).unwrap();
    fs::write(dir.path().join("1_Pooling/config.json"), r#"{"pooling_mode_cls_token": true}"#).unwrap();
    assert!(open_error(dir.path()).contains("mean pooling"));
    fs::write(dir.path().join("1_Pooling/config.json"), r#"{"pooling_mode_mean_tokens": true}"#).unwrap();
    fs::write(dir.path().join("tokenizer.json"), "[]").unwrap();
    assert!(open_error(dir.path()).contains("tokenizer.json cannot be used"));
}

#[test]
fn the_error_names_damaged_weights() {
    let model = model();
    let dir = tempfile::tempdir().unwrap();
    for name in ["config.json", "tokenizer.json"] {
        fs::copy(model.join(name), dir.path().join(name)).unwrap();
    }
    assert!(open_error(dir.path()).contains("model.safetensors is missing"));
    fs::write(dir.path().join("model.safetensors"), b"not at all").unwrap();
    assert!(open_error(dir.path()).contains("model.safetensors cannot be used"));
}

#[test]
fn similar_meanings_have_a_larger_cosine() {
    let model = model();
    let embedder = open_embedder(&model).unwrap();
    let long = "a seat on an aeroplane ".repeat(5_000);
    let texts = ["rent a car", "hire of vehicles by the day", "the blood pressure of a patient", &long, ""];
    let vectors = embedder.embed(&texts).unwrap();
    assert!(vectors.iter().all(|vector| vector.len() == embedder.dimension()));
    let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum::<f32>();
    for at in 0..texts.len() {
        assert!((cosine(at, at) - 1.0).abs() < 1e-3, "of length one");
    }
    assert!(cosine(0, 1) > 0.4, "{}", cosine(0, 1));
    assert!(cosine(0, 2) < 0.2, "{}", cosine(0, 2));
    let alone = &embedder.embed(&texts[..1]).unwrap()[0];
    let same: f32 = alone.iter().zip(&vectors[0]).map(|(a, b)| a * b).sum();
    assert!(same > 0.999, "a vector does not depend on the other texts of its batch: {same}");
    assert_eq!(open_embedder(&model).unwrap().identity(), embedder.identity());
}
