//! Formats the summary of a crawl or of a dry run as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use manifest::Format;
use policy::{FetchOutcome, VisitEnd};

use super::duration;
use crate::dry_run::DryRun;
use crate::seeds::SeedReport;
use crate::summary::{Summary, UNREACHED};

/// Maximum number of rejected lines and of parked sites in the text. The JSON contains all that were kept.
const SHOWN_MAX: usize = 10;

/// Maximum number of reasons for failures shown.
const REASONS_MAX: usize = 3;
/// Advice to the operator about failed visits.
const ADVICE: [(VisitEnd, Advice); 11] = [
    (
        VisitEnd::DnsDead,
        Advice::of(
            "Check for typing errors; `agentdex doctor --only dns` shows whether the name servers resolve any name.",
        ),
    ),
    (
        VisitEnd::DnsFailed,
        Advice::of(
            "Check the name servers with `agentdex doctor --only dns`, with --name-servers if you name others than the system's.",
        ),
    ),
    (
        VisitEnd::Unreachable,
        Advice::then_again(
            "Check the network of this machine: `agentdex doctor`. If --hosts has the addresses, check whether its server is running.",
        ),
    ),
    (
        VisitEnd::TlsFailed,
        Advice::then_again(
            "Owners have to renew invalid certificates; name the authority of a private network with --ca-file.",
        ),
    ),
    (
        VisitEnd::AddressRefused,
        Advice::then_again(
            "For private addresses of your own, name their networks with --allow-addresses; for public addresses, the crawl needs a contact.",
        ),
    ),
    (
        VisitEnd::RobotsUnreachable,
        Advice::of(
            "`agentdex explain SITE` shows why, and when it is requested again; its owner has to answer it with status 200 or 404.",
        ),
    ),
    (
        VisitEnd::RobotsDenied,
        Advice::of(
            "The owner does not allow visits. If the server denies robots.txt itself, which `agentdex explain SITE` shows, its owner can answer it with status 200 or 404.",
        ),
    ),
    (
        VisitEnd::Blocked,
        Advice::of("Access is denied to crawlers; --contact-url lets the owner identify you."),
    ),
    (
        VisitEnd::RateLimited,
        Advice::of("The next visit is made after the delay; `agentdex explain SITE` shows when."),
    ),
    (
        VisitEnd::ServerErrors,
        Advice::of(
            "Only its owner can repair the server; `agentdex explain SITE` shows the answers and the next visit.",
        ),
    ),
    (
        VisitEnd::TransportErrors,
        Advice::of(
            "Check the network of this machine: `agentdex doctor`; `agentdex explain SITE` shows the errors and the next visit.",
        ),
    ),
];

/// Advice on a failed visit, for one site or for several.
#[derive(Debug, Clone, Copy)]
pub(super) struct Advice {
    /// What to do; `check` repeats the visit afterwards.
    pub(super) text: &'static str,
    /// Whether a crawl has to visit the sites again afterwards.
    is_repeated: bool,
}

impl Advice {
    const fn of(text: &'static str) -> Self {
        Self { text, is_repeated: false }
    }

    const fn then_again(text: &'static str) -> Self {
        Self { text, is_repeated: true }
    }

    /// The advice after a crawl.
    fn after_crawl(self) -> String {
        let again = if self.is_repeated { " Then start again with --revisit 0s." } else { "" };
        format!("{}{again}", self.text)
    }
}

/// Advice if no name was resolved. Then the cause is more likely this machine than the names.
const NOTHING_RESOLVED: &str = "Check whether the name servers resolve any name: `agentdex doctor --only dns`, with --name-servers if you named any. If they did \
     not, visit the sites again at once with --revisit 0s.";

/// Advice to the operator on visits with this end.
pub(super) fn advice(end: VisitEnd) -> Option<Advice> {
    ADVICE.iter().find(|(known, _)| *known == end).map(|(_, advice)| *advice)
}

/// Where the text is shown. Only a terminal shows samples and the next command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    Terminal,
    Pipe,
}

/// The results of a crawl as text, without the next command.
pub fn summary_text(summary: &Summary) -> String {
    text(summary, Audience::Pipe, "")
}

/// The results of a crawl as text.
pub(crate) fn text(summary: &Summary, audience: Audience, next_command: &str) -> String {
    // writing into a string does not fail
    let mut text = body(summary).unwrap_or_default();
    if audience == Audience::Terminal && !summary.samples.is_empty() {
        let samples = summary
            .samples
            .iter()
            .map(|sample| format!("  {} ({}, {})", sample.name, sample.site, sample.format));
        let samples = samples.collect::<Vec<_>>().join("\n");
        text = format!("{text}\nFor example:\n{samples}\n\nNext:  {next_command}");
    }
    text.trim_end().to_owned()
}

fn body(summary: &Summary) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let out = &mut text;
    let took = duration::in_words(Duration::from_secs_f64(summary.seconds.max(0.0)));
    let stopped = if summary.interrupted { "Stopped. " } else { "" };
    if summary.had_nothing_due() {
        writeln!(out, "{}", nothing_due(summary))?;
    } else if summary.reached_no_site() {
        let attempts = match summary.requests {
            0 => String::new(),
            attempts => format!(", with {}", attempts_to_connect(attempts)),
        };
        let sites = counted(summary.sites_visited, "site");
        writeln!(out, "{stopped}{sites} tried in {took}{attempts}.")?;
    } else {
        let sites = counted(summary.sites_visited, "site");
        let requests = counted(summary.requests, "request");
        if summary.has_earlier_requests {
            writeln!(
                out,
                "{stopped}{sites} visited in {took}, with {requests}, some of them before this start."
            )?;
        } else {
            writeln!(out, "{stopped}{sites} visited with {requests} in {took}.")?;
        }
    }
    seeds(out, &summary.seeds)?;
    results(out, summary)?;
    writeln!(
        out,
        "Manifests: {} new, {} changed, {} gone; capabilities of the sites visited: {}",
        summary.manifests_added, summary.manifests_changed, summary.manifests_removed, summary.capabilities
    )?;
    if summary.reached_no_site() {
        writeln!(out, "{}", nothing_reached(summary))?;
    }
    pass_reasons(summary).iter().try_for_each(|reason| writeln!(out, "{reason}"))?;
    if summary.dropped > 0 {
        let visits = plural(summary.dropped, "visit was stopped", "visits were stopped");
        writeln!(out, "{visits}: the site was blocked meanwhile, or another crawler visits it")?;
    }
    if summary.failed > 0 {
        writeln!(
            out,
            "{} visits failed because of an error in this crawler; the log has the reason",
            summary.failed
        )?;
    }
    if !summary.parked.is_empty() {
        writeln!(out, "Parked, to be resumed at:")?;
        for parked in summary.parked.iter().take(SHOWN_MAX) {
            let at = parked.resume_at.format("%Y-%m-%d %H:%M:%S UTC");
            writeln!(out, "  {} {at}: {}", parked.site, parked.reason)?;
        }
        more(out, summary.parked.len() as u64, summary.parked.len().min(SHOWN_MAX))?;
    }
    Ok(text)
}

/// How visits and fetches ended, and the formats of the documents that were read.
fn results(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let ends = most_common::<VisitEnd>(&summary.ends).into_iter();
    listed(out, "Visits", &ends.map(|(end, count)| format!("{count} {}", end.label())).collect::<Vec<_>>())?;
    let outcomes = outcomes_in_words(most_common::<FetchOutcome>(&summary.outcomes));
    listed(out, "Fetches, beside robots.txt", &outcomes.requested)?;
    listed(out, "Without a request", &outcomes.unrequested)?;
    let formats = most_common::<Format>(&summary.manifests).into_iter();
    let formats: Vec<String> = formats.map(|(format, count)| format_counted(format, count)).collect();
    listed(out, "Documents read", &formats)
}

/// Why a pass reached no site.
fn nothing_reached(summary: &Summary) -> String {
    let unresolved = [VisitEnd::DnsDead, VisitEnd::DnsFailed];
    let unresolved: u64 = unresolved.iter().filter_map(|end| summary.ends.get(end.as_str())).sum();
    let why = match (summary.sites_visited, unresolved == summary.sites_visited) {
        (1, true) => "the host name of the only site could not be resolved".to_owned(),
        (1, false) if summary.requests == 0 => "no request was sent to the only site".to_owned(),
        (1, false) => "the only site did not answer".to_owned(),
        (sites, true) => format!("none of the {sites} names could be resolved"),
        (sites, false) => format!("none of the {sites} sites answered"),
    };
    let skipped = match summary.seeds.rejected_count {
        0 => String::new(),
        lines => format!(", and {} of the lists could not be read", counted(lines, "line")),
    };
    format!("No site was reached: {why}{skipped}.")
}

/// The report of a pass without due sites, with the next due time.
fn nothing_due(summary: &Summary) -> String {
    let next = match summary.next_due_at {
        Some(at) => format!("The next site is due at {}", at.format("%Y-%m-%d %H:%M:%S UTC")),
        None => "No site has a next visit".to_owned(),
    };
    format!(
        "Every site was visited before, and none is due yet. {next}; --revisit 0s visits all of them now."
    )
}

/// The most common reasons why sites of a pass were not read, with advice.
pub fn pass_reasons(summary: &Summary) -> Vec<String> {
    let ends = VisitEnd::ALL.iter().filter_map(|end| Some((*end, *summary.ends.get(end.as_str())?)));
    let visited = counted(summary.sites_visited, "site");
    let names = |end: VisitEnd, count: u64| {
        let examples = summary.sites_by_end.get(end.as_str()).map(Vec::as_slice).unwrap_or_default();
        let more = count.saturating_sub(examples.len() as u64);
        let mut names: Vec<String> = examples.iter().map(ToString::to_string).collect();
        names.extend((more > 0 && !examples.is_empty()).then(|| format!("and {more} more")));
        names.join(", ")
    };
    let ends: Vec<_> = ends.collect();
    // the line before says that no name was resolved
    if unresolved(&ends).is_some() {
        vec![NOTHING_RESOLVED.to_owned()]
    } else {
        reasons(&ends, &visited, names)
    }
}

/// The number of visits, if there are several and none of them resolved its name.
fn unresolved(ends: &[(VisitEnd, u64)]) -> Option<u64> {
    let visits: u64 = ends.iter().map(|(_, count)| count).sum();
    let are_unresolved = ends.iter().all(|(end, _)| matches!(end, VisitEnd::DnsDead | VisitEnd::DnsFailed));
    Some(visits).filter(|visits| *visits > 1 && are_unresolved)
}

/// A sentence for each of the most common ends of visits for which there is advice. `visited` is the number of all visits, with its noun.
pub fn failure_reasons(ends: impl IntoIterator<Item = (VisitEnd, u64)>, visited: &str) -> Vec<String> {
    let ends: Vec<_> = ends.into_iter().collect();
    match unresolved(&ends) {
        Some(visits) => {
            vec![format!("{visits} of {visited}: the name could not be resolved. {NOTHING_RESOLVED}")]
        }
        None => reasons(&ends, visited, |_, _| String::new()),
    }
}

/// The reasons. `names` lists the sites of this many visits with this end; an empty list is left out.
fn reasons(ends: &[(VisitEnd, u64)], visited: &str, names: impl Fn(VisitEnd, u64) -> String) -> Vec<String> {
    let with_advice = ends.iter().filter_map(|(end, count)| Some((*end, *count, advice(*end)?)));
    let mut reasons: Vec<(VisitEnd, u64, Advice)> = with_advice.collect();
    reasons.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
    let sentence = |(end, count, advice): &(VisitEnd, u64, Advice)| {
        let names = Some(names(*end, *count)).filter(|names| !names.is_empty());
        let names = names.map(|names| format!(" ({names})")).unwrap_or_default();
        format!("{count} of {visited}: {}{names}. {}", end.description(), advice.after_crawl())
    };
    reasons.iter().take(REASONS_MAX).map(sentence).collect()
}

/// The results of a dry run as text.
pub(super) fn dry_run_text(plan: &DryRun) -> String {
    // writing into a string does not fail
    planned(plan).unwrap_or_default().trim_end().to_owned()
}

fn planned(plan: &DryRun) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let out = &mut text;
    for site in &plan.sites {
        writeln!(out, "{}: {}", site.site, site.when)?;
        for request in &site.requests {
            let note = request.note.as_deref().map_or_else(String::new, |note| format!("  ({note})"));
            writeln!(out, "  {}{note}", request.url)?;
        }
    }
    seeds(out, &plan.seeds)?;
    let rest = match plan.sites_left_out as u64 {
        0 => String::new(),
        more => format!(", and {} that {} not listed", counted(more, "more site"), is_or_are(more)),
    };
    let (sites, requests) =
        (counted(plan.sites.len() as u64, "site"), counted(plan.requests as u64, "request"));
    writeln!(out, "{sites}, at most {requests}{rest}; nothing was sent")?;
    Ok(text)
}

/// The results of reading the seeds, with the lines that were skipped.
fn seeds(out: &mut String, report: &SeedReport) -> std::fmt::Result {
    if report.read + report.rejected_count == 0 && report.failed.is_empty() {
        return Ok(());
    }
    let mut counts = vec![format!("{} read", report.read)];
    counts.extend((report.duplicates > 0).then(|| counted(report.duplicates, "duplicate")));
    counts.extend(
        (report.rejected_count > 0).then(|| format!("{} skipped", counted(report.rejected_count, "line"))),
    );
    listed(out, "Seeds", &counts)?;
    for rejected in report.rejected.iter().take(SHOWN_MAX) {
        writeln!(out, "  {rejected}")?;
    }
    more(out, report.rejected_count, report.rejected.len().min(SHOWN_MAX))?;
    if report.sources.len() > 1 || report.sources.iter().any(|source| source.kind != "list" || source.is_cut)
    {
        for source in &report.sources {
            let cut = if source.is_cut { ", and it has more" } else { "" };
            writeln!(out, "  {} ({}): {}{cut}", source.source, source.kind, counted(source.names, "name"))?;
        }
    }
    for failed in &report.failed {
        writeln!(out, "  not read: {failed}")?;
    }
    if report.refused > 0 {
        writeln!(
            out,
            "  {} not added: their sites already have the maximum number of hosts",
            counted(report.refused, "seed")
        )?;
    }
    if let Some(earlier) = report.earlier_lists() {
        writeln!(out, "  {earlier}")?;
    }
    match report.sites_forgotten {
        0 => Ok(()),
        count => writeln!(out, "  {} deleted, because no list names them any more", counted(count, "site")),
    }
}

/// The requests of a visit: attempts to connect, if none got a response.
pub(super) fn requests_in_words(end: VisitEnd, requests: u64) -> String {
    if UNREACHED.contains(&end) { attempts_to_connect(requests) } else { counted(requests, "request") }
}

fn attempts_to_connect(count: u64) -> String {
    plural(count, "attempt to connect", "attempts to connect")
}

/// A number with its noun, whose plural ends with an s.
pub(super) fn counted(count: u64, noun: &str) -> String {
    plural(count, noun, &format!("{noun}s"))
}

/// A number with the noun that fits.
pub(super) fn plural(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

const fn is_or_are(count: u64) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// The end of a visit in words, from its slug.
pub(super) fn end_label(slug: &'static str) -> &'static str {
    slug.parse::<VisitEnd>().map_or(slug, VisitEnd::label)
}

/// Outcomes with their counts, as text.
pub(super) struct CountedOutcomes {
    /// Outcomes of requests.
    pub(super) requested: Vec<String>,
    /// Outcomes of documents that were not requested.
    pub(super) unrequested: Vec<String>,
}

/// Outcomes in words, in the given order.
pub(super) fn outcomes_in_words(outcomes: impl IntoIterator<Item = (FetchOutcome, u64)>) -> CountedOutcomes {
    let (requested, unrequested): (Vec<_>, Vec<_>) =
        outcomes.into_iter().partition(|(outcome, _)| outcome.is_requested());
    let words = |outcomes: Vec<(FetchOutcome, u64)>| {
        outcomes.into_iter().map(|(outcome, count)| outcome.counted(count)).collect()
    };
    CountedOutcomes { requested: words(requested), unrequested: words(unrequested) }
}

/// The number of documents of a format.
pub(super) fn format_counted(format: Format, count: u64) -> String {
    match format {
        Format::Malformed => format!("{count} unreadable"),
        format => format!("{count} {format}"),
    }
}

/// The parsed keys with their counts, the most common first.
fn most_common<T: std::str::FromStr>(counts: &BTreeMap<&'static str, u64>) -> Vec<(T, u64)> {
    let parsed = counts.iter().filter_map(|(slug, count)| Some((slug.parse().ok()?, *count)));
    let mut sorted: Vec<(T, u64)> = parsed.collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    sorted
}

/// Writes a line with a list, unless the list is empty.
fn listed(out: &mut String, title: &str, list: &[String]) -> std::fmt::Result {
    if list.is_empty() { Ok(()) } else { writeln!(out, "{title}: {}", list.join(", ")) }
}

fn more(out: &mut String, all: u64, shown: usize) -> std::fmt::Result {
    let left = all.saturating_sub(shown as u64);
    if left > 0 { writeln!(out, "  and {left} more") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Sample, SiteAndHost};

    #[test]
    fn reports_a_pass_that_reached_no_site() {
        let printed = |ends: &[(&'static str, u64)]| {
            let sites_visited = ends.iter().map(|(_, count)| count).sum();
            summary_text(&Summary {
                sites_visited,
                ends: ends.iter().copied().collect(),
                ..Summary::default()
            })
        };
        assert!(
            printed(&[("dns_dead", 2), ("unreachable", 1), ("tls_failed", 1), ("address_refused", 1)])
                .contains("No site was reached")
        );
        for ends in [[("dns_dead", 2), ("completed", 1)].as_slice(), &[("robots_denied", 1)], &[]] {
            assert!(!printed(ends).contains("No site was reached"), "{ends:?}");
        }
    }

    fn site(name: &str) -> manifest::SiteName {
        manifest::SiteName::parse(name).unwrap()
    }

    #[test]
    fn reasons_name_the_first_sites() {
        let named = |name: &str| SiteAndHost { site: site(name), host: None };
        let typed = SiteAndHost { host: manifest::Host::parse("wwww.a.example").ok(), ..named("a.example") };
        let sites = vec![typed, named("b.example"), named("c.example")];
        let summary = Summary {
            sites_visited: 9,
            ends: [("dns_dead", 5), ("completed", 3), ("robots_denied", 1)].into(),
            sites_by_end: [("dns_dead", sites), ("robots_denied", vec![named("keepout.example")])].into(),
            ..Summary::default()
        };
        let text = summary_text(&summary);
        for part in [
            "5 of 9 sites: the name does not exist (wwww.a.example of the site a.example, b.example, c.example, and 2 more). Check for typing errors; `agentdex doctor",
            "1 of 9 sites: robots.txt forbids all planned paths (keepout.example). The owner does not allow visits. If the server denies robots.txt itself",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    /// The names of the shipped list have no typos.
    #[test]
    fn advises_to_check_this_machine_if_no_name_is_resolved() {
        let unresolved = [(VisitEnd::DnsDead, 58), (VisitEnd::DnsFailed, 2)];
        let reasons = failure_reasons(unresolved, "60 sites");
        assert_eq!(reasons, [format!("60 of 60 sites: the name could not be resolved. {NOTHING_RESOLVED}")]);
        let one = failure_reasons([(VisitEnd::DnsDead, 1)], "1 site");
        assert!(one[0].contains("Check for typing errors"), "{one:?}");
        let others = failure_reasons([(VisitEnd::DnsDead, 2), (VisitEnd::Completed, 1)], "3 sites");
        assert!(others[0].starts_with("2 of 3 sites: the name does not exist. Check"), "{others:?}");
    }

    #[test]
    fn lists_parked_visits_with_their_resume_times() {
        let parked = crate::summary::ParkedSite {
            site: site("drowsy.example"),
            resume_at: chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000),
            reason: "the site asked for a delay".to_owned(),
        };
        let text = summary_text(&Summary { sites_visited: 1, parked: vec![parked], ..Summary::default() });
        let line =
            "Parked, to be resumed at:\n  drowsy.example 2024-10-04 00:00:00 UTC: the site asked for a delay";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn formats_ends_and_outcomes_as_words() {
        let summary = Summary {
            sites_visited: 4,
            ends: [("dns_dead", 3), ("catch_all", 1)].into(),
            outcomes: [("not_found", 9), ("found", 37), ("html", 1), ("dns_failed", 3)].into(),
            manifests: [("awp", 9), ("malformed", 1)].into(),
            ..Summary::default()
        };
        let text = summary_text(&summary);
        for part in [
            "Visits: 3 with an unknown name, 1 with a page at every path\n",
            "Fetches, beside robots.txt: 37 manifests read, 9 not there, 1 web page\n",
            "Without a request: 3 names not resolved\n",
            "Documents read: 9 awp, 1 unreadable\n",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn reports_why_no_site_was_reached_before_the_advice() {
        let told = |ends: &[(&'static str, u64)], rejected_count| {
            let text = summary_text(&Summary {
                sites_visited: ends.iter().map(|(_, count)| count).sum(),
                requests: 1,
                ends: ends.iter().copied().collect(),
                seeds: SeedReport { read: 1, rejected_count, ..SeedReport::default() },
                ..Summary::default()
            });
            let told = text.lines().skip_while(|line| !line.starts_with("No site was reached: "));
            told.map(str::to_owned).collect::<Vec<_>>()
        };
        let unread = failure_reasons([(VisitEnd::RobotsUnreachable, 1)], "1 site");
        assert!(unread[0].contains("`agentdex explain SITE` shows why"), "{unread:?}");
        for (ends, rejected, words) in [
            (
                [("dns_dead", 1)].as_slice(),
                0,
                "reached: the host name of the only site could not be resolved.",
            ),
            (&[("dns_dead", 1)], 2, "could not be resolved, and 2 lines of the lists could not be read."),
            (&[("dns_dead", 2), ("dns_failed", 1)], 0, "none of the 3 names could be resolved"),
            (&[("dns_dead", 2), ("unreachable", 1)], 0, "none of the 3 sites answered"),
            (&[("unreachable", 1)], 0, "the only site did not answer"),
        ] {
            let advice = advice(ends[0].0.parse().unwrap()).unwrap();
            let is_resolved = !ends[0].0.starts_with("dns");
            assert_eq!(advice.after_crawl().contains("start again with --revisit 0s"), is_resolved);
            assert!(!advice.text.contains("--revisit"), "`check` visits the site again: {}", advice.text);
            let told = told(ends, rejected);
            assert!(told[0].contains(words) && told.len() > 1, "the advice follows: {told:?}");
        }
        assert!(told(&[("completed", 1), ("dns_dead", 9)], 0).is_empty());
        let unreached = Summary {
            sites_visited: 2,
            requests: 2,
            ends: [("unreachable", 2)].into(),
            seconds: 1.0,
            ..Summary::default()
        };
        let text = summary_text(&unreached);
        assert!(text.starts_with("2 sites tried in 1 s, with 2 attempts to connect.\n"), "{text}");
        assert_eq!(requests_in_words(VisitEnd::Unreachable, 1), "1 attempt to connect");
        assert_eq!(requests_in_words(VisitEnd::Completed, 2), "2 requests");
    }

    #[test]
    fn a_pass_without_a_due_site_reports_the_next_due_time() {
        let at = chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(20_000);
        let summary = Summary { next_due_at: Some(at), ..Summary::default() };
        let text = summary_text(&summary);
        assert!(text.contains("none is due yet. The next site is due at 2024-10-04 00:00:00 UTC"), "{text}");
        assert!(!text.contains("0 sites visited"), "{text}");
        let continued = Summary {
            sites_visited: 3,
            requests: 60,
            has_earlier_requests: true,
            seconds: 15.4,
            ..Summary::default()
        };
        let continued = summary_text(&continued);
        let words = "3 sites visited in 15.4 s, with 60 requests, some of them before this start.";
        assert!(continued.starts_with(words), "{continued}");
        let blocked = summary_text(&Summary { dropped: 1, ..summary.clone() });
        assert!(
            blocked.contains("1 visit was stopped: the site was blocked meanwhile")
                && !blocked.contains("none is due"),
            "{blocked}"
        );
        let stopped = summary_text(&Summary { interrupted: true, ..summary });
        assert!(stopped.starts_with("Stopped. 0 sites visited"), "{stopped}");
    }

    #[test]
    fn prints_the_next_command_on_terminals_only() {
        let sample = Sample {
            name: "Book seat".to_owned(),
            site: manifest::SiteName::parse("skyhop.example").unwrap(),
            format: Format::Awp,
        };
        let summary = Summary { sites_visited: 1, requests: 20, samples: vec![sample], ..Summary::default() };
        let shown = text(&summary, Audience::Terminal, "indexer --once");
        assert!(
            shown.contains("Book seat (skyhop.example, awp)") && shown.ends_with("indexer --once"),
            "{shown}"
        );
        let piped = text(&summary, Audience::Pipe, "indexer --once");
        assert!(
            piped.starts_with("1 site visited with 20 requests") && !piped.contains("indexer"),
            "{piped}"
        );
    }
}
