//! The forward pass of a BERT (Devlin et al., 2019) over texts of different lengths.
//!
//! The tokens of all texts are the rows of one matrix. Only attention looks at each text apart, so there is no padding.

use std::ops::Range;

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, ArrayView2, Axis, Slice};

use crate::config::{Activation, Config};
use crate::math::{gelu_all, layer_norm, relu_all, softmax};
use crate::weights::Weights;

pub(crate) struct Bert {
    word: Array2<f32>,
    position: Array2<f32>,
    /// The vector of the first kind of token: sentence models have no second one.
    kind: Array1<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    heads: usize,
    activation: Activation,
}

struct Layer {
    /// Query, key and value in one matrix.
    attention: Linear,
    attention_output: Linear,
    attention_norm: Norm,
    inner: Linear,
    output: Linear,
    output_norm: Norm,
}

/// A matrix with one column per output, so that multiplication reads it in order, and a bias.
struct Linear {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

struct Norm {
    weight: Array1<f32>,
    bias: Array1<f32>,
    eps: f32,
}

impl Bert {
    pub(crate) fn of(weights: &Weights<'_>, config: &Config) -> Result<Self, String> {
        let width = config.hidden_size;
        let embeddings = |name: &str| format!("embeddings.{name}_embeddings.weight");
        let layers = (0..config.num_hidden_layers).map(|at| Layer::of(weights, config, at));
        Ok(Self {
            word: weights.matrix(&embeddings("word"), config.vocab_size, width)?,
            position: weights.matrix(&embeddings("position"), config.max_position_embeddings, width)?,
            kind: weights.first_row(&embeddings("token_type"), width)?,
            norm: Norm::of(weights, "embeddings.LayerNorm", config)?,
            layers: layers.collect::<Result<_, _>>()?,
            heads: config.num_attention_heads,
            activation: config.hidden_act,
        })
    }

    /// The mean of the vectors of each text's tokens. Every text has tokens, at most as many as the model has positions.
    pub(crate) fn means(&self, texts: &[&[u32]]) -> Vec<Vec<f32>> {
        let mut ranges = Vec::with_capacity(texts.len());
        let mut end = 0;
        for text in texts {
            ranges.push(end..end + text.len());
            end += text.len();
        }
        let mut tokens = self.embedded(texts, end);
        for layer in &self.layers {
            layer.apply(&mut tokens, &ranges, self.heads, self.activation);
        }
        let mean = |range: Range<usize>| tokens.slice_axis(Axis(0), Slice::from(range)).mean_axis(Axis(0));
        ranges.into_iter().map(|range| mean(range).unwrap_or_default().to_vec()).collect()
    }

    /// The sum of the vectors of each token, its position and its kind.
    fn embedded(&self, texts: &[&[u32]], count: usize) -> Array2<f32> {
        let mut tokens = Array2::zeros((count, self.kind.len()));
        let places = texts.iter().flat_map(|text| text.iter().enumerate());
        for (mut row, (position, id)) in tokens.rows_mut().into_iter().zip(places) {
            row += &self.word.row(*id as usize);
            row += &self.position.row(position);
            row += &self.kind;
        }
        self.norm.apply(&mut tokens);
        tokens
    }
}

impl Layer {
    fn of(weights: &Weights<'_>, config: &Config, at: usize) -> Result<Self, String> {
        let name = |part: &str| format!("encoder.layer.{at}.{part}");
        let (width, inner) = (config.hidden_size, config.intermediate_size);
        let linear = |part: &str, from, to| Linear::of(weights, &name(part), from, to);
        let own = |part: &str| linear(&format!("attention.self.{part}"), width, width);
        Ok(Self {
            attention: Linear::stacked(&[own("query")?, own("key")?, own("value")?])?,
            attention_output: linear("attention.output.dense", width, width)?,
            attention_norm: Norm::of(weights, &name("attention.output.LayerNorm"), config)?,
            inner: linear("intermediate.dense", width, inner)?,
            output: linear("output.dense", inner, width)?,
            output_norm: Norm::of(weights, &name("output.LayerNorm"), config)?,
        })
    }

    fn apply(&self, tokens: &mut Array2<f32>, texts: &[Range<usize>], heads: usize, activation: Activation) {
        let context = attended(&self.attention.applied(tokens), texts, heads);
        self.attention_output.add_to(tokens, &context);
        self.attention_norm.apply(tokens);
        let mut inner = self.inner.applied(tokens);
        if let Some(values) = inner.as_slice_mut() {
            match activation {
                Activation::Gelu => gelu_all(values),
                Activation::Relu => relu_all(values),
            }
        }
        self.output.add_to(tokens, &inner);
        self.output_norm.apply(tokens);
    }
}

/// The values of the tokens of each text, weighted by attention. A row of `all` has query, key and value of a token.
fn attended(all: &Array2<f32>, texts: &[Range<usize>], heads: usize) -> Array2<f32> {
    let width = all.ncols() / 3;
    let head_width = width / heads;
    #[expect(clippy::cast_precision_loss, reason = "at most DIMENSION_MAX")]
    let scale = 1.0 / (head_width as f32).sqrt();
    let mut context = Array2::zeros((all.nrows(), width));
    for text in texts {
        let rows = Slice::from(text.clone());
        let of_text = all.slice_axis(Axis(0), rows);
        let mut context = context.slice_axis_mut(Axis(0), rows);
        let mut scores = Array2::zeros((text.len(), text.len()));
        for start in (0..width).step_by(head_width) {
            let part = |offset: usize| {
                let columns = Slice::from(offset * width + start..offset * width + start + head_width);
                of_text.slice_axis(Axis(1), columns)
            };
            general_mat_mul(scale, &part(0), &part(1).t(), 0.0, &mut scores);
            for mut row in scores.rows_mut() {
                if let Some(row) = row.as_slice_mut() {
                    softmax(row);
                }
            }
            let mut out = context.slice_axis_mut(Axis(1), Slice::from(start..start + head_width));
            general_mat_mul(1.0, &scores, &part(2), 0.0, &mut out);
        }
    }
    context
}

impl Linear {
    fn of(weights: &Weights<'_>, name: &str, from: usize, to: usize) -> Result<Self, String> {
        let weight =
            weights.matrix(&format!("{name}.weight"), to, from)?.t().as_standard_layout().into_owned();
        Ok(Self { weight, bias: weights.vector(&format!("{name}.bias"), to)? })
    }

    fn stacked(parts: &[Self]) -> Result<Self, String> {
        let weights: Vec<ArrayView2<'_, f32>> = parts.iter().map(|part| part.weight.view()).collect();
        let biases: Vec<_> = parts.iter().map(|part| part.bias.view()).collect();
        let weight = ndarray::concatenate(Axis(1), &weights).map_err(|error| error.to_string())?;
        let bias = ndarray::concatenate(Axis(0), &biases).map_err(|error| error.to_string())?;
        Ok(Self { weight, bias })
    }

    fn applied(&self, rows: &Array2<f32>) -> Array2<f32> {
        let mut out = Array2::zeros((rows.nrows(), self.bias.len()));
        self.add_to(&mut out, rows);
        out
    }

    fn add_to(&self, out: &mut Array2<f32>, rows: &Array2<f32>) {
        *out += &self.bias;
        general_mat_mul(1.0, rows, &self.weight, 1.0, out);
    }
}

impl Norm {
    fn of(weights: &Weights<'_>, name: &str, config: &Config) -> Result<Self, String> {
        let part = |now: &str, before: &str| {
            let names = [format!("{name}.{now}"), format!("{name}.{before}")];
            weights.vector_of(names.each_ref().map(String::as_str), config.hidden_size)
        };
        Ok(Self { weight: part("weight", "gamma")?, bias: part("bias", "beta")?, eps: config.layer_norm_eps })
    }

    fn apply(&self, rows: &mut Array2<f32>) {
        let (Some(weight), Some(bias)) = (self.weight.as_slice(), self.bias.as_slice()) else { return };
        for mut row in rows.rows_mut() {
            if let Some(row) = row.as_slice_mut() {
                layer_norm(row, weight, bias, self.eps);
            }
        }
    }
}
