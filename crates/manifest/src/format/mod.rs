//! One file per dialect.

pub(crate) mod openapi;
