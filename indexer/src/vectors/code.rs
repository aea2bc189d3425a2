//! Vectors quantized to one byte per dimension.

/// Maximum value of a code.
const CODE_MAX: f32 = 127.0;

/// A quantized vector: half the size of 16-bit floats, and much faster to compare on processors without instructions for such floats. The
/// error of a few thousandths of a cosine does not affect the order noticeably.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Code {
    pub(super) numbers: Vec<u8>,
    pub(super) scale: f32,
}

impl Code {
    pub(crate) fn of(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |largest, number| largest.max(number.abs()));
        let scale = if largest > 0.0 && largest.is_finite() { largest / CODE_MAX } else { 1.0 };
        #[expect(clippy::cast_possible_truncation, reason = "at most 127 by the scale; NaN becomes 0")]
        let code = |number: &f32| ((number / scale).round() as i8).cast_unsigned();
        Self { numbers: vector.iter().map(code).collect(), scale }
    }
}
