//! A summary of a site's manifests: capabilities by type, ways to authenticate, endpoints, and quality.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use manifest::model::{AuthScheme, ConformanceLevel, NamedBy, Protocol};
use policy::Status;

use super::card::{Tag, elsewhere_tag, money_tag, orders_tag};
use super::links::Link;
use super::site_documents::{Document, Documents};
use super::site_state::URL_CHARS_MAX;
use super::time::Moment;
use super::{icons, labels, links};
use crate::answers::caution::Elsewhere;
use crate::answers::claim::OwnerMark;
use crate::answers::shown::{CapabilityCounts, DESCRIPTION_CHARS_MIN, ShownCapability};
use crate::answers::site::{CapabilityLine, ManifestLine, SiteAnswer};
use crate::text;

/// Maximum number of capabilities on the page of a site; the search lists all of them.
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
    /// The site that an entry of a catalog is about.
    pub(super) of_site: Option<String>,
    /// Who declares it and the address of the document, if the document does not speak for the site.
    pub(super) declared: Option<(String, String)>,
    /// A sentence that is shown if several documents declare the capability.
    pub(super) documents: Option<String>,
    pub(super) tags: Vec<Tag>,
}

/// An authentication scheme with the URL where credentials are obtained.
pub(super) struct Scheme {
    pub(super) name: &'static str,
    pub(super) places: Vec<(&'static str, String)>,
}

pub(super) struct Endpoint {
    pub(super) name: &'static str,
    pub(super) url: String,
}

/// One measure of the quality of a site's declarations, with an explanation.
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

/// Position and heading of a group.
type Heading = (u8, String);

/// The capabilities by the field of their type; then those without a type, the entries about other sites, and those in documents that do
/// not speak for the site.
pub(super) fn groups(documents: &Documents<'_>) -> Vec<Group> {
    let mut by_field: BTreeMap<Heading, Vec<Offer>> = BTreeMap::new();
    let speaking = shown_lines(&documents.speaking).map(|line| (line, None));
    let of_users = documents.of_users.iter().flat_map(|document| {
        document.manifest.capabilities.iter().filter_map(shown_line).map(move |line| (line, Some(*document)))
    });
    for ((line, shown), document) in speaking.chain(of_users).take(CAPABILITIES_MAX) {
        let field = shown.semantic_type.as_deref().and_then(manifest::semantic_namespace);
        let heading = match (document, &shown.elsewhere, field) {
            (Some(_), ..) => (3, "Documents of its users and customers".to_owned()),
            (_, Some(Elsewhere::Lists(_)), _) => (2, "Lists agents of other sites".to_owned()),
            (_, _, Some(field)) => (0, text::cut(&labels::capitalised(field), NAME_CHARS_MAX)),
            (_, _, None) => (1, "Other".to_owned()),
        };
        by_field.entry(heading).or_default().push(offer(line, shown, document));
    }
    gather_singles(&mut by_field);
    let is_only = by_field.len() == 1;
    let group = |((position, name), offers): (Heading, Vec<Offer>)| Group {
        name: if position == 1 && is_only { String::new() } else { name },
        offers,
    };
    by_field.into_iter().map(group).collect()
}

/// Moves fields with a single capability to the heading "other" if there are several of them.
fn gather_singles(by_field: &mut BTreeMap<Heading, Vec<Offer>>) {
    let is_single = |((position, _), offers): &(&Heading, &Vec<Offer>)| *position == 0 && offers.len() == 1;
    let singles: Vec<Heading> =
        by_field.iter().filter(is_single).map(|(heading, _)| heading.clone()).collect();
    let other = (1, "Other".to_owned());
    if singles.len() > 1 || by_field.contains_key(&other) {
        let gathered: Vec<Offer> =
            singles.iter().filter_map(|single| by_field.remove(single)).flatten().collect();
        if !gathered.is_empty() {
            let others = by_field.entry(other).or_default();
            *others = gathered.into_iter().chain(std::mem::take(others)).collect();
        }
    }
}

/// The listed capabilities as the search shows them: each once.
fn shown_lines<'a>(
    manifests: &'a [&'a ManifestLine],
) -> impl Iterator<Item = (&'a CapabilityLine, &'a ShownCapability)> {
    let lines = manifests.iter().flat_map(|manifest| &manifest.capabilities);
    lines.filter_map(shown_line)
}

fn shown_line(line: &CapabilityLine) -> Option<(&CapabilityLine, &ShownCapability)> {
    Some((line, line.shown.as_ref()?))
}

/// The sums of the numbers of all manifests.
pub(super) fn counts(manifests: &[&ManifestLine]) -> CapabilityCounts {
    let mut total = CapabilityCounts::default();
    for counts in manifests.iter().map(|manifest| manifest.profile.counts) {
        total.all += counts.all;
        total.described += counts.described;
        total.own += counts.own;
        total.with_schema += counts.with_schema;
        total.callable += counts.callable;
    }
    total
}

/// Link to the documents that a site serves but does not name.
pub(super) fn documents_of_others(manifests: &[&ManifestLine], site: &str) -> Option<Link> {
    let count = manifests.len() as u64;
    let href = links::search([("site", site), ("named_by", NamedBy::Others.as_str())]);
    (count > 0).then(|| Link { text: labels::counted(count, "document", "documents"), href })
}

fn offer(line: &CapabilityLine, shown: &ShownCapability, document: Option<Document<'_>>) -> Offer {
    let of_site = match &shown.elsewhere {
        Some(Elsewhere::Lists(site)) => Some(site.to_string()),
        _ => None,
    };
    let mut tags = Vec::new();
    if of_site.is_none() {
        let (class, text) = (shown.safety.as_str(), labels::safety(shown.safety));
        tags.push(Tag { class, icon: icons::safety(shown.safety), ..Tag::plain(text) });
        tags.extend(shown.elsewhere.as_ref().map(elsewhere_tag));
    }
    tags.extend(shown.money.map(money_tag));
    tags.extend(line.addresses_reader.then(orders_tag));
    Offer {
        name: text::cut(&line.name, NAME_CHARS_MAX),
        href: links::capability(&shown.id),
        summary: shown.summary.clone(),
        of_site,
        declared: document.map(|document| {
            (labels::capitalised(&document.declared()), text::cut(document.url.as_str(), URL_CHARS_MAX))
        }),
        documents: (shown.documents > 1).then(|| {
            format!("declared in {}", labels::counted(shown.documents as u64, "document", "documents"))
        }),
        tags,
    }
}

/// Requirements of the calls, each with the number of capabilities that have it: `bearer token: 3 of 4 capabilities`.
pub(super) fn needs(manifests: &[&ManifestLine]) -> Vec<String> {
    let mut needs: BTreeMap<String, u64> = BTreeMap::new();
    let mut total = 0;
    for (_, shown) in shown_lines(manifests) {
        if !matches!(shown.elsewhere, Some(Elsewhere::Lists(_))) {
            *needs.entry(labels::auth_needed(&shown.auth, shown.auth_required)).or_default() += 1;
            total += 1;
        }
    }
    let mut needs: Vec<(String, u64)> = needs.into_iter().collect();
    needs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let of = labels::counted(total, "capability", "capabilities");
    let words = |(words, count): (String, u64)| {
        format!("{}: {} of {of}", labels::capitalised(&words), labels::grouped(count))
    };
    needs.into_iter().take(ENTRIES_MAX).map(words).collect()
}

/// Where the credentials of each scheme are obtained.
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
        let places: Vec<_> = addresses.into_iter().filter_map(place).collect();
        if !places.is_empty() {
            schemes.push(Scheme { name, places });
        }
    }
    schemes
}

pub(super) fn endpoints(manifests: &[&ManifestLine]) -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = Vec::new();
    for (protocol, url) in manifests.iter().flat_map(|manifest| &manifest.profile.interfaces) {
        let Some(url) = links::harmless(url) else { continue };
        if endpoints.len() < ENTRIES_MAX && !endpoints.iter().any(|known| known.url == url) {
            endpoints.push(Endpoint { name: labels::protocol(*protocol), url });
        }
    }
    endpoints
}

/// All measures of quality, without weights.
pub(super) fn quality(answer: &SiteAnswer, manifests: &[&ManifestLine], now: DateTime<Utc>) -> Vec<Quality> {
    if manifests.is_empty() {
        return Vec::new();
    }
    let counts = counts(manifests);
    let mut parts = vec![conformance(manifests), freshness(answer, now)];
    if counts.all > 0 {
        let have = format!("have a description of at least {DESCRIPTION_CHARS_MIN} characters");
        parts.push(share("Descriptions", counts.described, counts.all, &have));
    }
    if counts.own > 0 {
        parts.push(share("Parameters", counts.with_schema, counts.own, "state their parameters"));
        let callable = share("Callable", counts.callable, counts.own, "name an address and how to call it");
        parts.push(match counts.callable {
            0 if has_mcp_server(manifests) => Quality {
                explained: "its MCP server lists its tools; the document does not".to_owned(),
                ..callable
            },
            _ => callable,
        });
    }
    parts
}

fn has_mcp_server(manifests: &[&ManifestLine]) -> bool {
    let mut interfaces = manifests.iter().flat_map(|manifest| &manifest.profile.interfaces);
    interfaces.any(|(protocol, _)| *protocol == Protocol::Mcp)
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
    let value = labels::capitalised(labels::status(answer.line.status));
    let seen = seen.map_or_else(|| "not visited yet".to_owned(), |seen| format!("last visited {seen}"));
    Quality::new("Freshness", value, class, seen)
}

fn share(name: &'static str, count: usize, total: usize, what: &str) -> Quality {
    let class = if count == total { "ok" } else { "stale" };
    Quality::new(name, format!("{count} of {total}"), class, format!("capabilities {what}"))
}
