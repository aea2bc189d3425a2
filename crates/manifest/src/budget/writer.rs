//! A writer with a limit.

use std::io;

/// Forwards bytes to another writer. A write beyond the limit fails with [`io::ErrorKind::FileTooLarge`].
pub struct LimitedWriter<W> {
    inner: W,
    bytes_left: usize,
}

impl<W: io::Write> LimitedWriter<W> {
    /// Allows `bytes_max` bytes.
    pub const fn new(inner: W, bytes_max: usize) -> Self {
        Self { inner, bytes_left: bytes_max }
    }

    /// Number of bytes that may still be written.
    pub const fn bytes_left(&self) -> usize {
        self.bytes_left
    }
}

impl<W: io::Write> io::Write for LimitedWriter<W> {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        let left = self.bytes_left.checked_sub(part.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        let written = self.inner.write(part)?;
        self.bytes_left = left.saturating_add(part.len().saturating_sub(written));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
