//! The free space on the disk of an embedded database.

use std::path::Path;

const MIB: u64 = 1024 * 1024;
/// A twentieth of the disk is kept free of new documents,
const RESERVE_SHARE: u64 = 20;
/// but at least this much, so that clocks, opt-outs, claims and small changes can be written,
const RESERVE_MIN: u64 = 8 * MIB;
/// and at most this much.
const RESERVE_MAX: u64 = 1024 * MIB;

/// Whether the disk of a file has less free space than is kept free of new documents. False if the system does not tell.
pub(crate) fn is_nearly_full(file: &Path) -> bool {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    rustix::fs::statvfs(dir).is_ok_and(|disk| {
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        bytes(disk.f_bavail) < reserve(bytes(disk.f_blocks))
    })
}

fn reserve(disk_bytes: u64) -> u64 {
    (disk_bytes / RESERVE_SHARE).clamp(RESERVE_MIN, RESERVE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_twentieth_of_the_disk_is_kept_free_within_bounds() {
        assert_eq!(reserve(24 * MIB), 8 * MIB);
        assert_eq!(reserve(2_000 * MIB), 100 * MIB);
        assert_eq!(reserve(1 << 40), 1024 * MIB);
        assert!(!is_nearly_full(Path::new("/no/such/directory/file")));
    }
}
