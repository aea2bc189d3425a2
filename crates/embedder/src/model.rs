//! A BERT with mean pooling, like the small models of sentence-transformers.

use std::path::Path;

use candle_core::{Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use serde_json::Value;
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

use crate::ModelError;
use crate::files::Files;

/// Maximum length of a vector: the length in the largest BERT models.
pub const DIMENSION_MAX: usize = 1_024;
/// Maximum number of tokens of one text that are read: about 190 English words, the training length of all-MiniLM-L6-v2. Longer texts are
/// truncated.
pub const TOKENS_MAX: usize = 256;
/// Maximum number of bytes of one text that are tokenized. In no language are tokens longer than 16 bytes on average.
const TEXT_BYTES_MAX: usize = 16 * TOKENS_MAX;
/// Texts per batch: larger batches cost memory and save no time on a CPU.
const BATCH: usize = 16;
/// Maximum size of the weights: three times the size of the largest BERT model.
const WEIGHTS_BYTES_MAX: u64 = 4 << 30;
/// Maximum size of the tokenizer: four times the size for a model of a hundred languages.
const TOKENIZER_BYTES_MAX: u64 = 64 << 20;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
/// The pooling of token vectors; the mean if the file is missing.
const POOLING: &str = "1_Pooling/config.json";

pub struct Model {
    bert: BertModel,
    tokenizer: Tokenizer,
    dimension: usize,
    identity: [u8; 32],
}

impl Model {
    /// Reads a model from its directory; a small one takes a fraction of a second.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let mut files = Files::in_dir(dir);
        let config = read_config(&mut files)?;
        check_pooling(&mut files)?;
        let tokenizer = read_tokenizer(&mut files, &config)?;
        let bert = read_weights(&mut files, &config)?;
        let model = Self { bert, tokenizer, dimension: config.hidden_size, identity: files.identity() };
        // Embeds one text, so that files of different models are reported at the start and not by the first search.
        let embedded = model.embed(&["a text"]);
        embedded.map_err(|error| ModelError::Invalid { path: dir.to_owned(), reason: error.to_string() })?;
        Ok(model)
    }

    /// Length of a vector.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// A hash of the model's files: vectors of different models cannot be compared.
    pub fn identity(&self) -> [u8; 32] {
        self.identity
    }

    /// The vectors of texts, in order, each normalised to length one. Blocking: takes milliseconds per text.
    pub fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, ModelError> {
        // Texts of similar length share a batch, because shorter texts are padded.
        let mut order: Vec<usize> = (0..texts.len()).collect();
        order.sort_by_key(|at| texts[*at].len());
        let mut vectors = vec![Vec::new(); texts.len()];
        for batch in order.chunks(BATCH) {
            let cut: Vec<&str> = batch.iter().map(|at| cut(texts[*at])).collect();
            let found = self.embed_batch(&cut).map_err(|error| ModelError::Text(error.to_string()))?;
            for (at, vector) in batch.iter().zip(found) {
                vectors[*at] = normalised(vector)?;
            }
        }
        Ok(vectors)
    }

    /// The mean of the vectors of each text's tokens.
    fn embed_batch(&self, texts: &[&str]) -> tokenizers::Result<Vec<Vec<f32>>> {
        let encoded = self.tokenizer.encode_batch(texts.to_vec(), true)?;
        let width = encoded.first().map_or(0, |one| one.get_ids().len());
        let shape = (texts.len(), width);
        let ids: Vec<u32> = encoded.iter().flat_map(|one| one.get_ids().to_vec()).collect();
        let mask: Vec<u32> = encoded.iter().flat_map(|one| one.get_attention_mask().to_vec()).collect();
        let ids = Tensor::from_vec(ids, shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(mask, shape, &Device::Cpu)?;
        let tokens = self.bert.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let mask = mask.to_dtype(DTYPE)?.unsqueeze(2)?;
        let sums = tokens.broadcast_mul(&mask)?.sum(1)?;
        Ok(sums.broadcast_div(&mask.sum(1)?)?.to_vec2()?)
    }
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("dimension", &self.dimension).finish_non_exhaustive()
    }
}

fn read_config(files: &mut Files<'_>) -> Result<Config, ModelError> {
    let description = files.description(CONFIG)?;
    let kind = description.get("model_type").and_then(Value::as_str).unwrap_or("bert");
    if kind != "bert" {
        let reason = format!(
            "its model_type is \"{kind}\" but only \"bert\" is supported: use a model like all-MiniLM-L6-v2"
        );
        return Err(files.invalid(CONFIG, reason));
    }
    let config: Config =
        serde_json::from_value(description).map_err(|error| files.invalid(CONFIG, error.to_string()))?;
    let (dimension, heads) = (config.hidden_size, config.num_attention_heads);
    if dimension == 0 || dimension > DIMENSION_MAX {
        let reason = format!("its hidden_size is {dimension} and should be 1 to {DIMENSION_MAX}");
        return Err(files.invalid(CONFIG, reason));
    }
    if heads == 0 || dimension % heads != 0 {
        let reason = format!("its num_attention_heads is {heads} and should divide hidden_size, {dimension}");
        return Err(files.invalid(CONFIG, reason));
    }
    Ok(config)
}

fn check_pooling(files: &mut Files<'_>) -> Result<(), ModelError> {
    if !files.path(POOLING).exists() {
        return Ok(());
    }
    let description = files.description(POOLING)?;
    if description.get("pooling_mode_mean_tokens") == Some(&Value::Bool(true)) {
        return Ok(());
    }
    let reason =
        "its pooling_mode_mean_tokens is not true: use a model with mean pooling, like all-MiniLM-L6-v2";
    Err(files.invalid(POOLING, reason))
}

fn read_tokenizer(files: &mut Files<'_>, config: &Config) -> Result<Tokenizer, ModelError> {
    let content = files.read(TOKENIZER, TOKENIZER_BYTES_MAX)?;
    let mut tokenizer =
        Tokenizer::from_bytes(content).map_err(|error| files.invalid(TOKENIZER, error.to_string()))?;
    let (tokens, known) = (tokenizer.get_vocab_size(true), config.vocab_size);
    if tokens > known {
        let reason =
            format!("it has {tokens} tokens but {CONFIG} allows {known}: they belong to different models");
        return Err(files.invalid(TOKENIZER, reason));
    }
    let max_length = TOKENS_MAX.min(config.max_position_embeddings);
    let truncation = TruncationParams { max_length, ..TruncationParams::default() };
    tokenizer
        .with_truncation(Some(truncation))
        .map_err(|error| files.invalid(TOKENIZER, error.to_string()))?;
    // The attention mask marks padding, so any padding token works.
    tokenizer.with_padding(Some(PaddingParams::default()));
    Ok(tokenizer)
}

fn read_weights(files: &mut Files<'_>, config: &Config) -> Result<BertModel, ModelError> {
    let content = files.read(WEIGHTS, WEIGHTS_BYTES_MAX)?;
    let invalid = |error: candle_core::Error| {
        let reason = format!("{error}: it must contain the weights of the BERT that {CONFIG} describes");
        ModelError::Invalid { path: files.path(WEIGHTS), reason }
    };
    let tensors = candle_core::safetensors::load_buffer(&content, &Device::Cpu).map_err(invalid)?;
    drop(content);
    BertModel::load(VarBuilder::from_tensors(tensors, DTYPE, &Device::Cpu), config).map_err(invalid)
}

/// Truncates a text to the bytes that may be tokenized.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_BYTES_MAX)]
}

fn normalised(mut vector: Vec<f32>) -> Result<Vec<f32>, ModelError> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    if !length.is_finite() || length <= 0.0 {
        return Err(ModelError::Text("the model returned a vector without a direction".to_owned()));
    }
    for number in &mut vector {
        *number /= length;
    }
    Ok(vector)
}
