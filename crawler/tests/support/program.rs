//! Finds the program `crawler`.

use std::path::PathBuf;

/// The program in `target/PROFILE`; tests run in `target/PROFILE/deps`. `cargo build --workspace --bins` builds it.
pub(crate) fn crawler() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join(format!("crawler{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "{} is not built: run `cargo build --workspace --bins`", program.display());
    program
}
