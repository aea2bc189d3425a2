//! Signals that stop a program, heard on a thread of its own.
//!
//! The first SIGINT or SIGTERM asks for a soft stop, the second for a hard one. The program ends within its drain time
//! after the first signal, whatever its runtime does: leases end by themselves, and both databases survive a kill.

use std::io::{self, IsTerminal as _};
use std::process;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio_util::sync::CancellationToken;

/// How long a program may take after the second signal.
const HARD_STOP_MAX: Duration = Duration::from_secs(5);
/// How long the last line of the log may take: where it goes may be what is blocked.
const LAST_LINE_MAX: Duration = Duration::from_millis(500);
/// The exit code of a program that did not end by itself.
const EXIT_FORCED: i32 = 1;

/// How a program is stopped from outside.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    /// Set by the first signal: end what is under way and begin nothing new.
    pub soft: CancellationToken,
    /// Set by the second signal: drop everything.
    pub hard: CancellationToken,
}

impl Shutdown {
    /// Hears SIGINT and SIGTERM from now on. The process exits at the latest `drain` after the first one.
    ///
    /// # Errors
    ///
    /// When the operating system refuses the handlers or the thread.
    pub fn on_signals(drain: Duration) -> io::Result<Self> {
        let shutdown = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let (soft, hard) = (shutdown.soft.clone(), shutdown.hard.clone());
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for _ in signals.forever() {
                // the log comes last: where it goes may be what is blocked
                if soft.is_cancelled() {
                    hard.cancel();
                    exit_after(HARD_STOP_MAX.min(drain));
                    tell("stopping at once");
                } else {
                    soft.cancel();
                    exit_after(drain);
                    tell("stopping after the requests under way; a second signal stops at once");
                }
            }
        })?;
        Ok(shutdown)
    }
}

/// A person at a terminal is told at the default level; a service manager knows that it sent a signal.
fn tell(what: &'static str) {
    let line = move || {
        if io::stderr().is_terminal() {
            tracing::warn!("{what}");
        } else {
            tracing::info!("{what}");
        }
    };
    // without a thread for it, the line is what can be done without
    drop(thread::Builder::new().name("stop line".to_owned()).spawn(line));
}

/// Ends the process after a time, unless it has ended by itself.
fn exit_after(wait: Duration) {
    let timer = thread::Builder::new().name("exit".to_owned()).spawn(move || {
        let (_never, timer) = channel::<()>();
        if timer.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            force_exit(wait);
        }
    });
    if let Err(error) = timer {
        tracing::error!(%error, "no thread for the end of the program: exiting now");
        force_exit(Duration::ZERO);
    }
}

#[expect(clippy::exit, reason = "the runtime that would end the program is what may be blocked")]
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
