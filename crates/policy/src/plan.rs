//! Which paths are asked on a visit, in which order, and how much of an answer is read.
//!
//! The path table is data in this one place. A first visit asks all of it, best prior first and the homepage last; a
//! site where nothing was found is asked a few paths each time, those not asked for longest, so that all are covered
//! every few visits; a site with manifests is asked for these and for one more. Rarer paths are asked only when
//! something links to them.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use manifest::{Format, closed};

use crate::outcome::FetchOutcome;
use crate::spread::Seed;

/// The one Accept header of every request; constant, so that answers that vary by it stay comparable.
pub const ACCEPT: &str = "application/json, application/woa+json, application/linkset+json, \
                          application/a2a-agent-card+json, text/plain;q=0.8, */*;q=0.1";
/// The one Accept-Encoding header of every request.
pub const ACCEPT_ENCODING: &str = "gzip, br";
/// Where robots.txt is (RFC 9309 §2.3); always first, never part of the table.
pub const ROBOTS_PATH: &str = "/robots.txt";
/// Paths asked again of a site where nothing was found: with these the table is covered in seven visits.
pub const PROBES_OF_NEGATIVE: usize = 3;
/// Paths asked beside the known ones of a site with manifests.
pub const PROBES_OF_POSITIVE: usize = 1;
/// Paths asked beside the homepage of a host that answers everything with a page.
pub const PROBES_OF_CATCH_ALL: usize = 1;
/// Bytes read of an answer that is not 2xx, to keep the connection usable; beyond that it is closed.
pub const ERROR_BODY_BYTES_MAX: usize = 16 * 1024;
/// A manifest above this is read but reported: clients of agents give up on such files.
pub const MANIFEST_BYTES_ADVISED: usize = 256 * 1024;

closed! {
    /// What kind of body is expected, which decides how much of it is read.
    BodyKind, "body kind" {
        /// A manifest of any dialect.
        Manifest = "manifest",
        /// An OpenAPI document that a manifest names.
        OpenApi = "openapi",
        /// robots.txt.
        Robots = "robots",
        /// llms.txt.
        LlmsTxt = "llms_txt",
        /// The homepage: only its links are of interest, and these stand in its head.
        Homepage = "homepage",
        /// Anything else.
        Other = "other",
    }
}

impl BodyKind {
    /// Cap of the decoded body, and of the body on the wire. The largest manifest known is 1.9 MB, the largest OpenAPI
    /// documents in use are about 12 MB; RFC 9309 §2.5 demands 500 KiB for robots.txt.
    pub const fn bytes_max(self) -> usize {
        match self {
            Self::Manifest => 4 * 1024 * 1024,
            Self::OpenApi => 16 * 1024 * 1024,
            Self::Robots => crate::robots::BODY_BYTES_MAX,
            Self::LlmsTxt => 1024 * 1024,
            Self::Homepage => 64 * 1024,
            Self::Other => ERROR_BODY_BYTES_MAX,
        }
    }
}

/// One row of the path table.
#[derive(Debug, PartialEq, Eq)]
pub struct PlannedPath {
    /// Its place in packed records of what was asked; never reused for another path.
    pub slot: u8,
    /// The path.
    pub path: &'static str,
    /// What is expected there.
    pub body: BodyKind,
    /// Of 10,000 sites that publish anything, how many are assumed to publish here until counts say better.
    pub prior: u16,
    /// The dialects that claim the path, most usual first; a hint, since only the body tells.
    pub formats: &'static [Format],
}

const fn row(
    slot: u8,
    path: &'static str,
    prior: u16,
    body: BodyKind,
    formats: &'static [Format],
) -> PlannedPath {
    PlannedPath { slot, path, body, prior, formats }
}

/// Every path that is asked without a link to it.
pub const PATHS: &[PlannedPath] = &[
    row(0, "/.well-known/agent-card.json", 1_900, BodyKind::Manifest, &[Format::A2a, Format::Erc8004]),
    row(
        1,
        "/.well-known/agent.json",
        1_700,
        BodyKind::Manifest,
        &[Format::A2a, Format::Awp, Format::Atp, Format::Ahp, Format::Air, Format::Facts],
    ),
    row(2, "/agent.json", 1_400, BodyKind::Manifest, &[Format::Awp, Format::A2a]),
    row(3, "/.well-known/ard.json", 1_200, BodyKind::Manifest, &[Format::Ard]),
    row(4, "/.well-known/ai-catalog.json", 1_150, BodyKind::Manifest, &[Format::Ard]),
    row(
        5,
        "/.well-known/agents.json",
        1_100,
        BodyKind::Manifest,
        &[Format::AgentsJson, Format::Wildcard, Format::W2a, Format::AgentsJsonLt],
    ),
    row(
        6,
        "/agents.json",
        1_050,
        BodyKind::Manifest,
        &[Format::AgentsJson, Format::Wildcard, Format::AgentsJsonJm],
    ),
    row(7, "/.well-known/agents.txt", 1_000, BodyKind::Manifest, &[Format::AgentsTxt]),
    row(8, "/agents.txt", 950, BodyKind::Manifest, &[Format::AgentsTxt]),
    row(9, "/.well-known/agent-manifest.json", 900, BodyKind::Manifest, &[Format::Arws, Format::ManifestV1]),
    row(10, "/.well-known/woa.json", 850, BodyKind::Manifest, &[Format::Woa]),
    row(11, "/.well-known/mcp/server-card.json", 800, BodyKind::Manifest, &[Format::McpCard]),
    row(
        12,
        "/.well-known/mcp.json",
        750,
        BodyKind::Manifest,
        &[Format::McpFreeform, Format::McpCard, Format::McpConfig],
    ),
    row(13, "/.well-known/api-catalog", 700, BodyKind::Manifest, &[Format::ApiCatalog]),
    row(14, "/.well-known/agent-skills/index.json", 650, BodyKind::Manifest, &[Format::SkillsIndex]),
    row(15, "/.well-known/ai-plugin.json", 600, BodyKind::Manifest, &[Format::AiPlugin]),
    row(16, "/.well-known/llms.txt", 550, BodyKind::LlmsTxt, &[Format::LlmsTxt, Format::Arws]),
    row(17, "/llms.txt", 500, BodyKind::LlmsTxt, &[Format::LlmsTxt]),
    row(18, "/", 0, BodyKind::Homepage, &[]),
];

/// The row of a path; `None` for paths that are not in the table.
pub fn find(path: &str) -> Option<&'static PlannedPath> {
    PATHS.iter().find(|row| row.path == path)
}

closed! {
    /// What the last check of a path came to, as kept in a packed record.
    PathClass, "path class" {
        /// Nothing there.
        Absent = "absent",
        /// A manifest.
        Present = "present",
        /// A page in place of a manifest.
        Html = "html",
        /// Refused, by robots.txt or by the server.
        Refused = "refused",
        /// No usable answer.
        Failed = "failed",
    }
}

impl PathClass {
    /// The class of an outcome; `None` when the path was not asked.
    pub const fn of(outcome: FetchOutcome) -> Option<Self> {
        match outcome {
            FetchOutcome::Found | FetchOutcome::NotModified => Some(Self::Present),
            FetchOutcome::Html => Some(Self::Html),
            FetchOutcome::NotFound
            | FetchOutcome::Gone
            | FetchOutcome::ClientError
            | FetchOutcome::NotAManifest
            | FetchOutcome::RedirectedAway
            | FetchOutcome::RedirectRefused
            | FetchOutcome::RedirectLoop => Some(Self::Absent),
            FetchOutcome::Blocked | FetchOutcome::RobotsDenied => Some(Self::Refused),
            FetchOutcome::Fresh | FetchOutcome::NotReached | FetchOutcome::OverBudget => None,
            _ => Some(Self::Failed),
        }
    }

    /// The number in a packed record; 0 stands for never checked.
    pub const fn code(self) -> u8 {
        match self {
            Self::Absent => 1,
            Self::Present => 2,
            Self::Html => 3,
            Self::Refused => 4,
            Self::Failed => 5,
        }
    }

    /// The class with this number; a number of a later version is taken for a failure.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => None,
            1 => Some(Self::Absent),
            2 => Some(Self::Present),
            3 => Some(Self::Html),
            4 => Some(Self::Refused),
            _ => Some(Self::Failed),
        }
    }
}

/// The last check of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastCheck {
    /// What it came to.
    pub class: PathClass,
    /// The day, as [`day_number`] counts.
    pub day: u16,
}

/// Days since 1970-01-01, as packed records keep them; good until 2149.
pub fn day_number(now: DateTime<Utc>) -> u16 {
    u16::try_from(now.timestamp().div_euclid(86_400).max(0)).unwrap_or(u16::MAX)
}

/// What is known of a host before the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Never visited.
    Unknown,
    /// Visited, and nothing was found.
    Negative,
    /// Answers every path with a page.
    CatchAll,
    /// Has manifests, which are asked for beside what is planned here.
    Positive,
}

/// The paths to ask of a host, in the order of asking, without robots.txt and without resources that are known already.
/// `last` tells the last check of a slot.
pub fn paths(
    standing: Standing,
    priors: &Priors,
    last: impl Fn(u8) -> Option<LastCheck>,
) -> Vec<&'static PlannedPath> {
    let is_homepage = |row: &&PlannedPath| row.body == BodyKind::Homepage;
    let mut chosen: Vec<&'static PlannedPath> = match standing {
        Standing::Unknown => PATHS.iter().collect(),
        Standing::Negative => longest_unasked(PATHS.iter(), priors, &last, PROBES_OF_NEGATIVE),
        Standing::CatchAll => {
            let probes = PATHS.iter().filter(|row| !is_homepage(row));
            let homepage = PATHS.iter().filter(is_homepage);
            longest_unasked(probes, priors, &last, PROBES_OF_CATCH_ALL).into_iter().chain(homepage).collect()
        }
        Standing::Positive => {
            let present =
                |row: &&PlannedPath| last(row.slot).is_some_and(|check| check.class == PathClass::Present);
            let unknown = PATHS.iter().filter(|row| !present(row));
            longest_unasked(unknown, priors, &last, PROBES_OF_POSITIVE)
        }
    };
    chosen.sort_by_key(|row| (is_homepage(row), Reverse(priors.of(row)), row.slot));
    chosen
}

fn longest_unasked(
    rows: impl Iterator<Item = &'static PlannedPath>,
    priors: &Priors,
    last: impl Fn(u8) -> Option<LastCheck>,
    count: usize,
) -> Vec<&'static PlannedPath> {
    let mut rows: Vec<_> = rows.collect();
    // never asked comes before any day
    rows.sort_by_key(|row| (last(row.slot).map(|check| check.day), Reverse(priors.of(row)), row.slot));
    rows.truncate(count);
    rows
}

/// How likely each path is, of 10,000 sites that publish anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priors([u16; PATHS.len()]);

/// What was found under one path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCount {
    /// Sites that were asked and have any manifest.
    pub asked: u64,
    /// Those of them that have one here.
    pub found: u64,
}

/// Sites that the assumed priors weigh as much as: a few hundred observations move them, a dozen do not.
const PRIOR_WEIGHT: u64 = 500;

impl Default for Priors {
    fn default() -> Self {
        let mut priors = [0; PATHS.len()];
        for (prior, row) in priors.iter_mut().zip(PATHS) {
            *prior = row.prior;
        }
        Self(priors)
    }
}

impl Priors {
    /// The assumed priors, corrected by what was found (a Beta prior's mean).
    #[must_use]
    pub fn re_estimated(count_of: impl Fn(u8) -> PathCount) -> Self {
        let mut priors = Self::default();
        for (prior, row) in priors.0.iter_mut().zip(PATHS) {
            let count = count_of(row.slot);
            let found = u128::from(count.found.min(count.asked)) * 10_000;
            let assumed = u128::from(row.prior) * u128::from(PRIOR_WEIGHT);
            let mean = (assumed + found) / u128::from(count.asked.saturating_add(PRIOR_WEIGHT));
            *prior = u16::try_from(mean).unwrap_or(10_000);
        }
        priors
    }

    fn of(&self, row: &PlannedPath) -> u16 {
        self.0.get(usize::from(row.slot)).copied().unwrap_or_default()
    }
}

/// A path that no site has: whoever answers it with a page or a manifest answers everything so.
pub fn canary_path(seed: Seed) -> String {
    format!("/.well-known/agentdex-canary-{:08x}.json", seed.below(1 << 32))
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use proptest::prelude::*;

    use super::*;

    fn names(rows: &[&'static PlannedPath]) -> Vec<&'static str> {
        rows.iter().map(|row| row.path).collect()
    }

    #[test]
    fn slots_are_places_in_the_table_and_paths_are_distinct() {
        for (index, row) in PATHS.iter().enumerate() {
            assert_eq!(usize::from(row.slot), index);
            assert!(row.path.starts_with('/'));
            assert_eq!(find(row.path), Some(row));
        }
        assert_eq!(PATHS.iter().map(|row| row.path).collect::<HashSet<_>>().len(), PATHS.len());
    }

    #[test]
    fn a_first_visit_asks_everything_the_homepage_last() {
        let asked = names(&paths(Standing::Unknown, &Priors::default(), |_| None));
        assert_eq!(asked.len(), PATHS.len());
        assert_eq!(asked.first(), Some(&"/.well-known/agent-card.json"));
        assert_eq!(asked.last(), Some(&"/"));
    }

    #[test]
    fn a_negative_site_is_covered_every_seven_visits() {
        let mut days: HashMap<u8, LastCheck> = HashMap::new();
        let mut asked = HashSet::new();
        for visit in 0..7 {
            let rows = paths(Standing::Negative, &Priors::default(), |slot| days.get(&slot).copied());
            assert_eq!(rows.len(), PROBES_OF_NEGATIVE);
            for row in rows {
                asked.insert(row.path);
                days.insert(row.slot, LastCheck { class: PathClass::Absent, day: 20_000 + visit });
            }
        }
        assert_eq!(asked.len(), PATHS.len());
    }

    #[test]
    fn a_site_with_manifests_is_asked_one_path_that_it_has_not() {
        let last = |slot| (slot == 0).then_some(LastCheck { class: PathClass::Present, day: 1 });
        assert_eq!(names(&paths(Standing::Positive, &Priors::default(), last)), ["/.well-known/agent.json"]);
    }

    #[test]
    fn a_catch_all_host_is_asked_one_path_and_the_homepage() {
        let asked = names(&paths(Standing::CatchAll, &Priors::default(), |_| None));
        assert_eq!(asked, ["/.well-known/agent-card.json", "/"]);
    }

    #[test]
    fn counts_move_priors() {
        let count = |slot| match slot {
            17 => PathCount { asked: 10_000, found: 9_000 },
            0 => PathCount { asked: 10_000, found: 10 },
            _ => PathCount::default(),
        };
        let priors = Priors::re_estimated(count);
        let asked = names(&paths(Standing::Unknown, &priors, |_| None));
        assert_eq!(asked.first(), Some(&"/llms.txt"));
        assert_eq!(asked.last(), Some(&"/"));
        assert_eq!(Priors::re_estimated(|_| PathCount::default()), Priors::default());
    }

    #[test]
    fn classes_keep_their_numbers() {
        for class in PathClass::ALL {
            assert_eq!(PathClass::from_code(class.code()), Some(*class));
        }
        assert_eq!(PathClass::from_code(0), None);
        assert_eq!(PathClass::of(FetchOutcome::NotReached), None);
    }

    #[test]
    fn canaries_differ_by_host_and_days_are_counted() {
        assert_ne!(canary_path(Seed::of("a.example")), canary_path(Seed::of("b.example")));
        assert!(find(&canary_path(Seed::of("a.example"))).is_none());
        assert_eq!(day_number(DateTime::<Utc>::UNIX_EPOCH), 0);
        assert_eq!(day_number(DateTime::<Utc>::MIN_UTC), 0);
        assert_eq!(day_number(DateTime::<Utc>::MAX_UTC), u16::MAX);
    }

    proptest! {
        /// Whatever was asked before, no path is asked twice and the homepage comes last.
        #[test]
        fn plans_are_distinct_and_ordered(days in proptest::collection::vec(proptest::option::of(0_u16..50), PATHS.len())) {
            let last = |slot: u8| {
                days.get(usize::from(slot)).copied().flatten().map(|day| LastCheck { class: PathClass::Absent, day })
            };
            for standing in [Standing::Unknown, Standing::Negative, Standing::CatchAll, Standing::Positive] {
                let rows = paths(standing, &Priors::default(), last);
                let distinct: HashSet<_> = rows.iter().map(|row| row.slot).collect();
                prop_assert_eq!(distinct.len(), rows.len());
                let homepage = rows.iter().position(|row| row.path == "/");
                prop_assert!(homepage.is_none_or(|place| place + 1 == rows.len()));
            }
        }
    }
}
