//! Prints the generated end of docs/FORMATS.md: the types that may be inferred and every finding code.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "## Inferred types\n\n{}", manifest::types_markdown())?;
    write!(out, "## Finding codes\n{}", manifest::catalogue_markdown())
}
