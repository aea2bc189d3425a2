//! Checks whether a request may still be sent. The sender of the request knows the deadline.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Decides whether a request may still be sent. It is called right before a request is sent, and again when a new connection for it is
/// open.
#[derive(Clone)]
pub struct LeaveCheck(Arc<dyn Fn() -> bool + Send + Sync>);

/// The deadline of the request has passed, and it was not sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Late;

impl LeaveCheck {
    pub fn new(may_leave: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(may_leave))
    }

    pub(crate) fn check(&self) -> Result<(), Late> {
        if (self.0)() { Ok(()) } else { Err(Late) }
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this crawler was stalled before it could send the request, and did not send it")
    }
}

impl Error for Late {}
