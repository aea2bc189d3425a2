//! The MCP servers that documents declare, and the names that clients give them. A client replaces an entry with the same name and may send
//! it credentials, so an entry has the name of a site only if the site itself declares a server at its domain.

use manifest::model::Protocol;
use manifest::{Capability, Format, Host, Publisher, SiteName, is_main_host};
use store::StoredManifest;
use url::Url;

use super::clients::McpServer;
use super::credentials::{Secret, secret_of_client};
use crate::dashboard::links;

/// An MCP server that a document declares.
pub(crate) struct DeclaredServer {
    pub(crate) server: McpServer,
    /// The host of its address.
    pub(crate) host: Host,
}

impl DeclaredServer {
    /// The server at an address that agents may call. `is_own` states whether the site itself publishes the document, and the document
    /// describes only this service. `None` for an address that cannot be linked or has no host name.
    pub(crate) fn of(address: &str, site: &SiteName, is_own: bool, secret: Option<Secret>) -> Option<Self> {
        // Clients replace `${env:NAME}` in an address by the value of a variable of the person.
        let url = links::harmless(address)?.replace('{', "%7B").replace('}', "%7D");
        let host = Host::parse(Url::parse(&url).ok()?.host_str()?).ok()?;
        let name = match (is_main_host(site, &host), is_own) {
            (true, true) => site.to_string(),
            (true, false) => format!("unverified-{host}"),
            (false, _) => host.to_string(),
        };
        Some(Self { server: McpServer { name, url, secret }, host })
    }

    /// 0 at the domain of the site, 1 at another host of the site, 2 elsewhere.
    pub(crate) fn distance(&self, site: &SiteName) -> u8 {
        if is_main_host(site, &self.host) {
            0
        } else if self.host.site() == *site {
            1
        } else {
            2
        }
    }
}

/// Whether the site itself publishes a document that describes only one service.
pub(crate) fn is_own(publisher: Publisher, format: Format) -> bool {
    publisher == Publisher::Site && format.describes_one_service()
}

/// The server where a capability can be called or listed, with a sentence about it. `None` if only others name the document.
pub(super) fn of_capability(stored: &StoredManifest, capability: &Capability) -> Option<(McpServer, String)> {
    if !stored.is_of_site() {
        return None;
    }
    let manifest = &stored.manifest;
    let of_capability = (capability.invocation.protocol == Some(Protocol::Mcp))
        .then(|| capability.invocation.endpoint())
        .flatten();
    let mut declared = manifest.interfaces.iter().filter(|interface| interface.protocol == Protocol::Mcp);
    let address = of_capability.or_else(|| declared.find_map(|interface| interface.url.as_deref()))?;
    let site = manifest.url.site();
    let is_own = is_own(stored.publisher, manifest.format());
    let secret = secret_of_client(manifest, capability);
    let found = DeclaredServer::of(manifest.address_for_agents(address)?, &site, is_own, secret)?;
    let (at, file) = (&found.host, manifest.url.host());
    let words = match stored.publisher {
        Publisher::Site if is_own && at.site() == site => {
            "This site has an MCP server of its own.".to_owned()
        }
        Publisher::Site if is_own => format!("This site declares an MCP server at {at}."),
        Publisher::Site => {
            format!("A list of {site} names an MCP server at {at}, which may be someone else's.")
        }
        Publisher::Host => {
            format!("{file} declares an MCP server at {at}. A customer of {site} may have this host.")
        }
        Publisher::Unknown => {
            format!("A file at {file} whose author is unknown declares an MCP server at {at}.")
        }
    };
    Some((found.server, format!("{words} Connect it:")))
}
