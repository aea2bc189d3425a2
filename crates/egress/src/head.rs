//! Status and headers of a response.

use std::net::SocketAddr;

use http::{HeaderMap, HeaderName, StatusCode};

/// Status and headers.
#[derive(Debug, Clone)]
pub struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// The address of the server.
    pub address: Option<SocketAddr>,
}

impl Head {
    /// Bytes of names and values, including the colon, the space and the line end of HTTP/1.
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
