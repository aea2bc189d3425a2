//! Reads matrices and vectors of a `safetensors` file as 32-bit floats.

use half::{bf16, f16};
use ndarray::{Array1, Array2};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};

/// The tensors of a file. Names may begin with the kind of the model, as in `bert.embeddings.…`.
pub(crate) struct Weights<'a> {
    tensors: SafeTensors<'a>,
    prefix: &'static str,
}

impl<'a> Weights<'a> {
    pub(crate) fn read(content: &'a [u8]) -> Result<Self, String> {
        let tensors = SafeTensors::deserialize(content).map_err(|error| error.to_string())?;
        let has_prefix = tensors.iter().any(|(name, _)| name.starts_with("bert."));
        Ok(Self { tensors, prefix: if has_prefix { "bert." } else { "" } })
    }

    /// A matrix in the layout of PyTorch: one row per output, or per token.
    pub(crate) fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, String> {
        let values = self.values(name, &[rows, columns])?;
        Array2::from_shape_vec((rows, columns), values).map_err(|error| format!("{name}: {error}"))
    }

    /// The first row of a matrix with any number of rows.
    pub(crate) fn first_row(&self, name: &str, columns: usize) -> Result<Array1<f32>, String> {
        let rows = self.tensor(name)?.shape().first().copied().unwrap_or_default();
        if rows == 0 {
            return Err(format!("{name} is empty"));
        }
        self.matrix(name, rows, columns).map(|matrix| matrix.row(0).to_owned())
    }

    pub(crate) fn vector(&self, name: &str, length: usize) -> Result<Array1<f32>, String> {
        self.values(name, &[length]).map(Array1::from_vec)
    }

    /// A vector that old files have under another name.
    pub(crate) fn vector_of(&self, names: [&str; 2], length: usize) -> Result<Array1<f32>, String> {
        self.vector(names[0], length).or_else(|error| self.vector(names[1], length).map_err(|_| error))
    }

    fn tensor(&self, name: &str) -> Result<TensorView<'a>, String> {
        self.tensors.tensor(&format!("{}{name}", self.prefix)).map_err(|_| format!("it has no {name}"))
    }

    fn values(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let tensor = self.tensor(name)?;
        if tensor.shape() != shape {
            return Err(format!("{name} has the shape {:?} instead of {shape:?}", tensor.shape()));
        }
        let halves = || tensor.data().as_chunks::<2>().0.iter();
        match tensor.dtype() {
            Dtype::F32 => {
                Ok(tensor.data().as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
            }
            Dtype::F16 => Ok(halves().map(|bytes| f16::from_le_bytes(*bytes).to_f32()).collect()),
            Dtype::BF16 => Ok(halves().map(|bytes| bf16::from_le_bytes(*bytes).to_f32()).collect()),
            other => Err(format!("{name} has numbers of type {other:?}; F32, F16 and BF16 are supported")),
        }
    }
}
