//! A BERT as its paper defines it, one number at a time.

use std::f64::consts::PI;

use crate::made::{Shape, Weights};

type Rows = Vec<Vec<f64>>;

/// The mean of the tokens' vectors, normalised.
pub(crate) fn embedded(weights: &Weights, shape: Shape, tokens: &[usize]) -> Vec<f64> {
    let place = |name: &str, row: usize| vector(weights, name, row, shape.width);
    let embeddings = |name: &str| format!("embeddings.{name}_embeddings.weight");
    let mut rows: Rows = (0..tokens.len())
        .map(|at| {
            let word = place(&embeddings("word"), tokens[at]);
            let position = place(&embeddings("position"), at);
            let kind = place(&embeddings("token_type"), 0);
            sum(&sum(&word, &position), &kind)
        })
        .collect();
    norm(weights, "embeddings.LayerNorm", &mut rows);
    for layer in 0..shape.layers {
        let name = |part: &str| format!("encoder.layer.{layer}.{part}");
        let context = attended(weights, &name("attention.self"), shape.heads, &rows);
        let output = linear(weights, &name("attention.output.dense"), &context);
        rows = rows.iter().zip(&output).map(|(row, output)| sum(row, output)).collect();
        norm(weights, &name("attention.output.LayerNorm"), &mut rows);
        let mut inner = linear(weights, &name("intermediate.dense"), &rows);
        inner
            .iter_mut()
            .flatten()
            .for_each(|value| *value = *value * 0.5 * (1.0 + erf(*value / 2_f64.sqrt())));
        let output = linear(weights, &name("output.dense"), &inner);
        rows = rows.iter().zip(&output).map(|(row, output)| sum(row, output)).collect();
        norm(weights, &name("output.LayerNorm"), &mut rows);
    }
    let total = rows.iter().skip(1).fold(rows[0].clone(), |total, row| sum(&total, row));
    let length = total.iter().map(|value| value * value).sum::<f64>().sqrt();
    total.iter().map(|value| value / length).collect()
}

fn attended(weights: &Weights, name: &str, heads: usize, rows: &Rows) -> Rows {
    let [query, key, value] =
        ["query", "key", "value"].map(|part| linear(weights, &format!("{name}.{part}"), rows));
    let width = query[0].len();
    let head_width = width / heads;
    let mut context = vec![vec![0.0; width]; rows.len()];
    for start in (0..width).step_by(head_width) {
        let part = |row: &[f64]| row[start..start + head_width].to_vec();
        for at in 0..rows.len() {
            let score = |other: &Vec<f64>| {
                let dot: f64 = part(&query[at]).iter().zip(part(other)).map(|(a, b)| a * b).sum();
                #[expect(clippy::cast_precision_loss, reason = "a few columns")]
                (dot / (head_width as f64).sqrt()).exp()
            };
            let scores: Vec<f64> = key.iter().map(score).collect();
            let all: f64 = scores.iter().sum();
            for (score, value) in scores.iter().zip(&value) {
                for column in start..start + head_width {
                    context[at][column] += score / all * value[column];
                }
            }
        }
    }
    context
}

fn linear(weights: &Weights, name: &str, rows: &Rows) -> Rows {
    let (shape, matrix) = &weights[&format!("{name}.weight")];
    let (_, bias) = &weights[&format!("{name}.bias")];
    let one = |row: &Vec<f64>, to: usize| {
        let column = &matrix[to * shape[1]..(to + 1) * shape[1]];
        row.iter().zip(column).map(|(a, b)| a * f64::from(*b)).sum::<f64>() + f64::from(bias[to])
    };
    rows.iter().map(|row| (0..shape[0]).map(|to| one(row, to)).collect()).collect()
}

fn norm(weights: &Weights, name: &str, rows: &mut Rows) {
    let (_, weight) = &weights[&format!("{name}.weight")];
    let (_, bias) = &weights[&format!("{name}.bias")];
    for row in rows {
        #[expect(clippy::cast_precision_loss, reason = "a few columns")]
        let count = row.len() as f64;
        let mean = row.iter().sum::<f64>() / count;
        let variance = row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
            *value = (*value - mean) / (variance + 1e-12).sqrt() * f64::from(*weight) + f64::from(*bias);
        }
    }
}

/// The error function by its series, which converges for the small numbers of the tests.
fn erf(x: f64) -> f64 {
    let mut term = x;
    let mut total = x;
    for n in 1..60 {
        let n = f64::from(n);
        term *= -x * x / n;
        total += term / (2.0 * n + 1.0);
    }
    2.0 / PI.sqrt() * total
}

fn vector(weights: &Weights, name: &str, row: usize, width: usize) -> Vec<f64> {
    weights[name].1[row * width..(row + 1) * width].iter().map(|value| f64::from(*value)).collect()
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}
