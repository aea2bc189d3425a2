//! Keeps a program responsive, whatever its input.
//!
//! [`ReaderPool`] reads untrusted documents on separate threads, so that no document blocks the async runtime. [`ReaderProgram`] reads them
//! in separate processes with limits of the operating system, so that no document uses up the memory of the program. [`Watchdog`] detects
//! workers of the runtime that are blocked nevertheless. [`Shutdown`] receives signals on a separate thread and ends the program within its
//! drain time, even if the runtime is blocked. [`Shares`] prevents one client from exhausting a resource that all clients share.
//! [`serve_metrics`] serves the metrics of the program.

mod document;
mod metrics_listener;
mod open_files;
mod pool;
mod program;
mod shares;
mod shutdown;
mod watchdog;

pub use document::OwnedDocument;
pub use metrics_listener::{MetricsError, serve_metrics};
pub use pool::{ReadError, ReaderLimits, ReaderPool};
pub use program::{ReaderProgram, Unread, read_from_stdin, read_isolated};
pub use shares::{LimitReached, Share, Shares, client_network, customer, ipv6_site};
pub use shutdown::Shutdown;
pub use watchdog::{RuntimeHealth, Watchdog};

/// The async runtime of a program, and its watchdog. Raises the limit of open files of the process to the maximum that is allowed.
///
/// # Errors
///
/// If the operating system refuses a thread.
pub fn start() -> std::io::Result<(tokio::runtime::Runtime, Watchdog)> {
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let watchdog = Watchdog::start(runtime.handle().clone())?;
    Ok((runtime, watchdog))
}
