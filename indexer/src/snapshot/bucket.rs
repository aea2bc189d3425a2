//! Snapshots in a bucket of S3-compatible storage.
//!
//! The objects are the files of the directory form, written in the same order: files first, `current.json` last, on the condition that no
//! other client has written it since it was read, if the storage supports conditions. Credentials, region and endpoint come from the
//! standard `AWS_…` variables; they appear in no log and no error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use futures::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetResult, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    RetryConfig, UpdateVersion,
};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::call_error::{CallError, storage_error};
use super::error::{SnapshotError, failed};
use super::manifest::{FILES_MAX, HASH_LENGTH, MANIFEST_BYTES_MAX, Snapshot, SnapshotFile};
use super::storage::{
    CURRENT, CopiedFile, FILES, Publication, SnapshotStorage, WRITE_CHECK, copy_hashed, file_hashes, usable,
};

/// Size of one part. It is held in memory, and at 3 Mbit/s it is transferred within the 30 s of a request. An object may have 10,000 parts,
/// which is 80 GiB.
const PART_BYTES: usize = 8 * 1024 * 1024;
/// Time limit of one call with all its retries.
const CALL_TIME_MAX: Duration = Duration::from_mins(2);
/// Maximum number of retries of one request, and how long after the first attempt the last one may begin.
const RETRIES_MAX: usize = 3;
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum number of objects below `files/`: more than two snapshots and leftovers of interrupted publications.
const LISTED_MAX: usize = 4 * FILES_MAX;

/// A bucket of snapshots, or a part of one.
#[derive(Debug, Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    location: String,
    prefix: Path,
    runtime: Handle,
    cancel: CancellationToken,
}

impl Bucket {
    /// The bucket of the `AWS_…` variables. Makes no request yet.
    pub(super) fn from_env(
        name: &str,
        prefix: &str,
        cancel: CancellationToken,
    ) -> Result<Self, SnapshotError> {
        // The client uses the TLS provider of the process.
        drop(rustls::crypto::ring::default_provider().install_default());
        let retry =
            RetryConfig { max_retries: RETRIES_MAX, retry_timeout: RETRY_TIME_MAX, ..RetryConfig::default() };
        let location =
            if prefix.is_empty() { format!("s3://{name}") } else { format!("s3://{name}/{prefix}") };
        let store = AmazonS3Builder::from_env().with_bucket_name(name).with_retry(retry).build();
        let store = store.map_err(|error| storage_error(&location, "used", &error))?;
        Ok(Self::new(Arc::new(store), location, prefix, cancel))
    }

    /// Uses any object storage; `location` is its name in errors. Must be called within the runtime on which its requests run.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        location: String,
        prefix: &str,
        cancel: CancellationToken,
    ) -> Self {
        Self { store, location, prefix: Path::from(prefix), runtime: Handle::current(), cancel }
    }

    fn manifest(&self) -> Path {
        self.prefix.clone().join(CURRENT)
    }

    fn files(&self) -> Path {
        self.prefix.clone().join(FILES)
    }

    /// Runs a call until its time limit or until the program stops.
    fn call<T>(
        &self,
        operation: &'static str,
        future: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, CallError> {
        let limited =
            async { self.cancel.run_until_cancelled(tokio::time::timeout(CALL_TIME_MAX, future)).await };
        match self.runtime.block_on(limited) {
            Some(Ok(Ok(done))) => Ok(done),
            Some(Ok(Err(error))) => Err(CallError::Store { operation, error: Box::new(error) }),
            Some(Err(_)) => Err(CallError::TimedOut { operation, after: CALL_TIME_MAX }),
            None => Err(CallError::Cancelled),
        }
    }

    fn invalid(&self, reason: String) -> SnapshotError {
        SnapshotError::Invalid { location: self.location(), reason }
    }

    /// The current manifest and the version of its object.
    fn read(&self) -> Result<(Result<Snapshot, SnapshotError>, UpdateVersion), SnapshotError> {
        let object_path = self.manifest();
        let got = self.call("read", async {
            let got = self.store.get(&object_path).await?;
            let version = UpdateVersion { e_tag: got.meta.e_tag.clone(), version: got.meta.version.clone() };
            Ok((version, capped(got, MANIFEST_BYTES_MAX).await?))
        });
        let (version, bytes) = got.map_err(|error| match error {
            error if error.is_missing_object() => SnapshotError::Missing { location: self.location() },
            error => error.into_error(&self.location),
        })?;
        Ok((Snapshot::parse(&self.location, &bytes), version))
    }

    /// Hashes and sizes of the objects below `files/`; other names are ignored.
    fn list(&self) -> Result<BTreeMap<String, u64>, SnapshotError> {
        let files = self.files();
        let listed = self.call("listed", async {
            let mut all = self.store.list(Some(&files));
            let mut found = BTreeMap::new();
            while let Some(object) = all.try_next().await? {
                let hash = object.location.filename().filter(|name| is_hash(name));
                if let Some(hash) = hash {
                    found.insert(hash.to_owned(), object.size);
                }
                if found.len() > LISTED_MAX {
                    break;
                }
            }
            Ok(found)
        });
        let found = listed.map_err(|error| error.into_error(&self.location))?;
        if found.len() > LISTED_MAX {
            return Err(self.invalid(format!("it has more than {LISTED_MAX} files: use an empty prefix")));
        }
        Ok(found)
    }

    /// Uploads a file in one request, or in parts that become visible with the last one.
    fn send(&self, from: &FilePath, to: &Path, bytes: u64) -> Result<(), SnapshotError> {
        let error = |error: CallError| error.into_error(&self.location);
        let mut file = File::open(from).map_err(failed(from))?;
        if bytes <= PART_BYTES as u64 {
            let all = part(&mut file).map_err(failed(from))?;
            return self.call("written", self.store.put(to, all.into())).map(drop).map_err(error);
        }
        let mut upload = self.call("written", self.store.put_multipart(to)).map_err(error)?;
        let mut sent = || loop {
            let next = part(&mut file).map_err(failed(from))?;
            if next.is_empty() {
                return self.call("written", upload.complete()).map(drop).map_err(error);
            }
            self.call("written", upload.put_part(next.into())).map_err(error)?;
        };
        let sent = sent();
        if sent.is_err() && self.call("written", upload.abort()).is_err() {
            tracing::debug!(
                location = self.location,
                "an incomplete upload remains until the storage removes it"
            );
        }
        sent
    }
}

impl SnapshotStorage for Bucket {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn current(&self) -> Result<Snapshot, SnapshotError> {
        self.read()?.0
    }

    fn copy(&self, file: &SnapshotFile, to: &FilePath) -> Result<CopiedFile, SnapshotError> {
        let from = self.files().join(file.sha256.as_str());
        let mut out = File::create(to).map_err(failed(to))?;
        let mut hash = Sha256::new();
        let mut offset = 0;
        while offset < file.bytes {
            let end = file.bytes.min(offset + PART_BYTES as u64);
            let options = GetOptions::new().with_range(Some(offset..end));
            let got = self.call("read", async {
                let got = self.store.get_opts(&from, options).await?;
                Ok((got.meta.size, capped(got, end - offset).await?))
            });
            let (size, bytes) = got.map_err(|error| error.into_error(&self.location))?;
            if size != file.bytes || bytes.len() as u64 != end - offset {
                return Ok(CopiedFile { bytes: size, sha256: String::new() });
            }
            hash.update(&bytes);
            out.write_all(&bytes).map_err(failed(to))?;
            offset = end;
        }
        out.sync_all().map_err(failed(to))?;
        Ok(CopiedFile { bytes: offset, sha256: HEXLOWER.encode(&hash.finalize()) })
    }

    fn check_writable(&self) -> Result<(), SnapshotError> {
        let object_path = self.prefix.clone().join(WRITE_CHECK);
        let error = |error: CallError| error.into_error(&self.location);
        self.list()?;
        self.call("written", self.store.put(&object_path, PutPayload::new())).map_err(error)?;
        self.call("removed", self.store.delete(&object_path)).map_err(error)
    }

    fn begin(&self) -> Result<Box<dyn Publication + '_>, SnapshotError> {
        let (current, version) = match self.read() {
            Ok((snapshot, version)) => (snapshot, Some(version)),
            Err(error) => (Err(error), None),
        };
        let last = usable(current)?;
        Ok(Box::new(Publishing { bucket: self, last, version, stored: self.list()? }))
    }
}

struct Publishing<'a> {
    bucket: &'a Bucket,
    last: Option<Snapshot>,
    /// Version of the previous manifest in the bucket.
    version: Option<UpdateVersion>,
    stored: BTreeMap<String, u64>,
}

impl Publishing<'_> {
    fn put_manifest(&self, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        let bucket = self.bucket;
        let text = snapshot.to_json().map_err(|error| bucket.invalid(error.to_string()))?;
        let mode = match &self.version {
            Some(version) if version.e_tag.is_some() => PutMode::Update(version.clone()),
            Some(_) => PutMode::Overwrite,
            None => PutMode::Create,
        };
        let object_path = bucket.manifest();
        let put = |mode: PutMode| {
            let options = PutOptions { mode, ..PutOptions::default() };
            let payload = PutPayload::from(text.clone());
            bucket.call("written", bucket.store.put_opts(&object_path, payload, options)).map(drop)
        };
        match put(mode) {
            Err(error) if error.is_conflict() => Err(SnapshotError::Locked { location: bucket.location() }),
            // the storage does not support conditional writes, or they are disabled
            Err(error) if error.is_unsupported() => {
                put(PutMode::Overwrite).map_err(|error| error.into_error(&bucket.location))
            }
            put => put.map_err(|error| error.into_error(&bucket.location)),
        }
    }

    fn remove_stale(&self, named: &BTreeSet<&str>) -> Result<(), SnapshotError> {
        let bucket = self.bucket;
        for stale in self.stored.keys().filter(|hash| !named.contains(hash.as_str())) {
            let object_path = bucket.files().join(stale.as_str());
            match bucket.call("removed", bucket.store.delete(&object_path)) {
                Err(error) if !error.is_missing_object() => {
                    return Err(error.into_error(&bucket.location));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Publication for Publishing<'_> {
    fn last(&self) -> Option<&Snapshot> {
        self.last.as_ref()
    }

    fn has(&self, sha256: &str, bytes: u64) -> bool {
        self.stored.get(sha256) == Some(&bytes)
    }

    fn put(&mut self, _name: &str, from: &FilePath) -> Result<CopiedFile, SnapshotError> {
        let read = || copy_hashed(&mut File::open(from)?, &mut io::sink(), u64::MAX);
        let copied = read().map_err(failed(from))?;
        if !self.has(&copied.sha256, copied.bytes) {
            let to = self.bucket.files().join(copied.sha256.as_str());
            self.bucket.send(from, &to, copied.bytes)?;
            self.stored.insert(copied.sha256.clone(), copied.bytes);
        }
        Ok(copied)
    }

    fn end(self: Box<Self>, snapshot: &Snapshot) -> Result<(), SnapshotError> {
        self.put_manifest(snapshot)?;
        self.remove_stale(&file_hashes([self.last.as_ref(), Some(snapshot)]))
    }
}

fn is_hash(name: &str) -> bool {
    name.len() == HASH_LENGTH && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The next part of a file.
fn part(file: &mut File) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    file.take(PART_BYTES as u64).read_to_end(&mut part)?;
    Ok(part)
}

/// Reads a body of at most `bytes_max` bytes.
async fn capped(got: GetResult, bytes_max: u64) -> object_store::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut chunks = got.into_stream();
    while let Some(chunk) = chunks.try_next().await? {
        if bytes.len() as u64 + chunk.len() as u64 > bytes_max {
            let source = format!("an object has more than {bytes_max} bytes").into();
            return Err(Error::Generic { store: "S3", source });
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
