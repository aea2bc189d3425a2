//! Compares the origin that a document declares with the host that served it: apex and www, sub-domains, previews, copies.
//!
//! A mismatch is a finding, never a reason to reject. A document whose addresses are all on another site is probably a copy of that site's
//! manifest, and is marked as a suspected copy.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use crate::address;
use crate::draft::{Draft, FINDINGS_PER_CODE_MAX, FindingLocation, Places};
use crate::json::{push_index, push_name};
use crate::model::SourceKind;
use crate::name::{Host, SiteName, parse_url};
use crate::object::children;
use crate::rule::findings;

findings! {
    rule MISMATCH: Note("origin.mismatch", "RFC 6454 §4")
        "the document declares another site than the one that serves it"
            => "Declare the domain that serves the document, or serve it from the domain that it declares.";
    rule SUBDOMAIN: Note("origin.sibling", "RFC 6454 §4")
        "the document declares another host of the same site"
            => "No change is needed if both hosts are intended; agents see the host that serves the document.";
    rule COPY: Note("origin.copy_suspected", "RFC 6454 §4")
        "declared origin and every address lie on another site: the document may be a copy"
            => "Point the addresses at the site that serves the document, or remove the copy.";
    rule PREVIEW: Note("origin.preview", "agentdex identity")
        "a preview or a tunnel serves the document: its host is temporary"
            => "Publish the document on a permanent host, and keep previews out of the index with robots.txt.";
    rule PLACEHOLDER: Should("origin.placeholder", "RFC 6761 §6")
        "an address is a placeholder: clients cannot reach it" => "Replace it with the public address of the service.";
}

/// Compares the declared origin and the addresses with the origin that served the document, if it is known.
pub(crate) fn check(draft: &mut Draft<'_>) {
    let served = draft.base().host();
    let declared = draft.manifest.declared_origin.as_deref().and_then(host_of);
    if is_preview(&served) {
        draft.report(&PREVIEW, String::new(), format!("served by {served}, which is a preview or a tunnel"));
    }
    report_placeholders(draft, &served);
    if draft.serving_site().is_none() {
        return;
    }
    let Some(declared) = declared.filter(|declared| *declared != served) else {
        return suspect_copy(draft, &served, None);
    };
    let place = draft.places.origin.take().unwrap_or_default();
    let text = format!("declared {declared}, served by {served}");
    if declared.site() == served.site() {
        let is_www = declared.as_str().strip_prefix("www.").unwrap_or(declared.as_str())
            == served.as_str().strip_prefix("www.").unwrap_or(served.as_str());
        if !is_www {
            draft.report(&SUBDOMAIN, place, text);
        }
        return;
    }
    draft.report(&MISMATCH, place, text);
    suspect_copy(draft, &served, Some(&declared));
}

/// Finds the pointers to the declared origin and to the placeholders of a JSON document, if they will be reported.
pub(crate) fn locate(draft: &mut Draft<'_>, document: &Value) {
    let served = draft.base().host();
    let site = served.site();
    let declared = draft.manifest.declared_origin.as_deref();
    let is_reported = |origin: &&str| {
        is_placeholder(origin, &site) || host_of(origin).is_some_and(|declared| declared != served)
    };
    let origin = declared.filter(is_reported).and_then(|origin| place_of_text(document, origin));
    let interfaces = draft.manifest.interfaces.iter().filter_map(|interface| interface.url.as_deref());
    let placeholders = interfaces.filter(|url| is_placeholder(url, &site)).take(FINDINGS_PER_CODE_MAX);
    let interfaces =
        placeholders.filter_map(|url| Some((url.to_owned(), place_of_text(document, url)?))).collect();
    draft.places = Places { origin, interfaces };
}

/// Pointer of the first text that is an address, or else of the first one with its host.
fn place_of_text(document: &Value, address: &str) -> Option<String> {
    let host = authority(address);
    let bare = address.trim_end_matches('/');
    first_text(document, &|text| text.trim().trim_end_matches('/') == bare)
        .or_else(|| first_text(document, &|text| text.contains(host) && (is_address(text) || text == host)))
}

/// Pointer to the first text of a document that satisfies a condition.
fn first_text(value: &Value, is_wanted: &dyn Fn(&str) -> bool) -> Option<String> {
    let below = |step: &dyn Fn(&mut String), inner: &Value| {
        let rest = first_text(inner, is_wanted)?;
        let mut pointer = String::new();
        step(&mut pointer);
        pointer.push_str(&rest);
        Some(pointer)
    };
    match value {
        Value::String(text) if is_wanted(text) => Some(String::new()),
        Value::Array(list) => list
            .iter()
            .enumerate()
            .find_map(|(index, inner)| below(&|pointer| push_index(pointer, index), inner)),
        Value::Object(map) => {
            map.iter().find_map(|(name, inner)| below(&|pointer| push_name(pointer, name), inner))
        }
        _ => None,
    }
}

/// Marks a document as a suspected copy if the declared site is another site and has all addresses.
fn suspect_copy(draft: &mut Draft<'_>, served: &Host, declared: Option<&Host>) {
    let Some(declared) = declared.map(Host::site) else { return };
    let sites: Vec<SiteName> = addresses(draft).filter_map(host_of).map(|host| host.site()).collect();
    // If the provider is on the site that served the document, it offers the services on the other site.
    let provider = draft.manifest.provider.url.as_deref().and_then(host_of);
    if provider.is_some_and(|provider| provider.site() == served.site()) {
        return;
    }
    let elsewhere = !sites.is_empty() && sites.iter().all(|site| *site == declared && *site != served.site());
    if elsewhere && draft.manifest.source.kind == SourceKind::Native {
        draft.manifest.source.kind = SourceKind::CopySuspected;
        draft.report(&COPY, String::new(), format!("every address is on {declared}"));
    }
}

fn addresses<'m>(draft: &'m Draft<'_>) -> impl Iterator<Item = &'m str> {
    let manifest = &draft.manifest;
    let capabilities = manifest.capabilities.iter().filter_map(|capability| capability.invocation.endpoint());
    capabilities.chain(manifest.interfaces.iter().filter_map(|interface| interface.url.as_deref()))
}

/// The host of a URL or of a bare domain; `None` for templates and invalid texts.
pub(crate) fn host_of(text: &str) -> Option<Host> {
    let text = text.trim();
    if let Some((_, host)) = address::plain_origin(text) {
        return Host::parse(host).ok();
    }
    if text.contains("://") {
        return parse_url(text).ok()?.host_str().and_then(|host| Host::parse(host).ok());
    }
    Host::parse(text.split('/').next()?).ok()
}

/// The site in an identity: a did:web, a SPIFFE id, a urn:air identifier, a URL or a bare domain. `None` for a did:key and other texts.
pub(crate) fn site_named_by(identity: &str) -> Option<SiteName> {
    let schemes = ["did:web:", "spiffe://", "urn:air:"];
    let rest = schemes.iter().find_map(|scheme| identity.strip_prefix(scheme));
    let host = match rest {
        Some(rest) => Host::parse(rest.split(['/', ':', '%', '?', '#']).next()?).ok(),
        None if identity.contains("://") || (identity.contains('.') && !identity.contains(':')) => {
            host_of(identity)
        }
        None => None,
    };
    host.map(|host| host.site())
}

/// Domains of tunnel services.
const TUNNELS: &[&str] = &[
    "ngrok.io",
    "ngrok.app",
    "ngrok.dev",
    "ngrok-free.app",
    "ngrok-free.dev",
    "trycloudflare.com",
    "loca.lt",
    "lhr.life",
    "devtunnels.ms",
];

/// Hosts of tunnels and of builds of a branch.
fn is_preview(host: &Host) -> bool {
    let name = host.as_str();
    let below = |domain: &str| name.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
    let build = |domain: &str, is_build: fn(&str) -> bool| below(domain).is_some_and(is_build);
    TUNNELS.iter().any(|domain| below(domain).is_some())
        || build("vercel.app", |label| label.contains("-git-"))
        || build("netlify.app", |label| label.contains("--"))
        || build("web.app", |label| label.contains("--"))
        || build("pages.dev", |labels| labels.contains('.'))
}

/// Hosts reserved for examples (RFC 2606, RFC 6761) and unfilled templates. A document from such a host is a test and gets no finding.
fn is_placeholder(text: &str, served: &SiteName) -> bool {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let mut authority = Cow::Borrowed(rest.split(['/', '?']).next().unwrap_or_default());
    if authority.bytes().any(|byte| byte.is_ascii_uppercase()) {
        authority = Cow::Owned(authority.to_ascii_lowercase());
    }
    let host = authority.split(':').next().unwrap_or_default();
    let example = ["example.com", "example.org", "example.net"]
        .iter()
        .any(|name| host == *name || host.strip_suffix(name).is_some_and(|prefix| prefix.ends_with('.')));
    let template = authority.contains(['{', '<', '$'])
        || authority.starts_with("your-")
        || authority.starts_with("your.")
        || (authority.contains("your")
            && (authority.contains("yourdomain") || authority.contains("your-domain")));
    (example || template) && !host.ends_with(served.as_str())
}

fn report_placeholders(draft: &mut Draft<'_>, served: &Host) {
    let served = &served.site();
    let declared = draft.manifest.declared_origin.as_deref().filter(|origin| is_placeholder(origin, served));
    let at = |pointer: Option<&String>| FindingLocation {
        pointer: pointer.cloned().unwrap_or_default(),
        document: None,
    };
    let mut found: Vec<(FindingLocation, String)> =
        declared.map(|origin| (at(draft.places.origin.as_ref()), origin.to_owned())).into_iter().collect();
    for capability in &draft.manifest.capabilities {
        if let Some(address) =
            capability.invocation.endpoint().filter(|address| is_placeholder(address, served))
        {
            found.push((FindingLocation::of(capability), address.to_owned()));
        }
    }
    for interface in &draft.manifest.interfaces {
        if let Some(address) = interface.url.as_deref().filter(|address| is_placeholder(address, served)) {
            let location = at(draft.places.interfaces.get(address));
            if !found.iter().any(|(known, same)| known.pointer == location.pointer && same == address) {
                found.push((location, address.to_owned()));
            }
        }
    }
    for (location, address) in found {
        let text = format!("\"{}\" is a placeholder", crate::text::capped(&address, 80));
        draft.report_at(&PLACEHOLDER, location, text);
    }
}

/// Marks capabilities whose host is not public, and reports addresses that were not yet reported: at the text that contains the host, if
/// the document has pointers.
pub(crate) fn mark_not_public(draft: &mut Draft<'_>, document: Option<&Value>) {
    let found = not_public(draft);
    let origin = draft.manifest.declared_origin.clone().unwrap_or_default();
    let declared = draft.not_public(&origin).map(|reason| (origin, reason));
    if found.is_empty() && declared.is_none() {
        return;
    }
    // Further findings are only counted, so their addresses are not searched.
    let unreported = found.iter().filter(|found| !draft.is_reported_not_public(&found.address));
    let authorities: Vec<&str> =
        unreported.map(|found| authority(&found.address)).take(FINDINGS_PER_CODE_MAX).collect();
    let texts = document.map(|document| texts_with(document, &authorities)).unwrap_or_default();
    let mut reported = HashSet::new();
    for mut found in found {
        if let Some(capability) = found.capability.and_then(|at| draft.manifest.capabilities.get_mut(at)) {
            capability.invocation.not_public = true;
        }
        if draft.is_reported_not_public(&found.address) {
            continue;
        }
        if found.location.document.is_none()
            && reported.len() < FINDINGS_PER_CODE_MAX
            && let Some((pointer, text)) = place_of(&found, &texts)
        {
            pointer.clone_into(&mut found.location.pointer);
            if is_address(text) {
                (*text).clone_into(&mut found.address);
            }
        }
        if reported.insert((found.location.pointer.clone(), found.location.document.clone())) {
            draft.report_not_public(found.location, &found.address, found.reason);
        }
    }
    if let Some((origin, reason)) = declared.filter(|(origin, _)| !draft.is_reported_not_public(origin)) {
        let location = FindingLocation { pointer: place_of_origin(document, &origin), document: None };
        if reported.insert((location.pointer.clone(), None)) {
            draft.report_not_public(location, &origin, reason);
        }
    }
}

/// An address that is not public, of a capability or of an interface.
struct NotPublic {
    /// Position of the capability.
    capability: Option<usize>,
    location: FindingLocation,
    address: String,
    reason: &'static str,
}

fn not_public(draft: &Draft<'_>) -> Vec<NotPublic> {
    let (mut found, mut known) = (Vec::new(), HashSet::new());
    for (index, capability) in draft.manifest.capabilities.iter().enumerate() {
        let Some(address) = capability.invocation.endpoint() else { continue };
        if let Some(reason) = draft.not_public(address) {
            known.insert(address);
            let (location, address) = (FindingLocation::of(capability), address.to_owned());
            found.push(NotPublic { capability: Some(index), location, address, reason });
        }
    }
    for address in draft.manifest.interfaces.iter().filter_map(|interface| interface.url.as_deref()) {
        // An interface without a capability has no pointer of its own.
        if let Some(reason) = draft.not_public(address)
            && known.insert(address)
        {
            let (location, address) = (FindingLocation::default(), address.to_owned());
            found.push(NotPublic { capability: None, location, address, reason });
        }
    }
    found
}

/// Host and port of an address.
fn authority(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    rest.split(['/', '?', '#']).next().unwrap_or_default()
}

/// Maximum number of texts of one document that are compared with addresses.
const TEXTS_MAX: usize = 1_000;

/// The texts of a document that contain one of the hosts, with their pointers.
fn texts_with<'v>(document: &'v Value, authorities: &[&str]) -> Vec<(String, &'v str)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), document)];
    while let Some((pointer, value)) = open.pop() {
        if found.len() >= TEXTS_MAX {
            break;
        }
        match value {
            Value::String(text) if authorities.iter().any(|authority| text.contains(authority)) => {
                found.push((pointer, text.as_str()));
            }
            Value::Array(_) | Value::Object(_) => {
                let at = open.len();
                open.extend(children(value, &pointer).map(|(_, inner, pointer)| (pointer, inner)));
                // The stack returns the last element first.
                open.get_mut(at..).unwrap_or_default().reverse();
            }
            _ => {}
        }
    }
    found
}

/// The text that publishes an address: below the capability, or else the first address in the document that contains the host.
fn place_of<'t, 'v>(found: &NotPublic, texts: &'t [(String, &'v str)]) -> Option<&'t (String, &'v str)> {
    let host = authority(&found.address);
    let below = |pointer: &str| {
        let rest = pointer.strip_prefix(found.location.pointer.as_str());
        // The capability may be the text itself.
        found.capability.is_some() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let of = |wanted: &dyn Fn(&str, &str) -> bool| {
        texts.iter().find(|(pointer, text)| text.contains(host) && wanted(pointer, text))
    };
    let whole = found.address.trim_end_matches('/');
    of(&|pointer, text| below(pointer) && is_address(text))
        .or_else(|| of(&|_, text| text.trim().trim_end_matches('/') == whole))
        .or_else(|| of(&|_, text| is_address(text)))
        .or_else(|| of(&|_, _| true))
}

fn is_address(text: &str) -> bool {
    text.contains("://") && !text.contains(char::is_whitespace)
}

/// Pointer of the text that declares the origin; empty if none does.
fn place_of_origin(document: Option<&Value>, origin: &str) -> String {
    let texts = document.map(|document| texts_with(document, &[authority(origin)])).unwrap_or_default();
    let exact = texts.iter().find(|(_, text)| *text == origin);
    exact
        .or_else(|| texts.iter().find(|(_, text)| is_address(text)))
        .map(|(pointer, _)| pointer.clone())
        .unwrap_or_default()
}
