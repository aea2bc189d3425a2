//! The parts of a response, checked against the limits on headers.

use std::sync::Arc;

use tokio::sync::SemaphorePermit;

use crate::failure::{Cause, Failure};
use crate::head::Head;
use crate::probe::Timings;

/// Maximum number of header fields of a response. It is more than browsers need, and the default limit of HTTP/1 parsers.
pub(crate) const HEADERS_MAX: usize = 100;
/// Maximum bytes of all header fields together. Most servers have limits of 8 to 16 KiB.
pub(crate) const HEADER_BYTES_MAX: usize = 32 * 1024;

/// Moves the status and the headers out of a response.
pub(crate) fn take_head(response: &mut reqwest::Response) -> Result<Head, Failure> {
    let head = Head {
        status: response.status(),
        headers: std::mem::take(response.headers_mut()),
        address: response.remote_addr(),
    };
    let (count, bytes) = (head.headers.len(), head.header_bytes());
    let reason = if count > HEADERS_MAX {
        format!("the response has {count} header fields, more than {HEADERS_MAX}")
    } else if bytes > HEADER_BYTES_MAX {
        format!("the response's headers are larger than {HEADER_BYTES_MAX} bytes")
    } else {
        return Ok(head);
    };
    Err(Failure::new(Cause::Protocol, reason))
}

/// Whether a body was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// The body was truncated at its cap, or after the part that is needed.
    Cut,
}

/// A decoded body that was read.
#[derive(Debug, Clone)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub extent: Extent,
    pub wire_bytes: u64,
    /// Permit for a large body, held until its memory is counted elsewhere.
    pub(crate) permit: Option<Arc<SemaphorePermit<'static>>>,
}

impl Body {
    /// Releases the permit of a large body. From now on, the caller counts its memory.
    pub fn release_permit(&mut self) {
        self.permit = None;
    }
}

/// A response, with the durations of its phases.
#[derive(Debug, Clone)]
pub struct Reply {
    pub head: Head,
    /// `None` if it was not read because the status makes it irrelevant.
    pub body: Option<Body>,
    /// Bytes of the body on the wire, whether it was read or skipped.
    pub wire_bytes: u64,
    pub timings: Timings,
}
