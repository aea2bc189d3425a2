//! The functions of a BERT over slices. Written without branches, so that the compiler uses vector instructions.

/// Number of independent partial sums, so that additions do not wait for each other.
const LANES: usize = 16;

pub(crate) fn sum_by(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += of(*value);
        }
    }
    sums.iter().sum::<f32>() + rest.iter().map(|value| of(*value)).sum::<f32>()
}

/// e^x with a relative error below 1e-6, for x from -87 to 88. Outside this range, the value at the nearest limit.
fn exp(x: f32) -> f32 {
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    /// 1.5 × 2^23: adding it rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.0, 88.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let integer = rounded - ROUND;
    let r = x - integer * LN_2_HIGH - integer * LN_2_LOW;
    let mut series = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        series = series * r + coefficient;
    }
    let power_of_two = f32::from_bits((rounded.to_bits() << 23).wrapping_add(1.0_f32.to_bits()));
    (series * r * r + r + 1.0) * power_of_two
}

/// x × Φ(x), with the error function of Abramowitz and Stegun 7.1.26 (absolute error below 2e-7).
fn gelu(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let mut series = 1.061_405_4;
    for coefficient in [-1.453_152, 1.421_413_7, -0.284_496_74, 0.254_829_6] {
        series = series * t + coefficient;
    }
    let tail = 0.5 * series * t * exp(-z * z);
    x * if x < 0.0 { tail } else { 1.0 - tail }
}

pub(crate) fn gelu_all(values: &mut [f32]) {
    for value in values {
        *value = gelu(*value);
    }
}

pub(crate) fn relu_all(values: &mut [f32]) {
    for value in values {
        *value = value.max(0.0);
    }
}

/// Turns scores into shares that add up to one.
pub(crate) fn softmax(scores: &mut [f32]) {
    let highest = scores.iter().copied().fold(f32::MIN, f32::max);
    for score in &mut *scores {
        *score = exp(*score - highest);
    }
    let sum = sum_by(scores, |score| score);
    for score in scores {
        *score /= sum;
    }
}

/// Shifts and scales a row to mean 0 and variance 1, then by the learnt weight and bias.
pub(crate) fn layer_norm(row: &mut [f32], weight: &[f32], bias: &[f32], eps: f32) {
    #[expect(clippy::cast_precision_loss, reason = "at most DIMENSION_MAX")]
    let count = row.len() as f32;
    let mean = sum_by(row, |value| value) / count;
    let variance = sum_by(row, |value| (value - mean) * (value - mean)) / count;
    let scale = 1.0 / (variance + eps).sqrt();
    for ((value, weight), bias) in row.iter_mut().zip(weight).zip(bias) {
        *value = (*value - mean) * scale * weight + bias;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_as_precise_as_a_float() {
        for step in -8_700..=880_i16 {
            let x = f32::from(step) / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 1e-6, "{x}: {} {exact}", exp(x));
        }
        assert!(exp(f32::NAN).is_nan() && exp(-1e9) < 1e-37);
    }

    #[test]
    fn gelu_has_known_values() {
        // x × Φ(x), computed to ten digits
        for (x, known) in
            [(0.0, 0.0), (1.0, 0.841_344_7), (-1.0, -0.158_655_25), (3.0, 2.995_950_3), (-5.0, -1.4e-6)]
        {
            assert!((gelu(x) - known).abs() < 1e-6, "{x}: {}", gelu(x));
        }
    }

    #[test]
    fn softmax_adds_up_to_one() {
        let mut scores = [1.0, 2.0, -1e9, 3.0];
        softmax(&mut scores);
        assert!((scores.iter().sum::<f32>() - 1.0).abs() < 1e-6 && scores[2] < 1e-30, "{scores:?}");
        assert!((scores[3] / scores[1] - std::f32::consts::E).abs() < 1e-5);
    }

    #[test]
    fn layer_norm_has_mean_zero_and_variance_one() {
        let mut row: Vec<f32> = (0..37_u8).map(f32::from).collect();
        layer_norm(&mut row, &[2.0; 37], &[1.0; 37], 1e-12);
        let mean = sum_by(&row, |value| value) / 37.0;
        let variance = sum_by(&row, |value| (value - mean) * (value - mean)) / 37.0;
        assert!((mean - 1.0).abs() < 1e-5 && (variance - 4.0).abs() < 1e-4, "{mean} {variance}");
    }
}
