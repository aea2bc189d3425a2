//! Decompresses a gzip list while it is read. Common Crawl publishes such lists.

use std::cell::Cell;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

/// First bytes of a gzip file.
const SIGNATURE: &[u8] = b"\x1f\x8b";
/// Maximum number of bytes of a list for one byte of the file: lists of names compress about 4:1.
const RATIO_MAX: u64 = 50;
/// Lists up to this number of bytes are accepted at any compression ratio.
const LIST_BYTES_MIN: u64 = 1024 * 1024;

pub(super) fn is_gzip(first: &[u8]) -> bool {
    first.starts_with(SIGNATURE)
}

/// The decompressed list. Reading fails if it expands to more than [`RATIO_MAX`] times its size.
pub(super) fn list(source: impl BufRead) -> impl Read {
    let compressed = Rc::new(Cell::new(0));
    let counted = Counted { source, bytes: Rc::clone(&compressed) };
    Limited { list: MultiGzDecoder::new(counted), bytes: 0, compressed }
}

/// Counts the bytes that are taken from a source.
struct Counted<R> {
    source: R,
    bytes: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.bytes.set(self.bytes.get() + read as u64);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.source.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes as u64);
        self.source.consume(bytes);
    }
}

/// Returns an error if a list expands to more than [`RATIO_MAX`] times the bytes that were read from its file.
struct Limited<R> {
    list: R,
    bytes: u64,
    compressed: Rc<Cell<u64>>,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.list.read(buffer)?;
        self.bytes += read as u64;
        if self.bytes > self.compressed.get().saturating_mul(RATIO_MAX).max(LIST_BYTES_MIN) {
            return Err(io::Error::other(format!(
                "the list expands to more than {RATIO_MAX} times its size"
            )));
        }
        Ok(read)
    }
}
