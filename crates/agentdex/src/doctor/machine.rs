//! What the machine says: the time, limits, room on a disk.

use std::path::Path;

use chrono::{DateTime, Utc};

/// How many files a process may hold open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenFiles {
    AtMost(u64),
    Unlimited,
    Unknown,
}

#[expect(clippy::disallowed_methods, reason = "the edge of the program, where time comes in")]
pub(super) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// The soft limit of this process, which the programs inherit when they are started the same way.
pub(super) fn open_files() -> OpenFiles {
    read_open_files(&std::fs::read_to_string("/proc/self/limits").unwrap_or_default())
}

fn read_open_files(limits: &str) -> OpenFiles {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    match line.and_then(|line| line.split_whitespace().next()) {
        Some("unlimited") => OpenFiles::Unlimited,
        Some(count) => count.parse().map_or(OpenFiles::Unknown, OpenFiles::AtMost),
        None => OpenFiles::Unknown,
    }
}

/// Bytes that may still be written below a directory, or below the nearest one above it that exists.
pub(super) fn room(dir: &Path) -> std::io::Result<u64> {
    let dir = std::path::absolute(dir)?;
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or_else(|| Path::new("/"));
    // A file that is never named proves that the directory can be written to, and leaves nothing behind.
    tempfile::tempfile_in(existing)?;
    let disk = rustix::fs::statvfs(existing)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_read_from_the_systems_words() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 524288               files\n";
        assert_eq!(read_open_files(text), OpenFiles::AtMost(1_024));
        assert_eq!(read_open_files("Max open files   unlimited unlimited files"), OpenFiles::Unlimited);
        assert_eq!(read_open_files(""), OpenFiles::Unknown);
    }

    #[test]
    fn room_is_measured_where_the_directory_will_be() {
        let dir = tempfile::tempdir().unwrap();
        assert!(room(&dir.path().join("not/made/yet")).unwrap() > 0);
        assert!(!dir.path().join("not").exists());
        assert!(room(Path::new("/proc/1")).is_err());
    }
}
