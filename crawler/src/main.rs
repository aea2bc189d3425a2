//! The crawler's program; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    crawler::cli::main()
}
