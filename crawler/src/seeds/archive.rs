//! A list in a zip archive, as Tranco and others publish theirs: its first file.

use std::io::{Cursor, Read};

use zip::ZipArchive;

/// Largest archive that is read; Tranco's million has 10 MB.
const ARCHIVE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Largest list inside; a hundred million domains.
const LIST_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// The bytes of the list inside.
pub(super) fn unpack(source: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    source.take(ARCHIVE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > ARCHIVE_BYTES_MAX {
        return Err(format!("the archive is larger than {} MiB", ARCHIVE_BYTES_MAX >> 20));
    }
    let broken = |error: zip::result::ZipError| format!("it is not a usable zip archive: {error}");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(broken)?;
    let is_list =
        |index: &usize| matches!(archive.name_for_index(*index), Some(Ok(name)) if !name.ends_with('/'));
    let first = (0..archive.len()).find(is_list).ok_or("the archive is empty")?;
    let file = archive.by_index(first).map_err(broken)?;
    let mut list = Vec::new();
    file.take(LIST_BYTES_MAX).read_to_end(&mut list).map_err(|error| error.to_string())?;
    Ok(list)
}
