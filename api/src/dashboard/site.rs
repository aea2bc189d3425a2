//! The page of one site, for its owner: what was fetched and why, what to fix, when the next visit is, how to opt out.

use askama::Template;
use chrono::{DateTime, Utc};
use manifest::model::PolicyChoice;
use store::{FetchReport, NextVisit, VisitReport};

use super::capability::FindingView;
use super::frame::{Frame, Section};
use super::links::Link;
use super::time::Moment;
use super::{labels, links};
use crate::answers::site::{HostLine, ManifestLine, ResourceLine, SiteAnswer};
use crate::text;

/// Linked capabilities of one manifest; the search has them all.
const CAPABILITIES_MAX: usize = 24;
/// Displayed findings of one manifest, and of all manifests of the site; the JSON response has all.
const FINDINGS_MAX: usize = 50;
const FINDINGS_OF_SITE_MAX: usize = 500;
/// Displayed documents of a site; the JSON response has all.
const RESOURCES_MAX: usize = 200;
/// Displayed reasons of one document, and requests of one visit.
const EVIDENCE_MAX: usize = 20;
const FETCHES_MAX: usize = 200;
/// Maximum length of a displayed name, reason or address, in characters.
const WORDS_CHARS_MAX: usize = 300;
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
    capabilities: Vec<Link>,
    more_capabilities: Option<Link>,
    findings: Vec<FindingView>,
    /// Findings that are not shown.
    more_findings: Option<String>,
}

struct Robots {
    decision: &'static str,
    cause: Option<String>,
    http_status: Option<u16>,
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
}

#[derive(Template)]
#[template(path = "site.html")]
pub(crate) struct SitePage {
    frame: Frame,
    site: String,
    status: &'static str,
    status_class: &'static str,
    capabilities: String,
    visits_words: String,
    blocked: Option<Reasoned>,
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

pub(crate) fn page(answer: &SiteAnswer, base: String, now: DateTime<Utc>) -> SitePage {
    let line = &answer.line;
    let reasoned =
        |visit: &NextVisit| Reasoned { at: Moment::new(visit.at, now), reason: visit.reason.clone() };
    let mut findings_max = FINDINGS_OF_SITE_MAX;
    let shown = answer.resources.iter().take(RESOURCES_MAX);
    let resources =
        shown.map(|resource| resource_view(resource, line.site.as_str(), now, &mut findings_max)).collect();
    SitePage {
        frame: Frame::new(line.site.to_string(), Section::Sites),
        site: line.site.to_string(),
        status: labels::status(line.status),
        status_class: line.status.as_str(),
        capabilities: labels::counted(u64::from(line.capabilities), "capability", "capabilities"),
        visits_words: labels::counted(u64::from(answer.visits_total), "visit", "visits"),
        blocked: answer
            .blocked
            .as_ref()
            .map(|blocked| Reasoned { at: Moment::new(blocked.at, now), reason: blocked.reason.clone() }),
        parked: answer.parked.as_ref().map(reasoned),
        pause: Moment::maybe(answer.not_before.filter(|until| *until > now), now),
        resources,
        more_resources: more(
            answer.resources.len().saturating_sub(RESOURCES_MAX) as u64,
            "more document",
            "more documents",
        ),
        more_hosts: more(
            answer.hosts_total.saturating_sub(answer.hosts.len() as u64),
            "more host",
            "more hosts",
        ),
        hosts: answer.hosts.iter().map(|host| host_view(host, now)).collect(),
        next_visit: Moment::maybe(line.next_visit_at, now),
        next_reason: line.next_visit_reason.clone(),
        visits: answer.visits.iter().map(|visit| visit_view(visit, now)).collect(),
        opt_out: answer.opt_out,
        base,
    }
}

/// How many entries of a list are not shown.
fn more(count: u64, one: &str, many: &str) -> Option<String> {
    (count > 0).then(|| labels::counted(count, one, many))
}

/// A document with at most `findings_max` findings, which becomes the number that is left.
fn resource_view(line: &ResourceLine, site: &str, now: DateTime<Utc>, findings_max: &mut usize) -> Resource {
    let manifest = line.manifest.as_ref();
    let findings = manifest.map(|manifest| findings(manifest, *findings_max)).unwrap_or_default();
    *findings_max -= findings.len();
    let findings_total = manifest.map_or(0, |manifest| manifest.findings_total);
    let words = |text: &String| text::cut(text, WORDS_CHARS_MAX);
    let header =
        |(name, value): &(String, String)| (name.clone(), value.chars().take(HEADER_CHARS_MAX).collect());
    Resource {
        url: line.url.to_string(),
        href: links::harmless(line.url.as_str()),
        outcome: labels::outcome(line.outcome),
        outcome_class: labels::outcome_class(line.outcome),
        http_status: line.http_status,
        format: manifest.map(|manifest| manifest.format.label()),
        conformance: manifest.and_then(conformance_words),
        strength: manifest.map_or("", |manifest| labels::strength(manifest.detection.strength)),
        evidence: manifest
            .map(|manifest| manifest.detection.evidence.iter().take(EVIDENCE_MAX).map(words).collect())
            .unwrap_or_default(),
        discovery: labels::discovery(line.discovery),
        linked_from: line.linked_from.as_ref().map(ToString::to_string),
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
        capabilities: manifest.map(capability_links).unwrap_or_default(),
        more_capabilities: manifest.and_then(|manifest| more_capabilities(manifest, site)),
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
    Some(format!("{}: {}", first.spec, first.level.as_str()))
}

fn capability_links(manifest: &ManifestLine) -> Vec<Link> {
    let link = |capability: &crate::answers::site::CapabilityLine| Link {
        text: text::cut(&capability.name, WORDS_CHARS_MAX),
        href: format!("/capabilities/{}", capability.id),
    };
    manifest.capabilities.iter().take(CAPABILITIES_MAX).map(link).collect()
}

fn more_capabilities(manifest: &ManifestLine, site: &str) -> Option<Link> {
    let more = manifest.capabilities_total.checked_sub(CAPABILITIES_MAX).filter(|more| *more > 0)?;
    Some(Link { text: format!("and {more} more"), href: links::search([("site", site)]) })
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
        cause: robots.cause.clone(),
        http_status: robots.http_status,
        fetched: Moment::new(robots.fetched_at, now),
        expires: Moment::new(robots.expires_at, now),
        preferences: robots.text.as_deref().map(preferences).unwrap_or_default(),
        text: robots.text.clone(),
    });
    HostView { host: line.host.to_string(), robots }
}

/// Preferences of one host that are shown.
const PREFERENCES_MAX: usize = 10;

/// The Content-Usage and Content-Signal lines of a robots.txt.
fn preferences(robots: &str) -> Vec<String> {
    let is_preference = |line: &&str| {
        let name = line.split(':').next().unwrap_or_default().trim();
        name.eq_ignore_ascii_case("content-signal") || name.eq_ignore_ascii_case("content-usage")
    };
    let lines = robots.lines().map(str::trim).filter(is_preference);
    lines.take(PREFERENCES_MAX).map(|line| text::cut(line, WORDS_CHARS_MAX)).collect()
}

fn visit_view(visit: &VisitReport, now: DateTime<Utc>) -> Visit {
    let seconds = (visit.ended_at - visit.started_at).num_milliseconds().max(0);
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let seconds = seconds as f64 / 1e3;
    let requests = labels::counted(u64::from(visit.requests), "request", "requests");
    Visit {
        at: Moment::new(visit.started_at, now),
        end: labels::visit_end(visit.end),
        summary: format!("{requests}, {}, {seconds:.1} seconds", labels::bytes(visit.bytes_in)),
        fetches: visit.fetches.iter().take(FETCHES_MAX).map(fetch_view).collect(),
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
    Fetch {
        outcome: labels::outcome(fetch.outcome),
        class: labels::outcome_class(fetch.outcome),
        path: text::cut(fetch.url.as_str().trim_start_matches("https://"), WORDS_CHARS_MAX),
        why: text::cut(&why.join(" · "), WORDS_CHARS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::preferences;

    #[test]
    fn shows_the_preferences_of_a_robots_txt() {
        let robots = "User-agent: *\ncontent-signal: search=no\n Content-Usage: /x train-ai=n\nAllow: /\n";
        assert_eq!(preferences(robots), ["content-signal: search=no", "Content-Usage: /x train-ai=n"]);
        assert_eq!(preferences(&"Content-Signal: search=no\n".repeat(50)).len(), super::PREFERENCES_MAX);
    }
}
