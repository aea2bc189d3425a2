//! The page of sites.

use askama::Template;
use policy::{Status, VisitEnd};

use super::card::{Mark, OWNER_MARK};
use super::frame::{Frame, Section};
use super::time::Moment;
use super::{icons, labels, links};
use crate::answers::sites::{SiteLine, SitesAnswer};
use crate::page_context::PageContext;
use crate::parameters::QueryPairs;

/// The filters for fresh sites with a document that can be read.
pub(super) const FRESH: [(&str, &str); 2] = [("status", Status::Fresh.as_str()), ("readable", "true")];

struct Filter {
    text: String,
    href: String,
    chosen: bool,
}

struct Row {
    site: String,
    icon: String,
    owner: Option<Mark>,
    status: &'static str,
    status_class: &'static str,
    capabilities: String,
    formats: String,
    last_visit: Option<Moment>,
    /// How the last visit ended, unless it was complete.
    last_end: Option<&'static str>,
    next_visit: Option<Moment>,
}

#[derive(Template)]
#[template(path = "sites.html")]
pub(crate) struct SitesPage {
    frame: Frame,
    summary: String,
    /// Part of the listed names.
    part: String,
    /// Filters that the form for a part of the name keeps.
    kept: Vec<(String, String)>,
    filters: Vec<Filter>,
    rows: Vec<Row>,
    next: Option<String>,
}

impl SitesPage {
    /// Whether no site is known, so that there is nothing to filter.
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.part.is_empty() && self.filters.iter().all(|filter| !filter.chosen)
    }
}

pub(crate) fn page(answer: &SitesAnswer, query: &QueryPairs, context: &PageContext) -> SitesPage {
    SitesPage {
        frame: Frame::new("Sites", Section::Sites)
            .at(context, "/sites")
            .described("Every site that is known to offer something to AI agents, or was visited."),
        summary: match answer.total {
            Some(total) => {
                format!("{}, sorted by name.", labels::counted(total, "site", "sites"))
            }
            None => "Sites sorted by name.".to_owned(),
        },
        part: part(query).to_owned(),
        kept: query
            .pairs()
            .filter(|(name, _)| !matches!(*name, "contains" | "prefix" | "cursor"))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        filters: filters(query),
        rows: answer.sites.iter().map(|line| row(line, context)).collect(),
        next: answer.next_cursor.as_deref().map(|cursor| links::with("/sites", query, "cursor", cursor)),
    }
}

/// The part of the name that was typed, or the beginning that an address states.
fn part(query: &QueryPairs) -> &str {
    let of = |name: &str| query.one(name).ok().flatten();
    of("contains").or_else(|| of("prefix")).unwrap_or_default()
}

fn row(line: &SiteLine, context: &PageContext) -> Row {
    let now = context.now;
    let (status, status_class) = labels::site_status(line.status, line.manifests, &line.formats);
    let formats: Vec<&str> =
        line.formats.iter().filter(|format| format.is_indexable()).map(|format| format.label()).collect();
    Row {
        site: line.site.to_string(),
        icon: icons::of_site(line.site.as_str(), 24),
        owner: context.owners.of(&line.site).map(|_| OWNER_MARK),
        status,
        status_class,
        capabilities: labels::grouped(u64::from(line.capabilities)),
        formats: formats.join(", "),
        last_visit: Moment::maybe(line.last_visit_at, now),
        last_end: line.last_end.filter(|end| *end != VisitEnd::Completed).map(VisitEnd::description),
        next_visit: line.next_visit_at.map(|at| Moment::planned(at, now)),
    }
}

fn filters(query: &QueryPairs) -> Vec<Filter> {
    let of = |text: &str, set: &[(&'static str, &'static str)]| {
        let chosen = set.iter().all(|(key, value)| query.one(key).ok().flatten() == Some(*value));
        let is_other = |name: &str| name != "cursor" && set.iter().all(|(key, _)| *key != name);
        let others = query.pairs().filter(|(name, _)| is_other(name));
        let href = if chosen {
            links::with_query("/sites", others)
        } else {
            links::with_query("/sites", others.chain(set.iter().copied()))
        };
        Filter { text: text.to_owned(), href, chosen }
    };
    let shown = [
        Status::Stale,
        Status::Unreachable,
        Status::Gone,
        Status::Denied,
        Status::CatchAll,
        Status::OptedOut,
        Status::Suspended,
        Status::Pending,
    ];
    let mut filters = vec![
        of("with manifests", &[("with_manifests", "true")]),
        of(Status::Invalid.label(), &[("readable", "false")]),
        of(labels::status(Status::Fresh), &FRESH),
    ];
    filters.extend(shown.map(|status| of(labels::status(status), &[("status", status.as_str())])));
    filters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_site_status_has_a_filter() {
        let filters = filters(&QueryPairs::parse("prefix=a").unwrap());
        let of = |status: Status| filters.iter().find(|filter| filter.text == labels::status(status));
        let unreadable = filters.iter().find(|filter| filter.text == Status::Invalid.label());
        assert!(unreadable.is_some_and(|filter| filter.href.contains("readable=false")));
        for status in Status::ALL.iter().filter(|status| **status != Status::Invalid) {
            let filter = of(*status).unwrap_or_else(|| panic!("{status} has no filter"));
            assert!(filter.href.contains(&format!("status={status}")), "{}", filter.href);
        }
    }
}
