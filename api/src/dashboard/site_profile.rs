//! A summary of a site's manifests: capabilities by type, ways to authenticate, endpoints, and quality.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use manifest::model::{AuthScheme, ConformanceLevel, NamedBy, Protocol};
use policy::Status;

use super::links::Link;
use super::time::Moment;
use super::{icons, labels, links};
use crate::answers::claim::OwnerMark;
use crate::answers::site::{CapabilityLine, ManifestLine, SiteAnswer};
use crate::text;

/// Maximum number of capabilities on the page of a site; the search has them all.
pub(super) const CAPABILITIES_MAX: usize = 60;
/// Maximum number of shown endpoints and schemes.
const ENTRIES_MAX: usize = 12;
/// Maximum length of a name, in characters.
const NAME_CHARS_MAX: usize = 120;

/// Capabilities of one field.
pub(super) struct Group {
    pub(super) name: String,
    pub(super) offers: Vec<Offer>,
}

pub(super) struct Offer {
    pub(super) name: String,
    pub(super) href: String,
    pub(super) summary: String,
    pub(super) safety: &'static str,
    pub(super) safety_class: &'static str,
    pub(super) safety_icon: &'static str,
}

/// A way to authenticate, and where.
pub(super) struct Scheme {
    pub(super) name: &'static str,
    pub(super) places: Vec<(&'static str, String)>,
}

pub(super) struct Endpoint {
    pub(super) protocol: Protocol,
    pub(super) name: &'static str,
    pub(super) url: String,
}

/// One part of the quality of a site's declarations, with what it means.
pub(super) struct Quality {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) class: &'static str,
    pub(super) explained: String,
    /// Whether the findings that it counts are listed on the page.
    pub(super) leads_to_findings: bool,
}

impl Quality {
    fn new(
        name: &'static str,
        value: impl Into<String>,
        class: &'static str,
        explained: impl Into<String>,
    ) -> Self {
        Self { name, value: value.into(), class, explained: explained.into(), leads_to_findings: false }
    }
}

/// Who proved control of the domain.
pub(super) struct OwnerView {
    pub(super) by: &'static str,
    pub(super) since: Moment,
    pub(super) last_proven: Moment,
    pub(super) missing_since: Option<Moment>,
}

impl OwnerView {
    pub(super) fn of(owner: &OwnerMark, now: DateTime<Utc>) -> Self {
        Self {
            by: labels::proof(owner.by),
            since: Moment::new(owner.since, now),
            last_proven: Moment::new(owner.last_proven_at, now),
            missing_since: Moment::maybe(owner.missing_since, now),
        }
    }
}

/// The capabilities by the field of their type; those without a type come last.
pub(super) fn groups(manifests: &[&ManifestLine]) -> Vec<Group> {
    let lines = manifests.iter().flat_map(|manifest| &manifest.capabilities).take(CAPABILITIES_MAX);
    let mut by_field: BTreeMap<(bool, String), Vec<Offer>> = BTreeMap::new();
    for line in lines {
        let field = line.semantic_type.as_deref().and_then(manifest::semantic_namespace);
        let name = field.map_or_else(
            || "Other".to_owned(),
            |field| text::cut(&labels::capitalised(field), NAME_CHARS_MAX),
        );
        by_field.entry((field.is_none(), name)).or_default().push(offer(line));
    }
    let is_only = by_field.len() == 1;
    let group = |((is_other, name), offers): ((bool, String), Vec<Offer>)| Group {
        name: if is_other && is_only { String::new() } else { name },
        offers,
    };
    by_field.into_iter().map(group).collect()
}

/// The documents that a site serves and does not name.
pub(super) fn documents_of_others(manifests: &[&ManifestLine], site: &str) -> Option<Link> {
    let count = manifests.len() as u64;
    let href = links::search([("site", site), ("named_by", NamedBy::Others.as_str())]);
    (count > 0).then(|| Link { text: labels::counted(count, "document", "documents"), href })
}

fn offer(line: &CapabilityLine) -> Offer {
    Offer {
        name: text::cut(&line.name, NAME_CHARS_MAX),
        href: links::capability(&line.id),
        summary: line.summary.clone(),
        safety: labels::safety(line.safety),
        safety_class: line.safety.as_str(),
        safety_icon: icons::safety(line.safety),
    }
}

pub(super) fn schemes(manifests: &[&ManifestLine]) -> Vec<Scheme> {
    let mut schemes: Vec<Scheme> = Vec::new();
    for auth in manifests.iter().flat_map(|manifest| &manifest.profile.auth) {
        let name = labels::auth(auth.scheme);
        let is_known = schemes.iter().any(|scheme| scheme.name == name);
        if is_known || auth.scheme == AuthScheme::Unknown || schemes.len() >= ENTRIES_MAX {
            continue;
        }
        let addresses = [
            ("register a client", &auth.registration_url),
            ("sign in", &auth.authorize_url),
            ("token endpoint", &auth.token_url),
            ("documentation", &auth.docs_url),
        ];
        let place =
            |(label, url): (&'static str, &Option<String>)| Some((label, links::harmless(url.as_deref()?)?));
        schemes.push(Scheme { name, places: addresses.into_iter().filter_map(place).collect() });
    }
    schemes
}

pub(super) fn endpoints(manifests: &[&ManifestLine]) -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for (protocol, url) in manifests.iter().flat_map(|manifest| &manifest.profile.interfaces) {
        let Some(url) = links::harmless(url) else { continue };
        if endpoints.len() < ENTRIES_MAX && !endpoints.iter().any(|known| known.url == url) {
            endpoints.push(Endpoint { protocol: *protocol, name: labels::protocol(*protocol), url });
        }
    }
    endpoints
}

/// The parts of quality: nothing is weighed and nothing is left out.
pub(super) fn quality(answer: &SiteAnswer, manifests: &[&ManifestLine], now: DateTime<Utc>) -> Vec<Quality> {
    if manifests.is_empty() {
        return Vec::new();
    }
    let total: usize = manifests.iter().map(|manifest| manifest.capabilities_total).sum();
    let sum = |of: fn(&ManifestLine) -> usize| manifests.iter().map(|manifest| of(manifest)).sum::<usize>();
    let mut parts = vec![conformance(manifests), freshness(answer, now)];
    if total > 0 {
        parts.push(share(
            "Descriptions",
            sum(|m| m.profile.described),
            total,
            "describe themselves in at least 20 characters",
        ));
        parts.push(share("Parameters", sum(|m| m.profile.with_schema), total, "state their parameters"));
        parts.push(share(
            "Callable",
            sum(|m| m.profile.callable),
            total,
            "name an address and how to call it",
        ));
    }
    parts
}

fn conformance(manifests: &[&ManifestLine]) -> Quality {
    let levels = manifests.iter().filter_map(|manifest| manifest.conformance.first());
    let worst = levels.map(|conformance| conformance.level).max_by_key(|level| match level {
        ConformanceLevel::Conforms => 0,
        ConformanceLevel::Minor => 1,
        ConformanceLevel::Major => 2,
        ConformanceLevel::Unparseable => 3,
    });
    let findings: usize = manifests.iter().map(|manifest| manifest.findings_total).sum();
    let (value, class) = match worst {
        Some(ConformanceLevel::Unparseable) => ("Unreadable", "error"),
        Some(ConformanceLevel::Major) => ("Breaks a rule", "error"),
        Some(ConformanceLevel::Minor) => ("Breaks advice", "stale"),
        Some(ConformanceLevel::Conforms) => ("Conforms", "ok"),
        None => ("Not judged", "plain"),
    };
    let explained = format!(
        "{} in {}",
        labels::counted(findings as u64, "finding", "findings"),
        labels::counted(manifests.len() as u64, "document", "documents")
    );
    Quality { leads_to_findings: findings > 0, ..Quality::new("Conformance", value, class, explained) }
}

fn freshness(answer: &SiteAnswer, now: DateTime<Utc>) -> Quality {
    let seen = answer.line.last_visit_at.map(|at| Moment::new(at, now).words);
    if labels::is_unreadable(&answer.line.formats)
        && let Some(seen) = &seen
    {
        let value = format!("Fetched {seen}");
        return Quality::new("Freshness", value, "error", "but not readable");
    }
    let class = match answer.line.status {
        Status::Fresh => "ok",
        Status::Stale | Status::Pending => "stale",
        _ => "error",
    };
    let value = labels::capitalised(answer.line.status.label());
    let seen = seen.map_or_else(|| "not visited yet".to_owned(), |seen| format!("last visited {seen}"));
    Quality::new("Freshness", value, class, seen)
}

fn share(name: &'static str, count: usize, total: usize, what: &str) -> Quality {
    let class = match count {
        0 => "error",
        count if count == total => "ok",
        _ => "stale",
    };
    Quality::new(name, format!("{count} of {total}"), class, format!("capabilities {what}"))
}
