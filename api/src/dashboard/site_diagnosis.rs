//! Explains why nothing of a site is in the index, and what its owner can do about it.

use manifest::{Format, Host, SiteName, is_main_host};
use policy::{FetchOutcome, RobotsKind, VisitEnd};
use store::VisitReport;

use super::labels;
use crate::answers::site::SiteAnswer;
use crate::text;

/// Lines of a robots.txt that allow only the usual paths of manifests.
const ROBOTS_THAT_ALLOWS: &str = "User-agent: agentdex\nAllow: /.well-known/\nAllow: /agent.json\nAllow: /agent.txt\nAllow: /agents.json\nAllow: /agents.txt\nAllow: /llms.txt\nDisallow: /";

/// The reason, and the next step of the owner.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Diagnosis {
    pub(super) why: String,
    pub(super) step: String,
    /// Text to copy into a file of the site.
    pub(super) lines: Option<&'static str>,
    /// The host of another site that may have what this site had.
    pub(super) other_site: Option<String>,
}

impl Diagnosis {
    fn new(why: impl Into<String>, step: impl Into<String>) -> Self {
        Self { why: why.into(), step: step.into(), lines: None, other_site: None }
    }
}

/// Why a site without capabilities has none. `None` before its first visit, and for a site that opted out or is suspended.
pub(super) fn of(answer: &SiteAnswer) -> Option<Diagnosis> {
    let line = &answer.line;
    let end = line.last_end.filter(|_| answer.blocked.is_none() && answer.suspended.is_none())?;
    let failed = failed_host(answer);
    let host = failed.as_ref().map_or(line.site.as_str(), Host::as_str);
    let diagnosis = diagnosis(end, unread_robots(answer, failed.as_ref()), &line.formats, host);
    let is_without_answer =
        matches!(end, VisitEnd::Completed | VisitEnd::NothingNew) && line.formats.is_empty();
    let refused = answer.visits.first().filter(|_| is_without_answer).and_then(refused);
    let unusable = answer.visits.first().filter(|_| is_without_answer).and_then(unusable);
    Some(refused.or(unusable).unwrap_or(diagnosis))
}

/// Maximum length of the reason of a request that is quoted, in characters.
const REASON_CHARS_MAX: usize = 300;
/// Maximum number of paths that a reason names.
const PATHS_NAMED_MAX: usize = 3;

/// The reason, if the last visit found something at usual paths that is no manifest.
fn unusable(visit: &VisitReport) -> Option<Diagnosis> {
    use FetchOutcome as Outcome;
    let is_usual = |path: &str| path != "/" && policy::plan::find(path).is_some();
    let found = visit.fetches.iter().filter(|fetch| is_usual(fetch.url.path()));
    let words = found.filter_map(|fetch| {
        let what = match fetch.outcome {
            Outcome::NotAManifest => "is not a manifest of a known format",
            Outcome::Html => "is a web page",
            Outcome::TooLarge => "is too large",
            Outcome::BadEncoding => "has a bad encoding",
            Outcome::RedirectLoop => "redirects to itself",
            Outcome::RedirectRefused => "has a redirect that is not followed",
            Outcome::RedirectedAway => "redirects to another site",
            Outcome::ServerError => "has a server error",
            _ => return None,
        };
        Some(format!("{} {what}", fetch.url.path()))
    });
    let words: Vec<String> = words.take(PATHS_NAMED_MAX).collect();
    (!words.is_empty()).then(|| {
        Diagnosis::new(
            format!("None of the usual paths has a manifest: {}.", words.join(", ")),
            "Serve a manifest there, without a redirect. The validator shows an example, and what is wrong with yours.",
        )
    })
}

/// The reason, if the last visit received only refusals and redirects that are not followed.
fn refused(visit: &VisitReport) -> Option<Diagnosis> {
    use FetchOutcome as Outcome;
    let answered = || visit.fetches.iter().filter(|fetch| fetch.outcome.is_response());
    let count =
        |outcomes: &[Outcome]| answered().filter(|fetch| outcomes.contains(&fetch.outcome)).count() as u64;
    let refused = count(&[Outcome::ClientError]);
    let redirected = count(&[Outcome::RedirectLoop, Outcome::RedirectRefused, Outcome::RedirectedAway]);
    // without 404 and 410: a site that answers them says what is not there
    if refused + redirected == 0 || count(&[Outcome::NotFound, Outcome::Gone]) > refused + redirected {
        return None;
    }
    let paths = |count: u64| labels::counted(count, "path", "paths");
    if refused >= redirected {
        let status = answered().find(|fetch| fetch.outcome == Outcome::ClientError)?.status?;
        return Some(Diagnosis::new(
            format!("The server refused {} (HTTP {status}).", paths(refused)),
            "Answer GET requests without a body for these paths with the document, or with status 404 if there is none.",
        ));
    }
    let away = visit.fetches.iter().find(|fetch| fetch.outcome == Outcome::RedirectedAway);
    let example = away.and_then(|fetch| Some((fetch.url.path(), fetch.reason.as_deref()?)));
    let example = example.map(|(path, reason)| format!(": {path} {}", text::cut(reason, REASON_CHARS_MAX)));
    Some(Diagnosis::new(
        format!(
            "The server answered {} with a redirect that leads nowhere or to another site{}.",
            paths(redirected),
            example.unwrap_or_default()
        ),
        "Answer these paths with the document, or with status 404 if there is none. If the site has moved, add the other site.",
    ))
}

/// The host at which the last visit failed: that of the failed request, or the only known host if the visit failed before its first request.
fn failed_host(answer: &SiteAnswer) -> Option<Host> {
    let visit = answer.visits.first()?;
    let fetches = visit.fetches.iter().map(|fetch| (fetch.url.host(), fetch.outcome));
    policy::failed_host(visit.end, fetches).or_else(|| match answer.hosts.as_slice() {
        [only] => Some(only.host.clone()),
        _ => None,
    })
}

/// A robots.txt that could not be read.
#[derive(Clone, Copy)]
struct UnreadRobots<'a> {
    /// Status of the response; `None` if there was no response.
    http_status: Option<u16>,
    /// The host to which it redirects, if that is another site.
    redirects_to: Option<&'a str>,
}

fn diagnosis(
    end: VisitEnd,
    unread_robots: Option<UnreadRobots<'_>>,
    formats: &[Format],
    host: &str,
) -> Diagnosis {
    match end {
        VisitEnd::RobotsDenied if unread_robots.is_some() => robots_denied(unread_robots),
        VisitEnd::RobotsDenied => Diagnosis {
            lines: Some(ROBOTS_THAT_ALLOWS),
            ..Diagnosis::new(
                "Its robots.txt forbids agentdex the paths of manifests.",
                "If this is intended, nothing needs to be done. To be listed here, add these lines to robots.txt:",
            )
        },
        VisitEnd::RobotsUnreachable => robots_unreadable(unread_robots),
        VisitEnd::RateLimited if unread_robots.is_some() => robots_unreadable(unread_robots),
        VisitEnd::RateLimited => Diagnosis::new(
            "The server answered that it is busy, and asked for a delay.",
            "The visit is repeated after the delay. If the server is not busy, let it accept requests of the user agent agentdex (less than one per second).",
        ),
        VisitEnd::Blocked => Diagnosis::new(
            "The server denied several requests (HTTP 401, 403 or 451, or the page of a bot protection).",
            "Let the user agent agentdex through, at least below /.well-known/.",
        ),
        VisitEnd::CatchAll => Diagnosis::new(
            "The server answers every path with a web page, also paths that do not exist.",
            "Answer paths that do not exist with status 404, and serve the manifest as JSON.",
        ),
        VisitEnd::DnsDead => Diagnosis::new(
            format!("The name {host} does not exist in the DNS."),
            "Check how it is spelt, and that it has an address record.",
        ),
        end if end.is_failure() => Diagnosis::new(
            format!("The server could not be reached: {}.", end.description()),
            format!(
                "Check from another network that https://{host}/robots.txt answers, with a valid certificate."
            ),
        ),
        VisitEnd::Completed | VisitEnd::NothingNew => nothing_declared(formats),
        end => Diagnosis::new(
            format!("The last visit is not complete: {}.", end.description()),
            "Nothing needs to be done: it continues.",
        ),
    }
}

fn unread_robots<'a>(answer: &'a SiteAnswer, failed: Option<&Host>) -> Option<UnreadRobots<'a>> {
    let hosts = answer.hosts.iter().filter(|known| ended_the_visit(&known.host, failed, &answer.line.site));
    let verdicts = hosts.filter_map(|host| host.robots.as_ref());
    let mut unread =
        verdicts.filter(|robots| matches!(robots.kind, RobotsKind::Unreachable | RobotsKind::Denied));
    unread.next().map(|robots| UnreadRobots {
        http_status: robots.http_status,
        redirects_to: robots.redirects_to.as_deref(),
    })
}

/// Whether a host speaks for the whole site: the one at which the visit failed, otherwise the domain. Other hosts may belong to customers.
fn ended_the_visit(host: &Host, failed: Option<&Host>, site: &SiteName) -> bool {
    failed.map_or_else(|| is_main_host(site, host), |failed| failed == host)
}

fn robots_unreadable(robots: Option<UnreadRobots<'_>>) -> Diagnosis {
    if let Some(other) = robots.and_then(|robots| robots.redirects_to) {
        return Diagnosis {
            other_site: Some(other.to_owned()),
            ..Diagnosis::new(
                format!(
                    "Its robots.txt redirects to {other}, which is another site. Nothing else is requested before it can be read."
                ),
                "If this site has moved, nothing needs to be done. Otherwise answer /robots.txt here with status 200, or with 404 if there is none.",
            )
        };
    }
    let status = robots.and_then(|robots| robots.http_status);
    let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    Diagnosis::new(
        format!("Its robots.txt could not be read{status}. Nothing else is requested before it."),
        "Answer /robots.txt with status 200, or with 404 if there is none.",
    )
}

fn robots_denied(robots: Option<UnreadRobots<'_>>) -> Diagnosis {
    let status = robots.and_then(|robots| robots.http_status);
    let status = status.map(|status| format!(" (HTTP {status})")).unwrap_or_default();
    Diagnosis::new(
        format!("The server denies access to robots.txt{status}. Nothing else is requested before it."),
        "If this is intended, nothing needs to be done. To be listed here, answer /robots.txt with status 200, or with 404 if there is none.",
    )
}

/// All planned paths were requested, but nothing can be called.
fn nothing_declared(formats: &[Format]) -> Diagnosis {
    if labels::is_unreadable(formats) {
        return Diagnosis::new(
            "A document was fetched, but it cannot be read as a manifest.",
            "Fix what is listed below, and validate the document before you publish it again.",
        );
    }
    if formats.iter().any(|format| format.is_indexable()) {
        return Diagnosis::new(
            "Its documents were read, and they declare nothing that an agent can call.",
            "Declare an action, a tool or a skill in one of them.",
        );
    }
    Diagnosis::new(
        "None of the usual paths has a manifest.",
        "Publish one, for instance at /.well-known/agent.json. The validator shows an example, and what is wrong with yours.",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_end_of_a_visit_has_a_reason_and_a_next_step() {
        for end in VisitEnd::ALL {
            let found = diagnosis(*end, None, &[], "a.example");
            assert!(found.why.ends_with('.'), "{end}: {}", found.why);
            let last = if found.lines.is_some() { ':' } else { '.' };
            assert!(found.step.ends_with(last), "{end}: {}", found.step);
        }
    }

    fn visit_with(fetches: &[(&str, FetchOutcome, &str)]) -> VisitReport {
        let at = "2026-11-28T07:00:00Z";
        let fetch = |(path, outcome, reason): &(&str, FetchOutcome, &str)| {
            json!({"url": format!("https://a.example{path}"), "discovery": "well_known", "outcome": outcome.as_str(),
                   "reason": reason, "at": at, "duration_ms": 1, "bytes": 0})
        };
        let fetches: Vec<_> = fetches.iter().map(fetch).collect();
        let visit = json!({"id": 1, "started_at": at, "ended_at": at, "end": "completed", "requests": 1, "bytes_in": 0,
                           "next_visit": {"at": at, "reason": ""}, "phases": {}, "fetches": fetches});
        serde_json::from_value(visit).unwrap()
    }

    #[test]
    fn reason_names_the_paths_that_have_something_else_than_a_manifest() {
        use FetchOutcome::{Html, NotAManifest, NotFound, RedirectLoop};
        let visit = visit_with(&[
            ("/.well-known/agent.json", NotFound, ""),
            ("/.well-known/agents.json", NotFound, ""),
            ("/agent.json", NotAManifest, "no known marker"),
            ("/agents.json", RedirectLoop, ""),
            ("/about.html", Html, ""),
            ("/", Html, ""),
        ]);
        assert_eq!(refused(&visit), None);
        assert_eq!(
            unusable(&visit).unwrap().why,
            "None of the usual paths has a manifest: /agent.json is not a manifest of a known format, /agents.json redirects to itself."
        );
        assert_eq!(unusable(&visit_with(&[("/agent.json", NotFound, ""), ("/", Html, "")])), None);
    }

    #[test]
    fn reason_names_the_site_to_which_paths_redirect() {
        let reason = "redirects to https://b.example/agent.json, which is another site";
        let why = refused(&visit_with(&[("/agent.json", FetchOutcome::RedirectedAway, reason)])).unwrap().why;
        assert!(why.ends_with(&format!("to another site: /agent.json {reason}.")), "{why}");
    }

    #[test]
    fn a_robots_txt_of_another_host_is_not_the_reason() {
        let site = SiteName::parse("plat.example").unwrap();
        let [customer, domain] = ["a.plat.example", "plat.example"].map(|name| Host::parse(name).unwrap());
        assert!(!ended_the_visit(&customer, None, &site), "a customer's");
        assert!(!ended_the_visit(&customer, Some(&domain), &site));
        assert!(ended_the_visit(&domain, None, &site));
        assert!(ended_the_visit(&customer, Some(&customer), &site), "the only host of a list");
    }

    #[test]
    fn reasons_name_what_was_wrong() {
        let why = |end, unread, formats: &[Format]| diagnosis(end, unread, formats, "a.example").why;
        for (found, expected) in [
            (why(VisitEnd::RobotsDenied, None, &[]), "robots.txt forbids"),
            (
                why(
                    VisitEnd::RobotsDenied,
                    Some(UnreadRobots { http_status: Some(401), redirects_to: None }),
                    &[],
                ),
                "denies access to robots.txt (HTTP 401)",
            ),
            (
                why(
                    VisitEnd::RobotsUnreachable,
                    Some(UnreadRobots { http_status: None, redirects_to: None }),
                    &[],
                ),
                "could not be read. Nothing else",
            ),
            (
                why(
                    VisitEnd::RateLimited,
                    Some(UnreadRobots { http_status: Some(503), redirects_to: None }),
                    &[],
                ),
                "could not be read (HTTP 503)",
            ),
            (
                why(
                    VisitEnd::RobotsUnreachable,
                    Some(UnreadRobots { http_status: Some(301), redirects_to: Some("other.example") }),
                    &[],
                ),
                "redirects to other.example, which is another site",
            ),
            (why(VisitEnd::RateLimited, None, &[]), "it is busy"),
            (why(VisitEnd::DnsDead, None, &[]), "name a.example does not exist"),
            (why(VisitEnd::Completed, None, &[]), "None of the usual paths"),
            (why(VisitEnd::Completed, None, &[Format::Malformed]), "cannot be read as a manifest"),
            (why(VisitEnd::NothingNew, None, &[Format::LlmsTxt]), "declare nothing"),
        ] {
            assert!(found.contains(expected), "{found}");
        }
        let lines = diagnosis(VisitEnd::RobotsDenied, None, &[], "a.example").lines.unwrap();
        for planned in policy::plan::PATHS {
            let is_allowed = |line: &str| {
                line.strip_prefix("Allow: ").is_some_and(|prefix| planned.path.starts_with(prefix))
            };
            let is_homepage = planned.path == "/";
            assert!(is_homepage || lines.lines().any(is_allowed), "{}", planned.path);
        }
        assert!(lines.contains("User-agent: agentdex\nAllow: /.well-known/"), "{lines}");
    }
}
