//! The description of a model, and what of it is supported.

use serde::Deserialize;
use serde_json::Value;

use crate::ModelError;
use crate::files::Files;

/// Maximum length of a vector: the length in the largest BERT models.
pub const DIMENSION_MAX: usize = 1_024;
/// Maximum number of tokens of one text that are read: about 190 English words, the training length of all-MiniLM-L6-v2. Longer texts are
/// truncated.
pub const TOKENS_MAX: usize = 256;
/// Maximum number of layers: twice the number in the largest BERT models.
const LAYERS_MAX: usize = 48;

pub(crate) const CONFIG: &str = "config.json";
pub(crate) const TOKENIZER: &str = "tokenizer.json";
pub(crate) const WEIGHTS: &str = "model.safetensors";
/// The pooling of token vectors; the mean if the file is missing.
pub(crate) const POOLING: &str = "1_Pooling/config.json";

/// The shape of a BERT.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Config {
    pub(crate) vocab_size: usize,
    pub(crate) hidden_size: usize,
    pub(crate) num_hidden_layers: usize,
    pub(crate) num_attention_heads: usize,
    pub(crate) intermediate_size: usize,
    pub(crate) hidden_act: Activation,
    pub(crate) max_position_embeddings: usize,
    #[serde(default = "layer_norm_eps")]
    pub(crate) layer_norm_eps: f32,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

/// The function between the two matrices of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Activation {
    Gelu,
    Relu,
}

/// The default of BERT.
fn layer_norm_eps() -> f32 {
    1e-12
}

/// The kind of a model, as `config.json` states it; `bert` if it states none.
pub(crate) fn kind(description: &Value) -> &str {
    description.get("model_type").and_then(Value::as_str).unwrap_or("bert")
}

impl Config {
    pub(crate) fn read(files: &mut Files<'_>) -> Result<Self, ModelError> {
        let description = files.description(CONFIG)?;
        let kind = kind(&description);
        if kind != "bert" {
            let reason = format!(
                "its model_type is \"{kind}\" but only \"bert\" is supported: use a model like all-MiniLM-L6-v2"
            );
            return Err(files.invalid(CONFIG, reason));
        }
        let config: Self =
            serde_json::from_value(description).map_err(|error| files.invalid(CONFIG, error.to_string()))?;
        config.unsupported().map_or(Ok(config), |reason| Err(files.invalid(CONFIG, reason)))
    }

    /// Why the model cannot be used; `None` if it can.
    fn unsupported(&self) -> Option<String> {
        let (dimension, heads, layers) = (self.hidden_size, self.num_attention_heads, self.num_hidden_layers);
        if dimension == 0 || dimension > DIMENSION_MAX {
            return Some(format!("its hidden_size is {dimension} and should be 1 to {DIMENSION_MAX}"));
        }
        if heads == 0 || !dimension.is_multiple_of(heads) {
            return Some(format!(
                "its num_attention_heads is {heads} and should divide hidden_size, {dimension}"
            ));
        }
        if layers > LAYERS_MAX {
            return Some(format!("its num_hidden_layers is {layers}; the maximum is {LAYERS_MAX}"));
        }
        let position = self.position_embedding_type.as_deref().unwrap_or("absolute");
        (position != "absolute").then(|| {
            format!(
                "its position_embedding_type is \"{position}\" but only \"absolute\" is supported: use a model \
                 like all-MiniLM-L6-v2"
            )
        })
    }

    /// Maximum number of tokens of one text.
    pub(crate) fn tokens_max(&self) -> usize {
        TOKENS_MAX.min(self.max_position_embeddings)
    }
}

/// Requires mean pooling, if the model states its pooling.
pub(crate) fn check_pooling(files: &mut Files<'_>) -> Result<(), ModelError> {
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
