//! Prints the generated last part of docs/FORMATS.md: the types that may be inferred, and all finding codes.

#[path = "../tests/support/markdown.rs"]
mod markdown;

use std::io::{self, Write};

fn main() -> io::Result<()> {
    write!(io::stdout().lock(), "## Inferred types\n{}", markdown::tables())
}
