//! The configured location of snapshots: a directory, or a bucket of S3-compatible storage.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use settings::{Feature, MissingFeature};
use tokio_util::sync::CancellationToken;

#[cfg(feature = "s3")]
use super::bucket::Bucket;
use super::directory::Directory;
use super::error::SnapshotError;
use super::storage::SnapshotStorage;

/// The storage of snapshots in buckets.
const BUCKETS: Feature = Feature { name: "s3", is_built: cfg!(feature = "s3") };
/// Prefix of a bucket's URL.
const S3: &str = "s3://";
/// Lengths of a bucket's name, by the rules of S3.
const NAME_LENGTHS: std::ops::RangeInclusive<usize> = 3..=63;
/// Maximum length of a prefix in bytes: S3 allows 1,024 for a whole key, and file names take about 80.
const PREFIX_BYTES_MAX: usize = 900;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum SnapshotLocation {
    Directory(PathBuf),
    /// `prefix` may be empty, and neither begins nor ends with a slash.
    Bucket {
        name: String,
        prefix: String,
    },
}

/// Why a text is not a location of snapshots.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    #[error(
        "\"{text}\" is not a location for snapshots ({reason}): write a directory, or s3://bucket/prefix"
    )]
    Invalid { text: String, reason: &'static str },
    #[error("\"{text}\" is a bucket, and {source}")]
    NotBuilt { text: String, source: MissingFeature },
}

impl SnapshotLocation {
    /// Opens the storage without sending a request. Calls to a bucket end when `cancel` is cancelled. Must be called within the runtime on
    /// which its requests run.
    pub fn open(&self, cancel: CancellationToken) -> Result<Box<dyn SnapshotStorage>, SnapshotError> {
        match self {
            Self::Directory(dir) => Ok(Box::new(Directory::new(dir))),
            #[cfg(feature = "s3")]
            Self::Bucket { name, prefix } => Ok(Box::new(Bucket::from_env(name, prefix, cancel)?)),
            #[cfg(not(feature = "s3"))]
            Self::Bucket { .. } => {
                drop(cancel);
                let reason = "this program was built without the feature `s3`".to_owned();
                let advice = "build it with `cargo build --release --features s3`";
                Err(SnapshotError::Store { location: self.to_string(), operation: "used", reason, advice })
            }
        }
    }

    /// Parses a location. Buckets need the feature `buckets`.
    fn parse(text: &str, buckets: Feature) -> Result<Self, LocationError> {
        let wrong = |reason| Err(LocationError::Invalid { text: text.to_owned(), reason });
        if text.is_empty() {
            return wrong("it is empty");
        }
        let Some(rest) = text.strip_prefix(S3) else {
            if text.contains("://") {
                return wrong("the only kind of URL is s3://");
            }
            return Ok(Self::Directory(text.into()));
        };
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte);
        if !NAME_LENGTHS.contains(&name.len()) || !name.bytes().all(is_name) {
            return wrong("a bucket's name has 3 to 63 lower-case letters, digits, dots and hyphens");
        }
        let prefix = prefix.trim_end_matches('/');
        let is_part = |part: &str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-=".contains(&byte);
            !matches!(part, "" | "." | "..") && part.bytes().all(is_plain)
        };
        if prefix.len() > PREFIX_BYTES_MAX || !(prefix.is_empty() || prefix.split('/').all(is_part)) {
            return wrong("a prefix has letters, digits and ._-= between single slashes, at most 900");
        }
        buckets.require().map_err(|source| LocationError::NotBuilt { text: text.to_owned(), source })?;
        Ok(Self::Bucket { name: name.to_owned(), prefix: prefix.to_owned() })
    }
}

impl fmt::Display for SnapshotLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(dir) => write!(out, "{}", dir.display()),
            Self::Bucket { name, prefix } if prefix.is_empty() => write!(out, "{S3}{name}"),
            Self::Bucket { name, prefix } => write!(out, "{S3}{name}/{prefix}"),
        }
    }
}

impl FromStr for SnapshotLocation {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        Self::parse(text, BUCKETS)
    }
}

impl TryFrom<String> for SnapshotLocation {
    type Error = LocationError;

    fn try_from(text: String) -> Result<Self, LocationError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT: Feature = Feature { is_built: true, ..BUCKETS };

    #[test]
    fn parses_directories_and_buckets() {
        for (text, shown) in [
            ("/srv/snapshots", "/srv/snapshots"),
            ("snapshots", "snapshots"),
            ("s3://books", "s3://books"),
            ("s3://books/", "s3://books"),
            ("s3://books.example/agentdex/index/", "s3://books.example/agentdex/index"),
        ] {
            let location = SnapshotLocation::parse(text, BUILT).unwrap();
            assert_eq!(location.to_string(), shown);
            assert_eq!(
                matches!(location, SnapshotLocation::Bucket { .. }),
                text.starts_with("s3:"),
                "{text}"
            );
        }
    }

    #[test]
    fn errors_describe_valid_locations() {
        for (text, reason) in [
            ("", "empty"),
            ("gs://books/x", "only kind of URL"),
            ("https://books.s3.amazonaws.com/x", "only kind of URL"),
            ("s3://", "a bucket's name"),
            ("s3:///x", "a bucket's name"),
            ("s3://Books/x", "a bucket's name"),
            ("s3://user:word@books/x", "a bucket's name"),
            ("s3://books/../x", "a prefix"),
            ("s3://books/a//b", "a prefix"),
            ("s3://books/a?b=c", "a prefix"),
        ] {
            let error = SnapshotLocation::parse(text, BUILT).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("s3://bucket/prefix"), "{error}");
        }
    }
    #[test]
    fn without_the_feature_a_bucket_is_refused() {
        let left_out = Feature { is_built: false, ..BUCKETS };
        let error = SnapshotLocation::parse("s3://books/agentdex", left_out).unwrap_err().to_string();
        assert!(error.contains("s3://books/agentdex") && error.contains("--features s3"), "{error}");
        assert!(SnapshotLocation::parse("/srv/snapshots", left_out).is_ok());
    }
}
