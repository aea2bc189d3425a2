//! Snapshots: the index of one machine, published to a directory or a bucket, from which replicas without an indexer fetch it.
//!
//! A snapshot is a manifest, `current.json`, and files by their SHA-256 below `files/`. Segments never change, so a snapshot adds only new
//! files, and a replica copies only those. The manifest is replaced atomically after all files are written, and the files of the previous
//! snapshot are kept, so that a reader finds all files of the manifest that it has read. This also applies to a copy by a tool that copies
//! `current.json` last. Buckets need the feature `s3`.

#[cfg(feature = "s3")]
mod bucket;
#[cfg(feature = "s3")]
mod call_error;
mod directory;
mod error;
mod fetch;
mod location;
mod manifest;
mod publish;
mod publish_loop;
mod storage;

#[cfg(feature = "s3")]
pub use bucket::Bucket;
pub use directory::Directory;
pub use error::SnapshotError;
pub use fetch::{FetchResult, fetch};
pub use location::{LocationError, SnapshotLocation};
pub use manifest::{Snapshot, SnapshotFile};
pub use publish::{PublishResult, publish};
pub use publish_loop::{PublishOutcome, keep_publishing, publish_logged};
pub use storage::{CopiedFile, Publication, SnapshotStorage};
