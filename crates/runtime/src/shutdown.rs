//! Signals that stop a program, received on a separate thread.
//!
//! The first SIGINT or SIGTERM requests a soft stop, the second a hard one. The program ends within its drain time
//! after the first signal, even if its runtime is blocked: leases expire by themselves, and both databases survive a kill.

use std::io::{self, IsTerminal as _};
use std::process;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio_util::sync::CancellationToken;

/// Time limit after the second signal.
const HARD_STOP_MAX: Duration = Duration::from_secs(5);
/// Time limit for the last log line, because its destination may be blocked.
const LAST_LINE_MAX: Duration = Duration::from_millis(500);
/// Exit code of a program that did not stop in time.
const EXIT_FORCED: i32 = 1;

/// The stop tokens of a program.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Cancelled by the first signal: finish work in progress and start nothing new.
    pub soft: CancellationToken,
    /// Cancelled by the second signal: drop everything.
    pub hard: CancellationToken,
}

impl Shutdown {
    /// Handles SIGINT and SIGTERM from now on. The process exits at most `drain` after the first signal.
    ///
    /// # Errors
    ///
    /// If the signal handlers cannot be installed, or the thread cannot be started.
    pub fn on_signals(drain: Duration) -> io::Result<Self> {
        let shutdown = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let (soft, hard) = (shutdown.soft.clone(), shutdown.hard.clone());
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for _ in signals.forever() {
                // log last, because the destination of the log may be blocked
                if soft.is_cancelled() {
                    hard.cancel();
                    exit_after(HARD_STOP_MAX.min(drain));
                    log_stop("Stopping now.");
                } else {
                    soft.cancel();
                    exit_after(drain);
                    log_stop(
                        "Stopping when the requests in flight have ended. A second Ctrl-C stops at once.",
                    );
                }
            }
        })?;
        Ok(shutdown)
    }
}

/// Informs the person at a terminal. Without a terminal, the line is logged below the default level, because a service manager knows that
/// it sent a signal.
fn log_stop(what: &'static str) {
    let line = move || {
        if io::stderr().is_terminal() {
            tracing::warn!(target: "runtime::notice", "{what}");
        } else {
            tracing::info!("{what}");
        }
    };
    // if the thread cannot be started, nothing is logged
    drop(thread::Builder::new().name("stop line".to_owned()).spawn(line));
}

/// Ends the process after a time, unless it has already ended.
fn exit_after(wait: Duration) {
    let timer = thread::Builder::new().name("exit".to_owned()).spawn(move || {
        let (_never, timer) = channel::<()>();
        if timer.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            force_exit(wait);
        }
    });
    if let Err(error) = timer {
        tracing::error!(%error, "cannot start the exit thread: exiting now");
        force_exit(Duration::ZERO);
    }
}

#[expect(clippy::exit, reason = "the runtime that would end the program may be blocked")]
fn force_exit(waited: Duration) {
    let (done, written) = channel();
    let line = move || {
        tracing::error!(waited_s = waited.as_secs(), "the program did not stop in time: exiting");
        done.send(()).unwrap_or_default();
    };
    let writer = thread::Builder::new().name("last line".to_owned()).spawn(line);
    if writer.is_ok() {
        written.recv_timeout(LAST_LINE_MAX).unwrap_or_default();
    }
    process::exit(EXIT_FORCED);
}
