//! Names of workers.

use std::fmt;

use serde::{Deserialize, Serialize};

const WORKER_ID_BYTES_MAX: usize = 200;

/// Names one crawler process in the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(String);

impl WorkerId {
    /// Removes control characters and cuts the name after 200 bytes.
    pub fn new(name: &str) -> Self {
        let mut id = String::new();
        for character in name.chars().filter(|character| !character.is_control()) {
            if id.len() + character.len_utf8() > WORKER_ID_BYTES_MAX {
                break;
            }
            id.push(character);
        }
        Self(id)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
