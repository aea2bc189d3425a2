//! Keeps track of the addresses in a draft, so that none is added twice.

use super::target::{Target, Words};
use super::{is_contact, is_plain};
use crate::draft::Draft;
use crate::format::{endpoint, link_class};
use crate::hash::HashSet;
use crate::model::{Format, Manifest, Protocol};

/// Maximum number of addresses of one model that are compared.
const STATED_MAX: usize = 10_000;
/// Words of members whose paths are rules about a site, parts of an address, or paths of a file system.
const POLICY_WORDS: &[&str] = &[
    "allow",
    "allowed",
    "disallow",
    "disallowed",
    "deny",
    "denied",
    "forbidden",
    "scope",
    "scopes",
    "pattern",
    "patterns",
    "prefix",
    "robots",
    "base",
    "start",
    "root",
];
/// Words in the names of members with files. Only documents among the files are pages.
const FILE_WORDS: &[&str] = &["file", "files", "source", "sources"];

/// The addresses that a draft already has.
pub(super) struct Known {
    servers: HashSet<String>,
    documents: HashSet<String>,
    called: HashSet<String>,
    /// Addresses that other parts of the model state: of the provider, its terms, its credentials.
    stated: HashSet<String>,
    /// The address of the contact, which may also be that of the documentation.
    contact: Option<String>,
}

impl Known {
    pub(super) fn of(draft: &Draft<'_>) -> Self {
        let manifest = &draft.manifest;
        let set = |urls: &mut dyn Iterator<Item = &str>| urls.map(str::to_owned).collect::<HashSet<_>>();
        let mut documents = set(&mut manifest.links.iter().map(|link| link.url.as_str()));
        documents.insert(draft.base().as_str().to_owned());
        let mut stated = HashSet::default();
        each_stated(manifest, &mut |text| stated.extend(draft.origin_url(text)));
        Self {
            contact: manifest.contact.url.as_deref().and_then(|url| draft.origin_url(url)),
            stated,
            servers: set(&mut manifest.interfaces.iter().filter_map(|interface| interface.url.as_deref())),
            documents,
            called: set(&mut manifest.capabilities.iter().filter_map(|c| c.invocation.endpoint())),
        }
    }

    /// The call that a path of this URL belongs to: at the URL, or at another host or below another path.
    pub(super) fn called_at(&self, url: &str, path: &str) -> Option<&str> {
        let own = self.called.get(url).map(String::as_str);
        own.or_else(|| self.called.iter().filter(|url| url.ends_with(path)).map(String::as_str).min())
    }

    /// Whether a path belongs to a page. In a format that defines the member, its name must say so, or the path must be a well-known one. A
    /// path that a policy names is not a page.
    pub(super) fn is_page(names: &[&str], path: &str, format: Format) -> bool {
        let is_free =
            matches!(format, Format::Generic | Format::Pointer | Format::McpFreeform | Format::Opaque);
        let is_link = names.last().is_some_and(|name| is_plain(name) && *name != "endpoint")
            || names.iter().any(|name| is_contact(name));
        let words = Words::of(names.iter());
        (is_free || is_link || path.starts_with("/.well-known/"))
            && path.len() > 1
            && !path.contains('*')
            && !words.iter().any(|word| POLICY_WORDS.contains(&word))
            && (link_class::is_document(path) || !words.iter().any(|word| FILE_WORDS.contains(&word)))
    }

    /// Whether an address is not yet known with this target. Remembers it.
    pub(super) fn is_new(&mut self, url: &str, target: Option<Target>) -> bool {
        let (bare, is_root) = (url.trim_end_matches('/'), url.ends_with('/'));
        let is_known = |set: &HashSet<String>| set.contains(url) || (is_root && set.contains(bare));
        let known = match target {
            // The address of a call is not the base URL of an API.
            Some(Target::Server(Protocol::Http)) => is_known(&self.servers) || is_known(&self.called),
            Some(Target::Server(_)) => is_known(&self.servers),
            Some(Target::Document(class)) => {
                let is_stated = class.follow.is_none() && class.rel != "mcp" && is_known(&self.stated);
                is_stated || is_known(&self.documents) || is_known(&self.servers)
            }
            None => {
                let sets = [&self.documents, &self.servers, &self.called, &self.stated];
                let is_contact = || self.contact.as_deref() == Some(url);
                // The address of a call may show a placeholder for a parameter.
                let is_called = || endpoint::open_query(url).is_some_and(|url| self.called.contains(&url));
                sets.into_iter().any(is_known) || is_contact() || is_called()
            }
        };
        if !known {
            let set = if matches!(target, Some(Target::Server(_))) {
                &mut self.servers
            } else {
                &mut self.documents
            };
            set.insert(url.to_owned());
        }
        !known
    }
}

/// Calls `show` with each address that is stated outside the lists of links, servers and calls.
fn each_stated(manifest: &Manifest, show: &mut impl FnMut(&str)) {
    let (provider, policies) = (&manifest.provider, &manifest.policies);
    let (sessions, rate_limit) = (manifest.sessions.as_ref(), manifest.rate_limit.as_ref());
    let of_whole = [
        &manifest.declared_origin,
        &provider.url,
        &provider.logo,
        &policies.terms_url,
        &policies.privacy_url,
        &manifest.status.status_url,
    ];
    let of_sessions = sessions.into_iter().flat_map(|sessions| [&sessions.create_url, &sessions.delete_url]);
    let of_limits =
        manifest.audit.iter().map(|audit| &audit.url).chain(rate_limit.map(|limit| &limit.tier_url));
    let of_auth = manifest.auth.iter().flat_map(|auth| {
        let own =
            [&auth.token_url, &auth.authorize_url, &auth.refresh_url, &auth.registration_url, &auth.docs_url];
        let flows = auth.flows.iter();
        own.into_iter()
            .chain(flows.flat_map(|flow| [&flow.authorize_url, &flow.token_url, &flow.refresh_url]))
    });
    let of_calls = manifest.capabilities.iter();
    let polled = of_calls.clone().map(|capability| &capability.execution.poll_url);
    let stated =
        of_whole.into_iter().chain(of_sessions).chain(of_limits).chain(of_auth).chain(polled).flatten();
    let tags = of_calls.flat_map(|capability| &capability.tags).filter(|tag| tag.contains("://"));
    stated.chain(tags).take(STATED_MAX).for_each(|text| show(text));
}
