//! No unnecessary requests: a crawler uses fresh copies, revalidates stored copies, and requests each path once per pass (RFC 9111).

use std::collections::HashMap;

use testweb::{Hit, hit::ResponseHeaders};

use super::{Measure, Policy, Rule, Violation, history::History};

/// Maximum freshness: one day, so that a wrong max-age does not hide a site.
const FRESH_MAX_S: u64 = 24 * 3_600;

/// The state of one path after the responses so far.
struct Known<'a> {
    last: &'a Hit,
    /// The hit whose validators the crawler has stored.
    validators: Option<&'a Hit>,
}

pub(super) fn check(hits: &[&Hit], policy: &Policy, history: &History<'_>) -> Vec<Violation> {
    let mut known: HashMap<&str, Known<'_>> = HashMap::new();
    let mut repeats = 0;
    let mut violations = Vec::new();
    for hit in hits {
        let before = known.get(hit.path.as_str());
        let broken = before.map_or_else(Vec::new, |known| check_repeat(hit, known, policy, history));
        let is_forgiven = !broken.is_empty() && repeats < policy.repeats_allowed;
        repeats += usize::from(is_forgiven);
        violations.extend(broken.into_iter().filter(|_| !is_forgiven));
        let validators = kept_validators(hit, before);
        known.insert(&hit.path, Known { last: hit, validators });
    }
    violations
}

/// Checks a repeated request.
fn check_repeat(hit: &Hit, known: &Known<'_>, policy: &Policy, history: &History<'_>) -> Vec<Violation> {
    let last = known.last;
    let mut violations = Vec::new();
    if let Some(fresh_s) = fresh_s(last)
        && hit.started_us < last.ended_us + fresh_s * 1_000_000
    {
        let age = Measure::us(hit.started_us.saturating_sub(last.ended_us));
        violations.push(Violation::between(Rule::Fresh, last, hit, age, Measure::us(fresh_s * 1_000_000)));
    }
    let same_pass = policy.pass_at(last.started_us) == policy.pass_at(hit.started_us);
    if same_pass && is_definite(last) && !is_unrequested_304(last) && !history.is_redirect_target(hit) {
        let required = Measure::from("once in a pass");
        violations.push(Violation::between(Rule::Duplicate, last, hit, "asked again".into(), required));
    }
    if let Some(kept) = known.validators.filter(|_| !is_unrequested_304(last)) {
        violations.extend(unconditional(hit, kept));
    }
    violations
}

/// Requires the unchanged ETag in If-None-Match if there was one, else If-Modified-Since (RFC 9110 §13.1).
fn unconditional(hit: &Hit, kept: &Hit) -> Option<Violation> {
    let (conditional, stored, name) = match (&kept.response.etag, &kept.response.last_modified) {
        (Some(etag), _) => (&hit.request.if_none_match, etag, "If-None-Match"),
        (None, Some(date)) => (&hit.request.if_modified_since, date, "If-Modified-Since"),
        (None, None) => return None,
    };
    let is_sent = conditional.as_ref().is_some_and(|conditional| conditional.contains(stored.as_str()));
    let measured = Measure::Text(conditional.clone().unwrap_or_else(|| format!("no {name}")));
    let required = Measure::Text(format!("{name}: {stored}"));
    (!is_sent).then(|| Violation::between(Rule::Unconditional, kept, hit, measured, required))
}

/// The hit whose validators the crawler has stored after this response: a response with a file, not a page or a response with `no-store`.
fn kept_validators<'a>(hit: &'a Hit, before: Option<&Known<'a>>) -> Option<&'a Hit> {
    let has_any = hit.response.etag.is_some() || hit.response.last_modified.is_some();
    let is_page = hit.response.content_type.as_deref().is_some_and(|media| media.contains("html"));
    match hit.status {
        Some(200) if hit.complete => {
            Some(hit).filter(|_| has_any && !is_page && !directive(&hit.response, "no-store"))
        }
        Some(304) if has_any => Some(hit),
        Some(404 | 410) => None,
        _ => before.and_then(|known| known.validators),
    }
}

/// The freshness lifetime of a response in seconds.
fn fresh_s(hit: &Hit) -> Option<u64> {
    let usable =
        is_definite(hit) && !directive(&hit.response, "no-cache") && !directive(&hit.response, "no-store");
    let max_age =
        directives(&hit.response).find_map(|directive| directive.strip_prefix("max-age=")?.parse().ok());
    let max_age: u64 = max_age.filter(|_| usable)?;
    let age = hit.response.age.as_deref().and_then(|age| age.trim().parse().ok()).unwrap_or(0);
    Some(max_age.min(FRESH_MAX_S).saturating_sub(age))
}

/// Whether a response is final.
fn is_definite(hit: &Hit) -> bool {
    hit.complete && matches!(hit.status, Some(200..=299 | 301 | 304 | 308 | 404 | 410))
}

/// Whether the response to an unconditional request is a 304. The request may then be repeated.
fn is_unrequested_304(hit: &Hit) -> bool {
    hit.status == Some(304) && hit.request.if_none_match.is_none() && hit.request.if_modified_since.is_none()
}

fn directive(response: &ResponseHeaders, name: &str) -> bool {
    directives(response).any(|directive| directive == name)
}

fn directives(response: &ResponseHeaders) -> impl Iterator<Item = String> {
    let value = response.cache_control.clone().unwrap_or_default().to_ascii_lowercase();
    value.split(',').map(|directive| directive.trim().to_owned()).collect::<Vec<_>>().into_iter()
}
