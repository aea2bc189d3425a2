//! Errors of the index and of searches; their texts state how to fix them.

use std::path::{Path, PathBuf};

use manifest::model::UnknownValue;

#[cfg(feature = "cluster")]
use crate::cluster::EngineError;

/// What to do without an index. An indexer that has just started may be building it.
const BUILD: &str = "if no indexer is building it, run `indexer rebuild`";
/// How to replace an index. An indexer that runs holds its lock.
const REBUILD: &str = "stop the indexer if one runs, then run `indexer rebuild`";

/// The index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("there is no index in {}: {BUILD}", dir.display())]
    Missing { dir: PathBuf },
    #[error(
        "the index in {} has schema version {found} and this program needs {needed}: {REBUILD}",
        dir.display()
    )]
    SchemaOther { dir: PathBuf, found: u32, needed: u32 },
    #[error(
        "the index in {} was built from another database: if no indexer is building it, run `indexer rebuild` with this one",
        dir.display()
    )]
    FeedOther { dir: PathBuf },
    #[error("the index in {} was built with other examples: {REBUILD} with these", dir.display())]
    ExamplesOther { dir: PathBuf },
    #[error("the index in {} is on a cluster: {REBUILD}, or name the cluster with --cluster", dir.display())]
    OnCluster { dir: PathBuf },
    #[error("the index in {} is not on a cluster: {REBUILD} with --cluster", dir.display())]
    NotOnCluster { dir: PathBuf },
    #[error("the index in {} cannot be read ({reason}): {REBUILD}", dir.display())]
    Corrupt { dir: PathBuf, reason: String },
    #[error(
        "the index in {} cannot be opened: {source}; run this as the user that wrote it, or let this user read and write its files",
        dir.display()
    )]
    NotReadable {
        dir: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "another indexer, or `agentdex`, is writing to {}: stop it first (an API that reads this index keeps answering), or give another --data-dir",
        dir.display()
    )]
    Locked { dir: PathBuf },
    #[error("{} cannot be written: {source}", path.display())]
    NotWritable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the index failed to {operation}: {source}")]
    Engine {
        operation: &'static str,
        #[source]
        source: tantivy::TantivyError,
    },
    #[error("a row of the index cannot be read: {0}")]
    Row(#[source] serde_json::Error),
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Cluster(#[from] EngineError),
}

impl IndexError {
    /// The error without the advice, which is meant for programs that only read the index.
    pub fn without_advice(&self) -> String {
        let text = self.to_string();
        let advice = [": run `indexer", ": if no indexer", ": stop the indexer"];
        let end = advice.iter().filter_map(|advice| text.find(advice)).min();
        end.and_then(|end| text.get(..end)).unwrap_or(&text).to_owned()
    }

    /// The error without paths of this machine and other details, for readers on other machines.
    pub const fn in_public(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "there is no index yet: if no indexer is building it, run `indexer rebuild`"
            }
            Self::FeedOther { .. } => {
                "the index was built from another database: if no indexer is building it, run `indexer rebuild` with this one, or name the database of the index \
                 with --database-url, DATABASE_URL or database_url_file"
            }
            Self::SchemaOther { .. }
            | Self::ExamplesOther { .. }
            | Self::OnCluster { .. }
            | Self::NotOnCluster { .. }
            | Self::Corrupt { .. } => {
                "the index cannot be used: stop the indexer if one runs, then run `indexer rebuild`"
            }
            #[cfg(feature = "cluster")]
            Self::Cluster(EngineError::Unsorted) => {
                "more capabilities match than can be sorted: add a filter or words"
            }
            #[cfg(feature = "cluster")]
            Self::Cluster(_) => "a part of the index does not answer: try again in a few seconds",
            Self::NotReadable { .. }
            | Self::Locked { .. }
            | Self::NotWritable { .. }
            | Self::Engine { .. }
            | Self::Row(_) => "the index cannot be read at the moment",
        }
    }

    /// The error for an index in `dir` that cannot be opened. Its files are damaged, unless this user has no permission to read or lock
    /// them.
    pub(crate) fn opening(dir: &Path, error: &tantivy::TantivyError) -> Self {
        use std::io::ErrorKind;
        use tantivy::TantivyError as Error;
        use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError};
        let io = match error {
            Error::OpenReadError(OpenReadError::IoError { io_error, .. })
            | Error::OpenDirectoryError(OpenDirectoryError::IoError { io_error, .. })
            | Error::IoError(io_error)
            | Error::LockFailure(LockError::IoError(io_error), _) => Some(io_error.kind()),
            _ => None,
        };
        match io {
            Some(kind @ (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)) => {
                Self::NotReadable { dir: dir.to_owned(), source: kind.into() }
            }
            _ => Self::Corrupt { dir: dir.to_owned(), reason: damage(error) },
        }
    }

    /// Converts an error of tantivy, for `map_err`.
    pub(crate) fn engine(operation: &'static str) -> impl Fn(tantivy::TantivyError) -> Self {
        move |source| Self::Engine { operation, source }
    }
}

/// Why a cursor cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// The version of ranking or schema has changed.
    #[error("the ranking has changed since this cursor was issued: start again without it")]
    Expired,
    #[error("this cursor belongs to another query: use it with the query that returned it")]
    OtherQuery,
    #[error("this is not a cursor: use next_cursor as it was returned")]
    Malformed,
}

/// A search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    #[error(transparent)]
    Cursor(#[from] CursorError),
    #[error("the query has {bytes} bytes; the maximum is {max}")]
    QueryTooLong { bytes: usize, max: usize },
    #[error("the search took longer than {time_max_ms} ms: use fewer words or add a filter")]
    OutOfTime { time_max_ms: u128 },
    #[error("there are {found} phrasings; the maximum is {max}")]
    TooManyPhrasings { found: usize, max: usize },
    #[error("a filter has {found} different values; the maximum is {max}")]
    TooManyValues { found: usize, max: usize },
    /// An operator has a value outside its closed vocabulary.
    #[error(transparent)]
    UnknownValue(#[from] UnknownValue),
    #[error(transparent)]
    Index(#[from] IndexError),
}

/// What is wrong with the files of an index. The engine takes damaged bytes for a file of an early version, and advises to install another
/// one.
fn damage(error: &tantivy::TantivyError) -> String {
    let text = error.to_string();
    match text.find("Footer magic byte") {
        Some(_) => "one of its files is damaged".to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_is_not_damage() {
        use std::io::ErrorKind;
        use std::sync::Arc;
        use tantivy::TantivyError;
        use tantivy::directory::error::{LockError, OpenReadError};
        let text = |error: &TantivyError| IndexError::opening(Path::new("index"), error).to_string();
        let io_error = |kind: ErrorKind| Arc::new(std::io::Error::from(kind));
        let reading = |kind| {
            let read = OpenReadError::IoError { io_error: io_error(kind), filepath: "meta".into() };
            text(&read.into())
        };
        let locking = |kind| text(&TantivyError::LockFailure(LockError::IoError(io_error(kind)), None));
        for denied in [
            reading(ErrorKind::PermissionDenied),
            locking(ErrorKind::PermissionDenied),
            locking(ErrorKind::ReadOnlyFilesystem),
        ] {
            assert!(
                denied.contains("index cannot be opened: ") && denied.contains("; run this as"),
                "{denied}"
            );
            assert!(!denied.contains("rebuild") && !denied.contains("Os {"), "{denied}");
        }
        assert!(reading(ErrorKind::UnexpectedEof).contains("indexer rebuild"));
    }

    #[test]
    fn an_indexer_gives_no_advice_about_its_own_task() {
        let other = IndexError::FeedOther { dir: "index".into() };
        assert!(other.to_string().contains("run `indexer rebuild`"));
        assert_eq!(other.without_advice(), "the index in index was built from another database");
        let corrupt = IndexError::Corrupt { dir: "index".into(), reason: "a file is missing".to_owned() };
        assert_eq!(corrupt.without_advice(), "the index in index cannot be read (a file is missing)");
        assert!(corrupt.to_string().ends_with(": stop the indexer if one runs, then run `indexer rebuild`"));
        let text = "Footer magic byte mismatch. Please use tantivy 0.15".to_owned();
        assert_eq!(damage(&tantivy::TantivyError::InternalError(text)), "one of its files is damaged");
        let missing = IndexError::Missing { dir: "index".into() };
        assert_eq!(missing.without_advice(), "there is no index in index");
        assert!(missing.to_string().ends_with(": if no indexer is building it, run `indexer rebuild`"));
    }
}
