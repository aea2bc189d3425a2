//! Names and versions of the servers of `/v0.1/servers`: which manifest may declare a name, and which of several manifests provides a
//! version.
//!
//! A name is kept only in a manifest whose publisher may use its namespace, so all manifests that declare one name belong to one site, and
//! nothing that another site or a customer of the site publishes replaces or hides its versions. Every other server has a generated name
//! with the id of its manifest.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::ControlFlow;

use chrono::{DateTime, Utc};
use manifest::{Host, Manifest, ManifestId, ManifestUrl, NamedBy, Publisher};
use policy::naming;
use serde::Serialize;
use store::{SiteManifestSize, StoredManifest};

use super::mcp_servers::has_server;
use crate::manifests::Kept;

/// Maximum numbers of characters of a name, which is ASCII, and of a version in the registry.
pub(super) const NAME_CHARS_MAX: usize = 200;
pub(super) const VERSION_CHARS_MAX: usize = 255;
/// Version of servers that declare none.
const VERSION_MINTED: &str = "0.0.0";

/// The source of a name or a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Origin {
    Declared,
    Minted,
}

/// `reverse.domain/name`. Clients keep one server per name, so a name of another domain is replaced. If the host is too long for a name,
/// its innermost labels are dropped; the id keeps the name unique.
pub(super) fn name(stored: &StoredManifest) -> (String, Origin) {
    let manifest = &stored.manifest;
    let may_use = |name: &&str| may_name(&manifest.url, stored.publisher, name);
    if let Some(name) = declared_name(manifest).filter(may_use) {
        return (name.to_owned(), Origin::Declared);
    }
    let id = manifest.id.as_str();
    let mut space = reversed(&manifest.url.host());
    while space.len() + 1 + id.len() > NAME_CHARS_MAX {
        let Some((outer, _)) = space.rsplit_once('.') else { break };
        space.truncate(outer.len());
    }
    (format!("{space}/{id}"), Origin::Minted)
}

/// The valid registry name that a manifest declares, even if the manifest may not use it.
pub(super) fn declared_name(manifest: &Manifest) -> Option<&str> {
    manifest.name.as_deref().filter(|name| is_registry_name(name))
}

/// One exact version. The registry rejects ranges, and `latest` is a query there.
pub(super) fn version(manifest: &Manifest) -> (String, Origin) {
    match manifest.document_version.as_deref().map(str::trim).filter(|version| is_exact(version)) {
        Some(version) => (version.to_owned(), Origin::Declared),
        None => (VERSION_MINTED.to_owned(), Origin::Minted),
    }
}

fn is_exact(version: &str) -> bool {
    let is_range = version.starts_with(['^', '~', '>', '<', '=']) || version.contains([' ', '|', '*', ',']);
    let has_open_part = version.split('.').any(|part| part.eq_ignore_ascii_case("x"));
    let is_text = version.chars().count() <= VERSION_CHARS_MAX && !version.contains(char::is_control);
    is_text && !version.is_empty() && version != "latest" && !is_range && !has_open_part
}

fn reversed(host: &Host) -> String {
    host.as_str().rsplit('.').collect::<Vec<_>>().join(".")
}

/// Whether a manifest may declare servers in the namespace of a host.
pub(super) fn may_declare(of: &SiteManifestSize, named: &Host) -> bool {
    let is_named_by_site = of.named_by == NamedBy::Site;
    is_named_by_site && naming::is_usual(&of.url) && of.publisher.may_use_name_of(&of.url.host(), named)
}

/// The host whose namespace a name is in.
pub(super) fn namespace_of(name: &str) -> Option<Host> {
    name.split_once('/').and_then(|(space, _)| host_of(space))
}

/// Whether the publisher of a manifest may declare a server under a registry name: it may use the namespace, and only the host itself
/// publishes at the path. The namespace of an account belongs to the host of its pages: `io.github.someone` to `someone.github.io`. A name
/// in the format of generated names is reserved for the manifest with its id.
fn may_name(url: &ManifestUrl, publisher: Publisher, name: &str) -> bool {
    let (space, own) = name.split_once('/').unwrap_or_default();
    let may_use = |named: &Host| publisher.may_use_name_of(&url.host(), named);
    naming::is_usual(url)
        && host_of(space).is_some_and(|named| may_use(&named))
        && ManifestId::parse(own).is_err()
}

/// The host of a namespace: `mcp.example.com` for `com.example.mcp`.
fn host_of(space: &str) -> Option<Host> {
    let host = space.rsplit('.').collect::<Vec<_>>().join(".");
    Host::parse(&host).ok()
}

pub(super) fn is_registry_name(name: &str) -> bool {
    let fits = |part: &str, more: &[u8]| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    let parts = name.split_once('/').filter(|_| (3..=NAME_CHARS_MAX).contains(&name.len()));
    parts.is_some_and(|(space, name)| space.contains('.') && fits(space, b".-") && fits(name, b"._-"))
}

/// The servers that the manifests of a site declare now in one namespace.
#[derive(Debug)]
pub(super) struct NamedServers {
    namespace: Host,
    declared: Vec<Declared>,
}

#[derive(Debug)]
struct Declared {
    id: ManifestId,
    name: String,
    version: String,
    /// Whether the host of the namespace itself declares it. Other hosts of a site may belong to its users.
    is_of_host: bool,
    changed_at: DateTime<Utc>,
}

/// The manifest that a version of a name is read from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) id: ManifestId,
    pub(super) name: String,
    pub(super) is_latest: bool,
}

impl Kept for NamedServers {
    fn bytes(&self) -> usize {
        let texts = self
            .declared
            .iter()
            .map(|one| one.name.capacity() + one.version.capacity() + one.id.as_str().len());
        self.declared.capacity() * size_of::<Declared>() + texts.sum::<usize>()
    }
}

impl NamedServers {
    pub(super) const fn of(namespace: Host) -> Self {
        Self { namespace, declared: Vec::new() }
    }

    pub(super) fn add(&mut self, stored: &StoredManifest) -> ControlFlow<()> {
        let manifest = &stored.manifest;
        if has_server(stored)
            && let (name, Origin::Declared) = name(stored)
            && namespace_of(&name).as_ref() == Some(&self.namespace)
        {
            self.declared.push(Declared {
                id: manifest.id.clone(),
                is_of_host: manifest.url.host().is_main_of(&self.namespace),
                name,
                version: version(manifest).0,
                changed_at: stored.changed_at,
            });
        }
        ControlFlow::Continue(())
    }

    /// Each version of each name once, the latest change of a name first. If the host of the namespace declares a name, only its
    /// declarations are used.
    pub(super) fn into_listed(mut self) -> Vec<Listed> {
        let order = |one: &Declared| {
            (one.name.clone(), Reverse(one.is_of_host), Reverse(one.changed_at), one.id.clone())
        };
        self.declared.sort_by_cached_key(order);
        let mut listed: Vec<Listed> = Vec::new();
        let mut of_name = String::new();
        let mut is_of_host = false;
        let mut versions: HashSet<String> = HashSet::new();
        for one in self.declared {
            let is_latest = listed.is_empty() || one.name != of_name;
            if is_latest {
                versions.clear();
                of_name.clone_from(&one.name);
                is_of_host = one.is_of_host;
            }
            if one.is_of_host == is_of_host && versions.insert(one.version) {
                listed.push(Listed { id: one.id, name: one.name, is_latest });
            }
        }
        listed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_names_servers_only_in_its_own_namespace() {
        let may = |url: &str, name: &str| {
            let url = ManifestUrl::parse(url).unwrap();
            may_name(&url, naming::publisher_by_url(&url), name)
        };
        let card = "https://example.com/.well-known/mcp/server-card.json";
        for name in ["com.example/tools", "com.example.mcp/tools"] {
            assert!(may(card, name), "{name}");
        }
        for name in [
            "com.other/tools",
            "com.example-other/tools",
            "com/tools",
            "io.github.someone/tools",
            "com.github.someone/tools",
            "io.gitlab.someone/tools",
            "com.example/mabcdefghijklmnop",
        ] {
            assert!(!may(card, name), "{name}");
        }
        let of_account = "https://someone.github.io/.well-known/mcp/server-card.json";
        assert!(may(of_account, "io.github.someone/tools"));
        for name in ["io.github.other/tools", "io.github/tools", "com.github.someone/tools"] {
            assert!(!may(of_account, name), "{name}");
        }
        assert!(may("https://www.example.com/.well-known/mcp.json", "com.example/tools"));
        let of_customer = "https://user.example.com/.well-known/mcp.json";
        for name in ["com.example.user/tools", "com.example.user.eu/tools"] {
            assert!(may(of_customer, name), "{name}");
        }
        for name in ["com.example/tools", "com.example.mcp/tools"] {
            assert!(!may(of_customer, name), "{name} of a customer");
        }
        for url in [
            "https://example.com/u/someone/server.json",
            "https://example.com/.well-known/..%2Fu/server.json",
            "https://example.com/.well-known/x?file=u/server.json",
        ] {
            assert!(!may(url, "com.example/tools"), "a user of the host may have written {url}");
        }
    }

    #[test]
    fn version_ranges_are_replaced_by_exact_versions() {
        for version in ["1.2.3", "2025-06-18", "v2", "1.0.0+build.x86"] {
            assert!(is_exact(version), "{version}");
        }
        for version in ["", "latest", "^1.2.3", "~1", ">=1.0", "1.x", "1.*", "1.2 - 1.4", "1 || 2"] {
            assert!(!is_exact(version), "{version}");
        }
    }

    #[test]
    fn valid_registry_names_are_kept() {
        for name in ["io.github.someone/weather", "example.skyhop/flights.v2"] {
            assert!(is_registry_name(name), "{name}");
        }
        for name in
            ["weather", "skyhop/flights", "a.b/", "a.b/c/d", "a.b/c d", &format!("a.b/{}", "c".repeat(200))]
        {
            assert!(!is_registry_name(name), "{name}");
        }
        assert_eq!(reversed(&Host::parse("mcp.skyhop.example").unwrap()), "example.skyhop.mcp");
    }
}
