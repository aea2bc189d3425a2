//! The content of a request.

use std::borrow::Cow;

use http::HeaderMap;
use manifest::ManifestUrl;
use serde_json::Value;

/// Content of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Message<'a> {
    /// A GET, with the validators of the stored copy.
    Get(&'a HeaderMap),
    /// A POST of JSON, to a registry that the operator named.
    Post(&'a Value),
    /// A POST of JSON with headers, to a webhook.
    Deliver { headers: &'a HeaderMap, body: &'a str },
}

impl Message<'_> {
    /// The URL to show in events and traces. For a webhook it has no path, because the path may be secret.
    pub(super) fn shown_url(self, url: &ManifestUrl) -> Cow<'_, ManifestUrl> {
        match self {
            Self::Deliver { .. } => url.join("/").map_or(Cow::Borrowed(url), Cow::Owned),
            Self::Get(_) | Self::Post(_) => Cow::Borrowed(url),
        }
    }
}
