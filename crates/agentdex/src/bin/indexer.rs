//! The program `indexer`. Its code is in the library `indexer`.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    indexer::program::main()
}
