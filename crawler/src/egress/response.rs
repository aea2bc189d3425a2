//! What an answer consists of, checked against the limits on headers.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, StatusCode};
use tokio::sync::SemaphorePermit;

use super::failure::{Cause, Failure};
use super::probe::Timings;

/// Most header fields of an answer; more than browsers ever need, and what HTTP/1 parsers refuse by default.
pub(crate) const HEADERS_MAX: usize = 100;
/// Most octets of all header fields together; usual servers stop at 8 to 16 KiB.
pub(crate) const HEADER_BYTES_MAX: usize = 32 * 1024;

/// Status and headers.
#[derive(Debug, Clone)]
pub struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Where the answer came from.
    pub address: Option<SocketAddr>,
}

impl Head {
    /// Takes the headers out of the response.
    pub(crate) fn of(response: &mut reqwest::Response) -> Result<Self, Failure> {
        let head = Self {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            address: response.remote_addr(),
        };
        head.check()?;
        Ok(head)
    }

    fn check(&self) -> Result<(), Failure> {
        if self.headers.len() > HEADERS_MAX {
            let reason =
                format!("the answer has {} header fields, more than {HEADERS_MAX}", self.headers.len());
            return Err(Failure::new(Cause::Protocol, reason));
        }
        if self.header_bytes() > HEADER_BYTES_MAX {
            let reason = format!("the answer's headers are larger than {HEADER_BYTES_MAX} bytes");
            return Err(Failure::new(Cause::Protocol, reason));
        }
        Ok(())
    }

    /// Octets of names and values, with the colon, space and line end of HTTP/1.
    pub(crate) fn header_bytes(&self) -> usize {
        self.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
    }

    /// The first value of a header, if it is text.
    pub fn text(&self, name: &HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Every value of a header that is text.
    pub fn texts<'a>(&'a self, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
        self.headers.get_all(name).iter().filter_map(|value| value.to_str().ok())
    }
}

/// Whether a body was read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// Cut at its cap, or where nothing of interest follows.
    Cut,
}

/// A decoded body that was read.
#[derive(Debug, Clone)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub extent: Extent,
    pub wire_bytes: u64,
    /// Of a large body: held until its memory is counted elsewhere.
    pub(crate) permit: Option<Arc<SemaphorePermit<'static>>>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Reply {
    pub head: Head,
    /// `None`: it was not read, since the status says that it does not matter.
    pub body: Option<Body>,
    /// Of the body, whether it was read or passed over.
    pub wire_bytes: u64,
    pub timings: Timings,
}
