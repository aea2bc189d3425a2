//! Writes the files of models with made-up weights. Nothing is downloaded.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

/// The shape of a BERT.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) layers: usize,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) inner: usize,
    pub(crate) positions: usize,
    /// Number of tokens that the weights have vectors for.
    pub(crate) tokens: usize,
}

/// Tokens that every tokenizer has; the first is number 0.
pub(crate) const SPECIAL: [&str; 3] = ["[UNK]", "[CLS]", "[SEP]"];

/// The weights by the name of their tensor, each with its shape.
pub(crate) type Weights = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Makes every tensor of a shape from its name and its number of values.
pub(crate) fn weights(shape: Shape, mut values: impl FnMut(&str, usize) -> Vec<f32>) -> Weights {
    let Shape { layers, width, inner, positions, tokens, .. } = shape;
    let mut made = Weights::new();
    let mut add = |name: String, sizes: &[usize]| {
        let made_values = values(&name, sizes.iter().product());
        made.insert(name, (sizes.to_vec(), made_values));
    };
    for (name, rows) in [("word", tokens), ("position", positions), ("token_type", 2)] {
        add(format!("embeddings.{name}_embeddings.weight"), &[rows, width]);
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for layer in 0..layers {
        for (part, from, to) in [
            ("attention.self.query", width, width),
            ("attention.self.key", width, width),
            ("attention.self.value", width, width),
            ("attention.output.dense", width, width),
            ("intermediate.dense", width, inner),
            ("output.dense", inner, width),
        ] {
            add(format!("encoder.layer.{layer}.{part}.weight"), &[to, from]);
            add(format!("encoder.layer.{layer}.{part}.bias"), &[to]);
        }
        norms
            .extend(["attention.output", "output"].map(|at| format!("encoder.layer.{layer}.{at}.LayerNorm")));
    }
    for norm in norms {
        add(format!("{norm}.weight"), &[width]);
        add(format!("{norm}.bias"), &[width]);
    }
    made
}

/// Weights that look random: between -0.1 and 0.1, and around 1 where a norm scales.
pub(crate) fn random(shape: Shape) -> Weights {
    let mut state = 0x9e37_79b9_u32;
    weights(shape, |name, count| {
        let centre = if name.ends_with("LayerNorm.weight") { 1.0 } else { 0.0 };
        let next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            #[expect(clippy::cast_precision_loss, reason = "24 bits")]
            let unit = (state >> 8) as f32 / 8_388_608.0 - 1.0;
            centre + 0.1 * unit
        };
        std::iter::repeat_with(next).take(count).collect()
    })
}

/// Writes a model whose tokenizer knows these words, and replaces all others by `[UNK]`.
pub(crate) fn write(dir: &Path, shape: Shape, words: &[&str], weights: &Weights) {
    let config = json!({"model_type": "bert", "vocab_size": shape.tokens, "hidden_size": shape.width,
        "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "intermediate_size": shape.inner,
        "hidden_act": "gelu", "max_position_embeddings": shape.positions, "layer_norm_eps": 1e-12});
    fs::write(dir.join("config.json"), config.to_string()).unwrap();
    fs::write(dir.join("tokenizer.json"), tokenizer(words).to_string()).unwrap();
    fs::write(dir.join("model.safetensors"), safetensors(weights)).unwrap();
}

fn tokenizer(words: &[&str]) -> Value {
    let vocabulary: Map<String, Value> =
        SPECIAL.iter().chain(words).zip(0..).map(|(word, id)| ((*word).to_owned(), json!(id))).collect();
    let special = |token: &str| json!({"SpecialToken": {"id": token, "type_id": 0}});
    let known = |token: &str, id: u32| json!({"id": token, "ids": [id], "tokens": [token]});
    json!({"version": "1.0", "truncation": null, "added_tokens": [], "decoder": null,
        "padding": {"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[UNK]"},
        "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                       "strip_accents": null, "lowercase": true},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "TemplateProcessing",
            "single": [special("[CLS]"), {"Sequence": {"id": "A", "type_id": 0}}, special("[SEP]")],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": known("[CLS]", 1), "[SEP]": known("[SEP]", 2)}},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": vocabulary}})
}

/// A file of tensors: the length of the header, the header, and the numbers.
fn safetensors(weights: &Weights) -> Vec<u8> {
    let (mut header, mut numbers) = (Map::new(), Vec::new());
    for (name, (shape, values)) in weights {
        let start = numbers.len();
        numbers.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let tensor = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, numbers.len()]});
        header.insert(name.clone(), tensor);
    }
    let mut header = Value::Object(header).to_string();
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len()));
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &numbers].concat()
}
