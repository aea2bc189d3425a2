//! Names of workers.

use std::fmt;

use serde::{Deserialize, Serialize};

const WORKER_ID_BYTES_MAX: usize = 200;

/// Names one crawler process in the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WorkerId(String);

impl WorkerId {
    /// Removes control characters and truncates the name after 200 bytes.
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

    /// The name for a person, if it consists of a machine and a process: `process 1030 on vm` for `vm/1030`.
    pub fn in_words(&self) -> String {
        match self.0.rsplit_once('/') {
            Some((machine, process)) if process.parse::<u32>().is_ok() => {
                format!("process {process} on {machine}")
            }
            _ => self.0.clone(),
        }
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
