//! The documents of a site by whether they speak for it. Only those that do supply its name, description, publisher, contact, endpoints and
//! ways to authenticate; users and customers may have written the others.

use std::collections::BTreeSet;

use manifest::model::Protocol;
use manifest::{ManifestUrl, NamedBy, Publisher, SiteName};
use policy::naming::{customer_of, speaker};

use super::use_it::clients::{self, Client};
use super::use_it::credentials::secret_of_schemes;
use super::use_it::mcp::{DeclaredServer, is_own};
use crate::answers::site::{ManifestLine, Profile, ResourceLine, SiteAnswer};
use crate::declared_by::declared_by;

/// A document with its address.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub(super) url: &'a ManifestUrl,
    pub(super) manifest: &'a ManifestLine,
}

impl Document<'_> {
    /// Who declares it.
    pub(super) fn declared(self) -> String {
        declared_by(self.manifest.publisher, &self.url.host(), &self.url.site())
    }
}

pub(super) struct Documents<'a> {
    /// Documents that speak for the site.
    pub(super) speaking: Vec<&'a ManifestLine>,
    /// Documents that the site names and its users or customers may have written.
    pub(super) of_users: Vec<Document<'a>>,
    /// Documents that only other sites name. They are not evidence about the site.
    pub(super) of_others: Vec<&'a ManifestLine>,
    /// Whether the documents that speak for the site have one publisher: the site, or one customer.
    has_one_publisher: bool,
}

impl<'a> Documents<'a> {
    pub(super) fn of(answer: &'a SiteAnswer) -> Self {
        let all = || answer.resources.iter().filter_map(document);
        // a document that cannot be read does not keep those of a host from speaking for the site
        let readable = all().filter(|of| of.manifest.format.is_indexable());
        let speaker = speaker(readable.map(|of| (of.manifest.named_by(), of.manifest.publisher)));
        let mut documents = Self {
            speaking: Vec::new(),
            of_users: Vec::new(),
            of_others: Vec::new(),
            has_one_publisher: true,
        };
        let mut customers = BTreeSet::new();
        for document in all() {
            let manifest = document.manifest;
            if manifest.named_by() == NamedBy::Others {
                documents.of_others.push(manifest);
            } else if Some(manifest.publisher) == speaker {
                customers.insert(customer_of(&document.url.host(), &answer.line.site).to_owned());
                documents.speaking.push(manifest);
            } else {
                documents.of_users.push(document);
            }
        }
        documents.has_one_publisher = speaker == Some(Publisher::Site) || customers.len() <= 1;
        documents
    }

    /// Whether the site itself publishes documents at its domain.
    pub(super) fn are_of_site(&self) -> bool {
        self.speaking.first().is_some_and(|manifest| manifest.publisher == Publisher::Site)
    }

    /// Those that the site names.
    pub(super) fn named(&self) -> Vec<&'a ManifestLine> {
        let of_users = self.of_users.iter().map(|document| document.manifest);
        self.speaking.iter().copied().chain(of_users).collect()
    }

    /// The first statement about the site itself; `None` if its hosts belong to several customers.
    pub(super) fn first(&self, of: fn(&Profile) -> &Option<String>) -> Option<String> {
        let mut speaking = self.speaking.iter().filter(|_| self.has_one_publisher);
        speaking.find_map(|manifest| of(&manifest.profile).clone())
    }

    /// Those that speak for the site and describe one service, so that its endpoints and ways to authenticate are those of the site. None if
    /// several customers have its hosts.
    pub(super) fn services(&self) -> Vec<&'a ManifestLine> {
        let speaking = self.speaking.iter().copied().filter(|_| self.has_one_publisher);
        speaking.filter(|manifest| manifest.format.describes_one_service()).collect()
    }

    /// How to connect the MCP server of the site: the first one at its domain, else at another host of it, else elsewhere.
    pub(super) fn mcp_clients(&self, site: &SiteName) -> Vec<Client> {
        let servers = self.services().into_iter().flat_map(|manifest| {
            let is_own = is_own(manifest.publisher, manifest.format);
            let mcp = manifest.profile.interfaces.iter().filter(|(protocol, _)| *protocol == Protocol::Mcp);
            let secret = secret_of_schemes(&manifest.profile.auth);
            mcp.filter_map(move |(_, address)| DeclaredServer::of(address, site, is_own, secret.clone()))
        });
        let nearest = servers.min_by_key(|found| found.distance(site));
        nearest.map(|found| clients::of(&found.server)).unwrap_or_default()
    }
}

fn document(resource: &ResourceLine) -> Option<Document<'_>> {
    Some(Document { url: &resource.url, manifest: resource.manifest.as_ref()? })
}
