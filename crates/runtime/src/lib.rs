//! Keeps a program responsive whatever it reads.
//!
//! [`ReaderPool`] reads documents from outside on threads of its own, so that no document blocks the async runtime.
//! [`Watchdog`] notices a worker of the runtime that is blocked all the same. [`Shutdown`] hears signals on a thread of its
//! own and ends the program within its drain time, even where the runtime no longer runs. [`Shares`] keeps one client from
//! using up what all need.

mod pool;
mod shares;
mod shutdown;
mod watchdog;

pub use pool::{ReadError, ReaderLimits, ReaderPool};
pub use shares::{Full, Share, Shares, customer};
pub use shutdown::Shutdown;
pub use watchdog::{RuntimeHealth, Watchdog};

/// The async runtime of a program, with a watchdog beside it.
///
/// # Errors
///
/// When the operating system refuses a thread.
pub fn start() -> std::io::Result<(tokio::runtime::Runtime, Watchdog)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let watchdog = Watchdog::start(runtime.handle().clone())?;
    Ok((runtime, watchdog))
}
