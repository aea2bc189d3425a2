//! Tests of several modules together, and the index that they search.

mod accumulate;
mod corrections;
mod pairing;
pub(super) mod sample_index;
