//! The file of vectors: one quantised vector, called a code, for each text.
//!
//! A text is identified by its hash in the index, so that copies share a vector, a changed text needs a new one, and a rebuilt
//! index needs none. The file identifies the model, is always replaced as a whole, and ends with a hash of its content.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::code::Code;
use super::embedder::{DIMENSION_MAX, Embedder, VECTORS_MAX, VectorsError};

const NAME: &str = "vectors";
const MAGIC: [u8; 8] = *b"agdx-vec";
const VERSION: u32 = 1;
/// Magic, version, dimension, identity, count.
const HEADER_BYTES: u64 = 8 + 4 + 4 + 32 + 8;
const HASH_BYTES: u64 = 32;
/// Bytes of the hash of a text.
const KEY_BYTES: u64 = 8;
const SCALE_BYTES: u64 = 4;
/// The vectors of one model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vectors {
    identity: [u8; 32],
    dimension: usize,
    /// Hashes of the texts, ascending.
    keys: Vec<u64>,
    scales: Vec<f32>,
    /// Codes in rows of `dimension` bytes, in the order of `keys`.
    codes: Vec<u8>,
}

/// Identifies one version of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl Stamp {
    /// A number for entity tags; it changes when the file changes.
    pub(crate) fn number(self) -> u64 {
        let modified = self.modified.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let modified_ns =
            modified.map_or(0, |since| u64::from(since.subsec_nanos()) ^ (since.as_secs() << 30));
        self.bytes ^ self.inode.rotate_left(32) ^ modified_ns
    }
}

/// The current file of an index; `None` if there is none.
pub(crate) fn stamp(index_dir: &Path) -> Option<Stamp> {
    fs::metadata(index_dir.join(NAME)).ok().map(|metadata| stamp_of(&metadata))
}

fn stamp_of(metadata: &fs::Metadata) -> Stamp {
    use std::os::unix::fs::MetadataExt as _;
    Stamp { bytes: metadata.len(), modified: metadata.modified().ok(), inode: metadata.ino() }
}

impl Vectors {
    pub(crate) fn empty(embedder: &dyn Embedder) -> Self {
        Self {
            identity: embedder.identity(),
            dimension: embedder.dimension(),
            keys: Vec::new(),
            scales: Vec::new(),
            codes: Vec::new(),
        }
    }

    pub(crate) fn made_by(&self, embedder: &dyn Embedder) -> bool {
        self.identity == embedder.identity() && self.dimension == embedder.dimension()
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Size of the file.
    pub(crate) fn bytes(&self) -> u64 {
        file_bytes(self.keys.len() as u64, self.dimension as u64)
    }

    /// The row of a text.
    pub(crate) fn row(&self, key: u64) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// The cosine of the vector of a row and another, -1 to 1.
    pub(crate) fn cosine(&self, row: usize, to: &Code) -> f32 {
        let first = row * self.dimension;
        let own = self.codes.get(first..first + self.dimension).unwrap_or_default();
        let product = |(a, b): (&u8, &u8)| i32::from(i16::from(a.cast_signed()) * i16::from(b.cast_signed()));
        let sum: i32 = own.iter().zip(&to.numbers).map(product).sum();
        #[expect(clippy::cast_precision_loss, reason = "a sum below 2^24 at any dimension that is allowed")]
        let sum = sum as f32;
        (sum * self.scales.get(row).copied().unwrap_or_default() * to.scale).clamp(-1.0, 1.0)
    }

    /// Rows for the `wanted` texts, in ascending order, from the `fresh` rows and the existing ones.
    pub(crate) fn with(&self, fresh: &[(u64, Code)], wanted: &[u64]) -> Self {
        let mut fresh: Vec<&(u64, Code)> = fresh.iter().collect();
        fresh.sort_unstable_by_key(|(key, _)| *key);
        let mut next = Self { keys: Vec::new(), scales: Vec::new(), codes: Vec::new(), ..*self };
        next.codes.reserve_exact((self.len() + fresh.len()).min(wanted.len()) * self.dimension);
        for key in wanted {
            if let Ok(at) = fresh.binary_search_by_key(key, |(key, _)| *key)
                && let Some((_, code)) = fresh.get(at)
            {
                next.push(*key, code.scale, &code.numbers);
            } else if let Some(row) = self.row(*key) {
                let first = row * self.dimension;
                let scale = self.scales.get(row).copied().unwrap_or_default();
                next.push(*key, scale, self.codes.get(first..first + self.dimension).unwrap_or_default());
            }
        }
        next
    }

    fn push(&mut self, key: u64, scale: f32, code: &[u8]) {
        self.keys.push(key);
        self.scales.push(scale);
        self.codes.extend_from_slice(code);
    }

    /// The file of an index; `None` if there is none.
    pub(crate) fn read(index_dir: &Path) -> Result<Option<Self>, VectorsError> {
        let path = index_dir.join(NAME);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(VectorsError::File { path, source }),
        };
        match read(&file) {
            Ok(Ok(vectors)) => Ok(Some(vectors)),
            Ok(Err(reason)) => Err(VectorsError::Damaged { path, reason }),
            Err(source) => Err(VectorsError::File { path, source }),
        }
    }

    /// Replaces the file of an index.
    pub(crate) fn write(&self, index_dir: &Path) -> Result<Stamp, VectorsError> {
        let path = index_dir.join(NAME);
        let draft = index_dir.join(format!("{NAME}.new"));
        let written = self.write_to(&draft).and_then(|()| {
            let stamp = stamp_of(&fs::metadata(&draft)?);
            fs::rename(&draft, &path)?;
            File::open(index_dir)?.sync_all()?;
            Ok(stamp)
        });
        written.map_err(|source| VectorsError::File { path: PathBuf::from(&path), source })
    }

    fn write_to(&self, draft: &Path) -> io::Result<()> {
        let mut out = Hashed { inner: BufWriter::new(File::create(draft)?), hash: Sha256::new() };
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&u32::try_from(self.dimension).unwrap_or(u32::MAX).to_le_bytes())?;
        out.write_all(&self.identity)?;
        out.write_all(&(self.keys.len() as u64).to_le_bytes())?;
        for key in &self.keys {
            out.write_all(&key.to_le_bytes())?;
        }
        for scale in &self.scales {
            out.write_all(&scale.to_le_bytes())?;
        }
        out.write_all(&self.codes)?;
        let Hashed { mut inner, hash } = out;
        inner.write_all(&hash.finalize())?;
        inner.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

fn file_bytes(count: u64, dimension: u64) -> u64 {
    HEADER_BYTES + count * (KEY_BYTES + SCALE_BYTES + dimension) + HASH_BYTES
}

/// Reads a file that may be damaged; the inner error describes the damage.
fn read(file: &File) -> io::Result<Result<Vectors, &'static str>> {
    let bytes = file.metadata()?.len();
    if bytes < file_bytes(0, 0) {
        return Ok(Err("it is truncated"));
    }
    let mut from = Hashed { inner: BufReader::new(file), hash: Sha256::new() };
    if from.array::<8>()? != MAGIC || u32::from_le_bytes(from.array()?) != VERSION {
        return Ok(Err("it has another version"));
    }
    let dimension = u64::from(u32::from_le_bytes(from.array()?));
    let identity = from.array()?;
    let count = u64::from_le_bytes(from.array()?);
    if dimension == 0 || dimension > DIMENSION_MAX as u64 || count > VECTORS_MAX as u64 {
        return Ok(Err("its header has a dimension or a count that is out of range"));
    }
    if file_bytes(count, dimension) != bytes {
        return Ok(Err("its length does not match its header"));
    }
    let mut keys = Vec::new();
    let mut scales = Vec::new();
    for _ in 0..count {
        keys.push(u64::from_le_bytes(from.array()?));
    }
    for _ in 0..count {
        scales.push(f32::from_le_bytes(from.array()?));
    }
    let dimension = usize::try_from(dimension).unwrap_or_default();
    let mut codes = vec![0; keys.len() * dimension];
    from.read_exact(&mut codes)?;
    let Hashed { mut inner, hash } = from;
    let mut expected = [0; 32];
    inner.read_exact(&mut expected)?;
    let is_ascending = keys.is_sorted_by(|a, b| a < b);
    if hash.finalize().as_slice() != expected || !is_ascending {
        return Ok(Err("its hash does not match its content"));
    }
    Ok(Ok(Vectors { identity, dimension, keys, scales, codes }))
}

/// Hashes all bytes that are read or written.
struct Hashed<T> {
    inner: T,
    hash: Sha256,
}

impl<T: Read> Hashed<T> {
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut found = [0; N];
        self.read_exact(&mut found)?;
        Ok(found)
    }
}

impl<T: Read> Read for Hashed<T> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.hash.update(into.get(..count).unwrap_or_default());
        Ok(count)
    }
}

impl<T: Write> Write for Hashed<T> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(from)?;
        self.hash.update(from.get(..count).unwrap_or_default());
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::embedder::EmbedderError;

    #[derive(Debug)]
    struct Other;

    impl Embedder for Other {
        fn dimension(&self) -> usize {
            3
        }

        fn identity(&self) -> [u8; 32] {
            [7; 32]
        }

        fn embed(&self, _: &[&str]) -> Result<Vec<Vec<f32>>, EmbedderError> {
            Ok(Vec::new())
        }
    }

    fn some() -> Vectors {
        let fresh = [(9, Code::of(&[0.0, 1.0, 0.0])), (4, Code::of(&[0.6, 0.8, 0.0]))];
        Vectors::empty(&Other).with(&fresh, &[4, 9])
    }

    #[test]
    fn codes_preserve_the_cosine() {
        let vectors = some();
        let near = Code::of(&[0.6, 0.8, 0.0]);
        let cosine = |key| vectors.cosine(vectors.row(key).unwrap(), &near);
        assert!((cosine(4) - 1.0).abs() < 0.01, "{}", cosine(4));
        assert!((cosine(9) - 0.8).abs() < 0.01, "{}", cosine(9));
        let against = Code::of(&[-0.6, -0.8, 0.0]);
        assert!(vectors.cosine(0, &against) < -0.98);
        assert!(vectors.cosine(0, &Code::of(&[0.0, 0.0, 0.0])).abs() < f32::EPSILON);
        assert!(vectors.cosine(0, &Code::of(&[f32::NAN, 0.0, 0.0])).abs() < f32::EPSILON);
    }

    #[test]
    fn reads_back_what_it_writes() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Vectors::read(dir.path()).unwrap(), None);
        assert_eq!(stamp(dir.path()), None);
        let vectors = some();
        let written = vectors.write(dir.path()).unwrap();
        assert_eq!(stamp(dir.path()), Some(written));
        assert_eq!(Vectors::read(dir.path()).unwrap().unwrap(), vectors);
        assert!(vectors.made_by(&Other));
        assert_eq!(fs::metadata(dir.path().join(NAME)).unwrap().len(), vectors.bytes());
        assert!(!dir.path().join("vectors.new").exists());
    }

    #[test]
    fn removes_rows_that_are_not_wanted() {
        let next = some().with(&[(5, Code::of(&[0.0, 0.0, 1.0]))], &[5, 9]);
        assert_eq!((next.row(4), next.row(5), next.row(9)), (None, Some(0), Some(1)));
        assert!(next.cosine(1, &Code::of(&[0.0, 1.0, 0.0])) > 0.99);
        assert_eq!(next.with(&[], &[]).len(), 0);
    }

    #[test]
    fn detects_every_damaged_byte_and_every_truncation() {
        let dir = tempfile::tempdir().unwrap();
        some().write(dir.path()).unwrap();
        let path = dir.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            fs::write(&path, &damaged).unwrap();
            assert!(matches!(Vectors::read(dir.path()), Err(VectorsError::Damaged { .. })), "byte {at}");
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(matches!(Vectors::read(dir.path()), Err(VectorsError::Damaged { .. })), "{length} bytes");
        }
    }
}
