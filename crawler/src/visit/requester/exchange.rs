//! A request with its response.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::visit::context::Interrupt;
use egress::{Cause, Failure, Reply};

/// The response to a request, and when the request was sent.
pub(crate) struct Exchange {
    pub(crate) answer: Result<Reply, Failure>,
    pub(crate) at: DateTime<Utc>,
    pub(crate) took: Duration,
}

impl Exchange {
    /// The exchange, unless it failed because of this machine.
    pub(super) fn unless_busy(self) -> Result<Self, Interrupt> {
        match &self.answer {
            Err(failure) if failure.cause == Cause::Busy => Err(Interrupt::busy(failure.reason.clone())),
            _ => Ok(self),
        }
    }

    /// The reason why the request was not sent, if it missed its deadline.
    pub(super) fn late(&self) -> Option<&str> {
        let failure = self.answer.as_ref().err().filter(|failure| failure.cause == Cause::Late)?;
        Some(&failure.reason)
    }
}
