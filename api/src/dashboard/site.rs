//! The page of one site: its capabilities and how to use them. For its owner: how the site was read, what to fix, when the next visit is,
//! and how to opt out.

use askama::Template;
use chrono::{DateTime, Utc};
use manifest::model::PolicyChoice;
use manifest::{Format, ManifestUrl, NamedBy};
use policy::FetchOutcome;
use serde_json::json;
use store::{FetchReport, NextVisit, VisitReport};

use super::capability::FindingView;
use super::frame::{Frame, Section};
use super::links::Link;
use super::reported::reasons;
use super::site_contradictions::{
    Contradiction, ListedOnly, Listing, contradictions, listed_only, listings_of_declared,
};
use super::site_diagnosis::{self, Diagnosis};
use super::site_documents::Documents;
use super::site_profile::CAPABILITIES_MAX;
use super::site_profile::{
    Endpoint, Group, OwnerView, Quality, Scheme, counts, documents_of_others, endpoints, groups, needs,
    quality, schemes,
};
use super::site_robots;
use super::site_state::{
    FINDINGS_MAX, RecheckWait, SuspendedView, URL_CHARS_MAX, WORDS_CHARS_MAX, being_visited, is_due,
    is_waiting, next_visit, status,
};
use super::time::Moment;
use super::use_it::clients::Client;
use super::{icons, labels, links};
use crate::answers::liveness::Liveness;
use crate::answers::site::{ManifestLine, Profile, ResourceLine, SiteAnswer};
use crate::answers::site_hosts::HostLine;
use crate::page_context::PageContext;
use crate::text;

/// Maximum number of displayed findings of all manifests of the site; the JSON response has all.
const FINDINGS_OF_SITE_MAX: usize = 500;
/// Maximum number of displayed documents of a site; the JSON response has all.
const RESOURCES_MAX: usize = 200;
/// Maximum number of displayed reasons of one document, and requests of one visit.
const EVIDENCE_MAX: usize = 20;
const FETCHES_MAX: usize = 200;
/// Maximum length of a displayed header, in characters.
const HEADER_CHARS_MAX: usize = 200;

/// A time with its reason.
struct Reasoned {
    at: Moment,
    reason: String,
}

struct Resource {
    url: String,
    href: Option<String>,
    outcome: &'static str,
    outcome_class: &'static str,
    http_status: Option<u16>,
    format: Option<&'static str>,
    conformance: Option<String>,
    publisher: Option<String>,
    strength: &'static str,
    evidence: Vec<String>,
    discovery: &'static str,
    linked_from: Option<String>,
    robots_rule: Option<String>,
    reason: Option<String>,
    fetched: Moment,
    changed: Option<Moment>,
    fresh_until: Option<Moment>,
    headers: Vec<(String, String)>,
    manifest_id: Option<String>,
    raw: bool,
    training_denied: bool,
    versions: String,
    findings: Vec<FindingView>,
    /// Findings that are not shown.
    more_findings: Option<String>,
}

struct Robots {
    decision: &'static str,
    /// ` (HTTP 503, it asked for a delay)`
    details: String,
    fetched: Moment,
    expires: Moment,
    /// Lines with preferences about the use of content.
    preferences: Vec<String>,
    text: Option<String>,
}

struct HostView {
    host: String,
    robots: Option<Robots>,
}

struct Fetch {
    outcome: &'static str,
    class: &'static str,
    path: String,
    why: String,
}

struct Visit {
    at: Moment,
    end: &'static str,
    summary: String,
    fetches: Vec<Fetch>,
    /// Text about requests for paths without a document.
    absent: Option<String>,
}

#[derive(Template)]
#[template(path = "site.html")]
#[expect(clippy::struct_excessive_bools, reason = "a template reads one condition from each")]
pub(crate) struct SitePage {
    frame: Frame,
    site: String,
    icon: String,
    /// The name that the site declares, unless its texts give orders to AI models.
    name: Option<String>,
    /// The domain with its international letters.
    unicode_domain: Option<String>,
    description: Option<String>,
    publisher: Option<String>,
    contact: Option<String>,
    contact_href: Option<String>,
    status: String,
    status_class: &'static str,
    capabilities: String,
    visits_words: String,
    dialects: Vec<(&'static str, &'static str)>,
    groups: Vec<Group>,
    /// Whether documents at the domain describe the site, not those of other hosts.
    is_described_by_itself: bool,
    more_capabilities: Option<Link>,
    /// Link to documents that only other sites name.
    of_others: Option<Link>,
    /// Whether a text of the site gives instructions to AI models.
    addresses_reader: bool,
    /// Requirements of the calls, as texts.
    needs: Vec<String>,
    schemes: Vec<Scheme>,
    endpoints: Vec<Endpoint>,
    clients: Vec<Client>,
    quality: Vec<Quality>,
    contradictions: Vec<Contradiction>,
    listed_by: Vec<Listing>,
    listed_only: Vec<ListedOnly>,
    /// A sentence about requested paths without a document.
    absent: Option<String>,
    absent_paths: Vec<String>,
    findings_words: Option<String>,
    /// A sentence about a visit in progress.
    being_visited: Option<String>,
    is_waiting: bool,
    /// Whether a visit is due, other than the first one.
    is_due: bool,
    diagnosis: Option<Diagnosis>,
    /// The time until "Check again" is possible.
    recheck_wait: Option<RecheckWait>,
    /// Link to the line-by-line view of the first document with findings.
    broken_href: Option<String>,
    owner: Option<OwnerView>,
    /// The daily checks of the site's hosts, in words.
    liveness: Vec<String>,
    blocked: Option<Reasoned>,
    suspended: Option<SuspendedView>,
    report_reasons: Vec<(&'static str, &'static str)>,
    parked: Option<Reasoned>,
    pause: Option<Moment>,
    resources: Vec<Resource>,
    /// Documents that are not shown.
    more_resources: Option<String>,
    hosts: Vec<HostView>,
    /// Hosts that are not shown.
    more_hosts: Option<String>,
    next_visit: Option<Moment>,
    next_reason: Option<String>,
    visits: Vec<Visit>,
    opt_out: &'static str,
    /// Public address of this server.
    base: String,
}

impl SitePage {
    /// Whether all fetched data is deleted because the site is blocked or suspended.
    const fn is_deleted(&self) -> bool {
        self.blocked.is_some() || self.suspended.is_some()
    }
}

#[expect(clippy::too_many_lines, reason = "one member of the page a line")]
pub(crate) fn page(answer: &SiteAnswer, context: &PageContext) -> SitePage {
    let now = context.now;
    let line = &answer.line;
    let documents = Documents::of(answer);
    let (speaking, services, named) = (&documents.speaking, documents.services(), documents.named());
    let first = |of: fn(&Profile) -> &Option<String>| documents.first(of);
    let contact = first(|profile| &profile.contact);
    let (absent, present): (Vec<&ResourceLine>, Vec<&ResourceLine>) =
        answer.resources.iter().partition(|resource| is_absent(resource));
    let unlisted = present.len().saturating_sub(RESOURCES_MAX) as u64;
    let findings: usize =
        named.iter().chain(&documents.of_others).map(|manifest| manifest.findings_total).sum();
    let reasoned =
        |visit: &NextVisit| Reasoned { at: Moment::new(visit.at, now), reason: visit.reason.clone() };
    let (status, status_class) = status(answer, now);
    let addresses_reader = speaking.iter().any(|manifest| manifest.profile.addresses_reader);
    let mut findings_max = FINDINGS_OF_SITE_MAX;
    let shown = present.iter().take(RESOURCES_MAX);
    let resources = shown.map(|resource| resource_view(resource, now, &mut findings_max)).collect();
    SitePage {
        frame: frame(answer, first(|profile| &profile.description).as_deref(), context),
        site: line.site.to_string(),
        icon: icons::of_site(line.site.as_str(), 64),
        name: heading(first(|profile| &profile.title), answer, addresses_reader),
        unicode_domain: line.site.in_unicode(),
        description: first(|profile| &profile.description),
        publisher: first(|profile| &profile.publisher),
        contact_href: contact.as_deref().and_then(links::harmless),
        contact,
        status,
        status_class,
        capabilities: labels::counted(u64::from(line.capabilities), "capability", "capabilities"),
        visits_words: labels::counted(u64::from(answer.visits_total), "visit", "visits"),
        dialects: dialects(&line.formats),
        groups: groups(&documents),
        is_described_by_itself: documents.are_of_site(),
        more_capabilities: more_capabilities(&named, line.site.as_str()),
        of_others: documents_of_others(&documents.of_others, line.site.as_str()),
        addresses_reader,
        needs: needs(speaking),
        schemes: schemes(&services),
        clients: documents.mcp_clients(&line.site),
        endpoints: endpoints(&services),
        quality: quality(answer, speaking, now),
        contradictions: contradictions(answer),
        listed_by: listings_of_declared(answer),
        listed_only: listed_only(answer),
        absent: absent_words(absent.len() as u64),
        absent_paths: absent.iter().take(RESOURCES_MAX).map(|r| shown_url(&r.url)).collect(),
        findings_words: more(findings as u64, "thing to fix", "things to fix"),
        being_visited: being_visited(answer),
        is_waiting: is_waiting(answer),
        is_due: is_due(answer, now) && !answer.is_being_visited,
        diagnosis: site_diagnosis::of(answer),
        recheck_wait: RecheckWait::of(answer, now),
        broken_href: broken_href(&present),
        owner: answer.owner.as_ref().map(|owner| OwnerView::of(owner, now)),
        liveness: answer.liveness.iter().map(Liveness::in_words).collect(),
        blocked: blocked(answer, now),
        suspended: answer.suspended.as_ref().map(|suspension| SuspendedView::new(suspension, now)),
        report_reasons: reasons(),
        parked: answer.parked.as_ref().map(reasoned),
        pause: Moment::maybe(answer.not_before.filter(|until| *until > now), now),
        resources,
        more_resources: more(unlisted, "more document", "more documents"),
        more_hosts: more_hosts(answer),
        hosts: answer.hosts.iter().map(|host| host_view(host, now)).collect(),
        next_visit: next_visit(answer, now),
        next_reason: line.next_visit_reason.clone(),
        visits: answer.visits.iter().map(|visit| visit_view(visit, now)).collect(),
        opt_out: answer.opt_out,
        base: context.base.clone(),
    }
}

/// The declared name, unless it is the domain, or a text of the site addresses AI models.
fn heading(declared: Option<String>, answer: &SiteAnswer, addresses_reader: bool) -> Option<String> {
    declared.filter(|name| !addresses_reader && *name != answer.line.site.to_string())
}

/// Icon and name of each dialect of the site.
fn dialects(formats: &[Format]) -> Vec<(&'static str, &'static str)> {
    let readable = formats.iter().filter(|format| format.is_indexable());
    readable.map(|format| (icons::format(*format), format.label())).collect()
}

/// Whether a path was requested and has no document.
fn is_absent(resource: &ResourceLine) -> bool {
    resource.manifest.is_none() && matches!(resource.outcome, FetchOutcome::NotFound | FetchOutcome::Gone)
}

/// Link to the line-by-line view of the first stored document with findings.
fn broken_href(present: &[&ResourceLine]) -> Option<String> {
    let is_broken = |manifest: &ManifestLine| manifest.findings_total > 0 && manifest.body_kept;
    let broken = present.iter().find(|resource| resource.manifest.as_ref().is_some_and(is_broken))?;
    Some(links::with_query("/validate", [("url", broken.url.as_str())]))
}

fn more_hosts(answer: &SiteAnswer) -> Option<String> {
    let unlisted = answer.hosts_total.saturating_sub(answer.hosts.len() as u64);
    more(unlisted, "more host", "more hosts")
}

/// A sentence about requested paths without a document.
fn absent_words(count: u64) -> Option<String> {
    let paths = labels::counted(count, "usual path has", "usual paths have");
    (count > 0).then(|| format!("{paths} no document here, which is fine"))
}

fn frame(answer: &SiteAnswer, description: Option<&str>, context: &PageContext) -> Frame {
    let site = answer.line.site.as_str();
    let path = format!("/sites/{site}");
    let offered = labels::counted(u64::from(answer.line.capabilities), "capability", "capabilities");
    let said = description.unwrap_or("What it declares to AI agents, and how it was read.");
    let data = json!({
        "@context": "https://schema.org", "@type": "WebAPI", "name": site,
        "description": text::one_line(said, WORDS_CHARS_MAX),
        "url": format!("{}{path}", context.base), "documentation": format!("https://{site}/"),
    });
    let frame = Frame::new(site, Section::Sites).at(context, &path);
    frame.described(&format!("{site} offers {offered} to AI agents. {said}")).with_json_ld(&data)
}

fn blocked(answer: &SiteAnswer, now: DateTime<Utc>) -> Option<Reasoned> {
    let blocked = answer.blocked.as_ref()?;
    Some(Reasoned { at: Moment::new(blocked.at, now), reason: blocked.reason.clone() })
}

/// How many entries of a list are not shown.
fn more(count: u64, one: &str, many: &str) -> Option<String> {
    (count > 0).then(|| labels::counted(count, one, many))
}

/// A URL on the page: its beginning, if it is long.
fn shown_url(url: &ManifestUrl) -> String {
    text::cut(url.as_str(), URL_CHARS_MAX)
}

/// A document with at most `findings_max` findings, which becomes the number that is left.
fn resource_view(line: &ResourceLine, now: DateTime<Utc>, findings_max: &mut usize) -> Resource {
    let manifest = line.manifest.as_ref();
    let findings = manifest.map(|manifest| findings(manifest, *findings_max)).unwrap_or_default();
    *findings_max -= findings.len();
    let findings_total = manifest.map_or(0, |manifest| manifest.findings_total);
    let (outcome, outcome_class) = labels::outcome_of(line.outcome, manifest.map(|manifest| manifest.format));
    let words = |text: &String| text::cut(text, WORDS_CHARS_MAX);
    let header =
        |(name, value): &(String, String)| (name.clone(), value.chars().take(HEADER_CHARS_MAX).collect());
    Resource {
        url: shown_url(&line.url),
        href: links::harmless(line.url.as_str()).filter(|href| href.chars().count() <= URL_CHARS_MAX),
        outcome,
        outcome_class,
        http_status: line.http_status,
        format: manifest.map(|manifest| manifest.format.label()),
        conformance: manifest.and_then(conformance_words),
        publisher: manifest.map(publisher_words),
        strength: manifest.map_or("", |manifest| labels::strength(manifest.detection.strength)),
        evidence: manifest
            .filter(|manifest| !labels::is_unreadable_as(manifest.format))
            .map(|manifest| manifest.detection.evidence.iter().take(EVIDENCE_MAX).map(words).collect())
            .unwrap_or_default(),
        discovery: line.discovery.label(),
        linked_from: line.linked_from.as_ref().map(shown_url),
        robots_rule: line.robots_rule.as_ref().map(words),
        reason: line.reason.as_ref().map(words),
        fetched: Moment::new(line.fetched_at, now),
        changed: Moment::maybe(line.changed_at, now),
        fresh_until: Moment::maybe(line.fresh_until, now),
        headers: line.headers.iter().map(header).collect(),
        manifest_id: manifest
            .map(|manifest| &manifest.id)
            .or(line.manifest_left_out.as_ref())
            .map(ToString::to_string),
        raw: manifest.is_some_and(|manifest| manifest.body_kept),
        training_denied: manifest.is_some_and(|manifest| manifest.training == PolicyChoice::Deny),
        versions: manifest
            .map(|manifest| labels::counted(u64::from(manifest.versions), "version", "versions"))
            .unwrap_or_default(),
        more_findings: more(
            findings_total.saturating_sub(findings.len()) as u64,
            "more finding",
            "more findings",
        ),
        findings,
    }
}

fn conformance_words(manifest: &ManifestLine) -> Option<String> {
    let first = manifest.conformance.first()?;
    Some(format!("{}: {}", first.spec, first.level.in_words()))
}

fn publisher_words(manifest: &ManifestLine) -> String {
    let marks = manifest.profile.identity.iter().rev().map(|mark| labels::identity_value(*mark));
    marks.collect::<Vec<_>>().join(", ")
}

fn more_capabilities(manifests: &[&ManifestLine], site: &str) -> Option<Link> {
    let more = counts(manifests).all.checked_sub(CAPABILITIES_MAX).filter(|more| *more > 0)?;
    let href = links::search([("site", site), ("named_by", NamedBy::Site.as_str())]);
    Some(Link { text: format!("and {more} more"), href })
}

/// At most `max` findings, the worst first.
fn findings(manifest: &ManifestLine, max: usize) -> Vec<FindingView> {
    let mut sorted: Vec<_> = manifest.findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    sorted.into_iter().take(max.min(FINDINGS_MAX)).map(FindingView::from).collect()
}

fn host_view(line: &HostLine, now: DateTime<Utc>) -> HostView {
    let robots = line.robots.as_ref().map(|robots| Robots {
        decision: labels::robots(robots.kind),
        details: site_robots::details(
            robots.http_status,
            (robots.cause.as_deref(), robots.redirects_to.as_deref()),
        ),
        fetched: Moment::new(robots.fetched_at, now),
        expires: Moment::new(robots.expires_at, now),
        preferences: robots.text.as_deref().map(site_robots::preferences).unwrap_or_default(),
        text: robots.text.clone(),
    });
    HostView { host: line.host.to_string(), robots }
}

fn visit_view(visit: &VisitReport, now: DateTime<Utc>) -> Visit {
    let seconds = (visit.ended_at - visit.started_at).num_milliseconds().max(0);
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let seconds = seconds as f64 / 1e3;
    let requests = labels::counted(u64::from(visit.requests), "request", "requests");
    let (absent, shown): (Vec<&FetchReport>, Vec<&FetchReport>) =
        visit.fetches.iter().partition(|fetch| fetch.outcome == FetchOutcome::NotFound);
    Visit {
        at: Moment::new(visit.started_at, now),
        end: visit.end.description(),
        summary: format!("{requests}, {}, {seconds:.1} seconds", labels::bytes(visit.bytes_in)),
        fetches: shown.iter().take(FETCHES_MAX).map(|fetch| fetch_view(fetch)).collect(),
        absent: (!absent.is_empty()).then(|| {
            let paths = labels::counted(absent.len() as u64, "usual path", "usual paths");
            format!("{paths} without a document (HTTP 404)")
        }),
    }
}

fn fetch_view(fetch: &FetchReport) -> Fetch {
    let mut why: Vec<String> = Vec::new();
    why.extend(fetch.status.map(|status| format!("HTTP {status}")));
    if fetch.outcome.is_response() {
        why.push(format!("{} ms", fetch.duration_ms));
    }
    why.extend(fetch.format.map(|format| format.label().to_owned()));
    why.extend(fetch.reason.clone());
    why.extend(fetch.robots_rule.as_ref().map(|rule| format!("robots.txt: {rule}")));
    why.extend(fetch.final_url.as_ref().filter(|url| **url != fetch.url).map(|url| format!("led to {url}")));
    let (outcome, class) = labels::outcome_of(fetch.outcome, fetch.format);
    Fetch {
        outcome,
        class,
        path: text::cut(fetch.url.as_str().trim_start_matches("https://"), WORDS_CHARS_MAX),
        why: text::cut(&why.join(" · "), WORDS_CHARS_MAX),
    }
}
