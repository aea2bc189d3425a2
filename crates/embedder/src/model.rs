//! A BERT with mean pooling, like the small models of sentence-transformers.

use std::path::Path;

use tokenizers::{PostProcessor as _, Tokenizer, TruncationParams};

use crate::ModelError;
use crate::bert::Bert;
use crate::config::{CONFIG, Config, TOKENIZER, TOKENS_MAX, WEIGHTS, check_pooling};
use crate::files::Files;
use crate::weights::Weights;

/// Maximum number of bytes of one text that are tokenized. In no language are tokens longer than 16 bytes on average.
const TEXT_BYTES_MAX: usize = 16 * TOKENS_MAX;
/// Tokens of one pass through the model. More cost memory, and save less than a tenth of the time.
const PASS_TOKENS: usize = 512;
/// Maximum size of the weights: three times the size of the largest BERT model.
const WEIGHTS_BYTES_MAX: u64 = 4 << 30;
/// Maximum size of the tokenizer: four times the size for a model of a hundred languages.
const TOKENIZER_BYTES_MAX: u64 = 64 << 20;

/// A sentence model, ready to embed.
pub struct Model {
    bert: Bert,
    tokenizer: Tokenizer,
    dimension: usize,
    identity: [u8; 32],
}

impl Model {
    /// Reads a model from its directory; a small one takes a fraction of a second.
    pub fn open(dir: &Path) -> Result<Self, ModelError> {
        let mut files = Files::in_dir(dir);
        let config = Config::read(&mut files)?;
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
        let ids = self.token_ids(texts)?;
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        while !rest.is_empty() {
            let later = rest.split_off(texts_of_one_pass(&rest));
            for vector in self.bert.means(&rest) {
                vectors.push(normalised(vector)?);
            }
            rest = later;
        }
        Ok(vectors)
    }

    /// The tokens of each text, at least one.
    pub(crate) fn token_ids(&self, texts: &[&str]) -> Result<Vec<Vec<u32>>, ModelError> {
        let of_text = |text: &&str| {
            let encoded = self.tokenizer.encode_fast(cut(text), true);
            let ids = encoded.map_err(|error| ModelError::Text(error.to_string()))?.get_ids().to_vec();
            if ids.is_empty() { Err(ModelError::Text("it has no tokens".to_owned())) } else { Ok(ids) }
        };
        texts.iter().map(of_text).collect()
    }
}

/// Number of first texts that have [`PASS_TOKENS`] tokens together, at least one.
fn texts_of_one_pass(texts: &[&[u32]]) -> usize {
    let mut tokens = 0;
    let fits = texts.iter().take_while(|text| {
        tokens += text.len();
        tokens <= PASS_TOKENS
    });
    fits.count().max(1)
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Model").field("dimension", &self.dimension).finish_non_exhaustive()
    }
}

fn read_tokenizer(files: &mut Files<'_>, config: &Config) -> Result<Tokenizer, ModelError> {
    let content = files.read(TOKENIZER, TOKENIZER_BYTES_MAX)?;
    let mut tokenizer =
        Tokenizer::from_bytes(content).map_err(|error| files.invalid(TOKENIZER, error.to_string()))?;
    // the tokenizer subtracts this number from the maximum when it truncates
    let (added, tokens_max) =
        (tokenizer.get_post_processor().map_or(0, |added| added.added_tokens(false)), config.tokens_max());
    if added >= tokens_max {
        let reason =
            format!("it adds {added} tokens to each text, of which {CONFIG} allows {tokens_max} tokens");
        return Err(files.invalid(TOKENIZER, reason));
    }
    let truncation = TruncationParams { max_length: tokens_max, ..TruncationParams::default() };
    tokenizer
        .with_truncation(Some(truncation))
        .map_err(|error| files.invalid(TOKENIZER, error.to_string()))?;
    tokenizer.with_padding(None);
    let greatest = greatest_id(&tokenizer).map_err(|error| files.invalid(TOKENIZER, error.to_string()))?;
    let known = config.vocab_size;
    if greatest as usize >= known {
        let reason = format!(
            "it has a token with the number {greatest} but {CONFIG} allows {known} tokens: they belong to different models"
        );
        return Err(files.invalid(TOKENIZER, reason));
    }
    Ok(tokenizer)
}

/// The greatest id of a token. Ids may have gaps, and the tokens that are added to each text have ids of their own, which need not be in
/// the vocabulary.
fn greatest_id(tokenizer: &Tokenizer) -> tokenizers::Result<u32> {
    let added = tokenizer.encode_fast("", true)?;
    let ids = tokenizer.get_vocab(true).into_values().chain(added.get_ids().iter().copied());
    Ok(ids.max().unwrap_or_default())
}

fn read_weights(files: &mut Files<'_>, config: &Config) -> Result<Bert, ModelError> {
    let content = files.read(WEIGHTS, WEIGHTS_BYTES_MAX)?;
    let bert = Weights::read(&content).and_then(|weights| Bert::of(&weights, config));
    bert.map_err(|error| {
        let reason = format!("{error}: it must contain the weights of the BERT that {CONFIG} describes");
        files.invalid(WEIGHTS, reason)
    })
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
