//! Example requests from the operator: lines of JSON with `query` and `capability`, in the format of `agentdex feedback export`. They are
//! indexed like examples of the publisher.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use manifest::CapabilityId;
use serde::Deserialize;

/// Maximum number of bytes of a file, and of one request.
const FILE_BYTES_MAX: u64 = 64 << 20;
const REQUEST_BYTES_MAX: usize = 1_024;
/// Maximum number of requests of one capability; later lines are ignored.
const REQUESTS_MAX: usize = 10;

/// Constants of 64-bit FNV-1a, a hash that is the same in every process.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Example requests by capability.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Examples {
    requests: HashMap<CapabilityId, Vec<String>>,
    /// Identifies the content. An index that was built with other examples is rebuilt.
    version: u64,
}

/// The file of examples cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExamplesError {
    #[error("cannot read the examples in {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} is longer than {FILE_BYTES_MAX} bytes", .0.display())]
    TooLong(PathBuf),
    #[error("line {line} of {} is not an example: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
}

/// One line; other members are ignored.
#[derive(Deserialize)]
struct Line {
    query: String,
    capability: String,
}

impl Examples {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, ExamplesError> {
        let unreadable = |source| ExamplesError::Unreadable { path: path.to_owned(), source };
        let file = std::fs::File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.len() > FILE_BYTES_MAX {
            return Err(ExamplesError::TooLong(path.to_owned()));
        }
        let mut found = Self::default();
        for (line, number) in BufReader::new(file.take(FILE_BYTES_MAX)).lines().zip(1..) {
            let line = line.map_err(unreadable)?;
            if !line.trim().is_empty() {
                let failed = |reason| ExamplesError::Line { path: path.to_owned(), line: number, reason };
                found.add(&line).map_err(failed)?;
            }
        }
        Ok(found)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let Line { query, capability } = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if query.len() > REQUEST_BYTES_MAX {
            return Err(format!("the query is longer than {REQUEST_BYTES_MAX} bytes"));
        }
        let id = CapabilityId::parse(&capability).map_err(|error| error.to_string())?;
        let requests = self.requests.entry(id).or_default();
        if requests.len() < REQUESTS_MAX && !requests.contains(&query) {
            self.version = line.bytes().fold(self.version ^ FNV_OFFSET, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME)
            });
            requests.push(query);
        }
        Ok(())
    }

    /// Zero without examples.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The example requests of a capability.
    pub(crate) fn of(&self, id: &CapabilityId) -> &[String] {
        self.requests.get(id).map(Vec::as_slice).unwrap_or_default()
    }
}
