//! Facts about the machine: the time, limits, free disk space.

use std::path::Path;

use chrono::{DateTime, Utc};

/// How many files a process may hold open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenFiles {
    AtMost(u64),
    Unlimited,
    Unknown,
}

#[expect(clippy::disallowed_methods, reason = "the clock of an interactive command")]
pub(super) fn now() -> DateTime<Utc> {
    Utc::now()
}

/// The hard limit of this process, which programs started the same way inherit, and to which they raise their soft limit.
pub(super) fn open_files() -> OpenFiles {
    read_open_files(&std::fs::read_to_string("/proc/self/limits").unwrap_or_default())
}

fn read_open_files(limits: &str) -> OpenFiles {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    match line.and_then(|line| line.split_whitespace().nth(1)) {
        Some("unlimited") => OpenFiles::Unlimited,
        Some(count) => count.parse().map_or(OpenFiles::Unknown, OpenFiles::AtMost),
        None => OpenFiles::Unknown,
    }
}

/// Free bytes for a directory, or for its nearest ancestor that exists.
pub(super) fn free_bytes(dir: &Path) -> std::io::Result<u64> {
    let dir = std::path::absolute(dir)?;
    let existing = dir.ancestors().find(|dir| dir.exists()).unwrap_or_else(|| Path::new("/"));
    // an unnamed file proves that the directory is writable, and is removed automatically
    tempfile::tempfile_in(existing)?;
    let disk = rustix::fs::statvfs(existing)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_hard_limit_from_the_system() {
        let text = "Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 524288               files\n";
        assert_eq!(read_open_files(text), OpenFiles::AtMost(524_288));
        assert_eq!(read_open_files("Max open files   unlimited unlimited files"), OpenFiles::Unlimited);
        assert_eq!(read_open_files(""), OpenFiles::Unknown);
    }

    #[test]
    fn measures_free_space_for_a_directory_that_does_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free_bytes(&dir.path().join("not/made/yet")).unwrap() > 0);
        assert!(!dir.path().join("not").exists());
        assert!(free_bytes(Path::new("/proc/1")).is_err());
    }
}
