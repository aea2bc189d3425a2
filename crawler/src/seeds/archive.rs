//! Reads a list in a zip archive, as published by Tranco and others: the first list of the archive, decompressed line by line.
//!
//! Memory holds the archive itself, a table of its files, and the 32 KiB window of the decompressor, but never the whole list.

use std::io::{self, Cursor, Read};

use zip::ZipArchive;

/// Maximum bytes of an archive. Tranco's list of a million names has 10 MB.
pub(super) const ARCHIVE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of files in an archive, because the library keeps the table of files in memory. Archives of lists contain one file.
const FILES_MAX: usize = 1_000;
/// First bytes of each entry in the table of files.
const FILE_SIGNATURE: &[u8] = b"PK\x01\x02";
/// Maximum number of bytes of the list for one byte of the archive: domains compress about 3:1.
const RATIO_MAX: u64 = 50;
/// Lists up to this number of bytes are accepted at any compression ratio.
const LIST_BYTES_MIN: u64 = 1024 * 1024;

/// An archive in memory.
pub(super) type Archive = ZipArchive<Cursor<Vec<u8>>>;

/// Opens an archive. Refuses one with too many files.
pub(super) fn open(source: impl Read, bytes_max: u64) -> Result<Archive, String> {
    let mut bytes = Vec::new();
    source.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > bytes_max {
        return Err(format!("the archive is larger than {} MiB", bytes_max >> 20));
    }
    if files(&bytes) > FILES_MAX {
        return Err(format!("the archive holds more than {FILES_MAX} files"));
    }
    ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))
}

/// Upper bound of the number of files: each entry begins with the signature. Other data contains it only by chance.
fn files(bytes: &[u8]) -> usize {
    bytes.windows(FILE_SIGNATURE.len()).filter(|window| *window == FILE_SIGNATURE).count()
}

/// Extensions of lists. If no file has one of them, the first file is read.
const LIST_ENDINGS: [&str; 4] = [".csv", ".txt", ".tsv", ".list"];

fn is_list(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    LIST_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The first list of an archive, decompressed as it is read.
pub(super) fn list(archive: &mut Archive) -> Result<impl Read + use<'_>, String> {
    let has_name = |index: usize, is_it: fn(&str) -> bool| matches!(archive.name_for_index(index), Some(Ok(name)) if is_it(&name));
    let list = (0..archive.len()).find(|index| has_name(*index, is_list));
    let file = || (0..archive.len()).find(|index| has_name(*index, |name| !name.ends_with('/')));
    let first = list.or_else(file).ok_or("the archive is empty")?;
    let file = archive.by_index(first).map_err(|error| broken(&error))?;
    let bytes_max =
        file.compressed_size().min(ARCHIVE_BYTES_MAX).saturating_mul(RATIO_MAX).max(LIST_BYTES_MIN);
    Ok(Capped { source: file, left: bytes_max })
}

fn broken(error: &zip::result::ZipError) -> String {
    format!("it is not a usable zip archive: {error}")
}

/// A source that returns an error after a maximum length.
struct Capped<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        let Some(left) = self.left.checked_sub(read as u64) else {
            let reason = format!("the list expands to more than {RATIO_MAX} times its size");
            return Err(io::Error::other(reason));
        };
        self.left = left;
        Ok(read)
    }
}
