//! Name, description and address of this server, as every dialect declares them.

use std::sync::Arc;

use manifest::CardSigner;
use url::Url;

pub(super) const NAME: &str = "agentdex";
pub(super) const DESCRIPTION: &str = "Searches what web sites declare that agents can do: capabilities from every manifest dialect, crawled \
     politely, normalised into one model, with how to call them and their safety class.";
/// The version of the descriptions: the version of the program.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");
pub(super) const TAGS: [&str; 4] = ["registry", "discovery", "search", "agents"];

/// Public address of this server, and the key that signs its A2A card.
#[derive(Debug, Clone)]
pub(super) struct ServerIdentity {
    /// Base URL of this server, without a slash at the end.
    pub(super) base: String,
    /// Host name of `base`.
    pub(super) host: String,
    /// Signs the card.
    pub(super) signer: Option<Arc<CardSigner>>,
}

impl ServerIdentity {
    pub(super) fn at(base: &str) -> Self {
        let host = Url::parse(base).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
        Self { base: base.to_owned(), host: host.unwrap_or_default(), signer: None }
    }

    pub(super) fn signed_by(self, signer: Option<Arc<CardSigner>>) -> Self {
        Self { signer, ..self }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}
