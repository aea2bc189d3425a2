//! What a crawl is told: parsed and checked once, before the first request.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use manifest::ManifestUrl;
use store::{Retention, WorkerId};

use crate::egress::EgressSettings;
use crate::reading::ReaderProgram;
use crate::schedule::Schedules;

/// Visits open at the same time unless told otherwise: with a gap of 3 s they make about 80 requests a second.
pub const CONCURRENCY_DEFAULT: usize = 256;
/// Requests a second of one process unless told otherwise; more than 256 visits can reach.
pub const RATE_DEFAULT: NonZeroU32 = NonZeroU32::new(1_000).expect("not zero");
/// How long a pass waits for parked visits unless told otherwise.
pub const PARK_WAIT_DEFAULT: Duration = Duration::from_mins(1);

/// A crawl.
#[derive(Debug, Clone)]
pub struct CrawlConfig {
    pub egress: EgressSettings,
    pub seeds: Vec<SeedSource>,
    pub seed_lists: SeedLists,
    pub mode: Mode,
    /// Least gap between two requests to an authority; robots.txt may ask for more.
    pub delay: Duration,
    /// Requests a second of this process.
    pub rate: NonZeroU32,
    /// Visits open at the same time.
    pub concurrency: usize,
    /// Makes sites due that were visited longer ago than this.
    pub revisit_older_than: Option<Duration>,
    pub worker: WorkerId,
    /// The embedded database that this crawl needs for itself alone; none where a fleet shares one.
    pub sole_on: Option<PathBuf>,
    /// How long a site is leased for; renewed at a third of it, and free again after it when the process was killed.
    pub lease: Duration,
    /// What a daemon does beside visiting.
    pub schedules: Schedules,
    /// What housekeeping removes by age.
    pub retention: Retention,
    /// Where each thing that happens is written, one JSON object a line.
    pub events: Option<PathBuf>,
    /// Whether names are asked for TXT records that lead to manifests.
    pub text_records: TextRecords,
    /// Reads a document in a process of its own after a reader ended in the middle of it.
    pub reader: Option<ReaderProgram>,
}

impl CrawlConfig {
    /// What can be read a second time.
    pub(crate) fn without_stdin(&self) -> Self {
        let seeds = self.seeds.iter().filter(|source| **source != SeedSource::Stdin).cloned().collect();
        Self { seeds, ..self.clone() }
    }
}

/// What becomes of sites that the seed lists name no more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SeedLists {
    /// They stay: lists only ever add.
    #[default]
    Added,
    /// They are forgotten, unless somebody else asked for them or links to them.
    Followed,
}

/// Whether `_atp` and `_agent` TXT records are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextRecords {
    #[default]
    Ignored,
    Asked,
}

/// When a crawl ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// When nothing is due; parked visits are waited for this long.
    Once { park_wait: Duration },
    /// When it is stopped.
    Daemon,
}

impl Mode {
    /// How long a visit that has to pause is waited for by whoever needs what it brings.
    pub(crate) const fn park_wait(self) -> Duration {
        match self {
            Self::Once { park_wait } => park_wait,
            Self::Daemon => PARK_WAIT_DEFAULT,
        }
    }
}

/// Where seeds come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeedSource {
    File(PathBuf),
    Stdin,
    /// A list on the web.
    Url(ManifestUrl),
    /// Another registry of agents, asked by ARD's `POST /search`.
    Registry(ManifestUrl),
    /// Text at hand, such as the demo's.
    Text {
        name: String,
        text: String,
    },
}

impl SeedSource {
    /// How messages name it.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stdin => "stdin".to_owned(),
            Self::Url(url) => url.to_string(),
            Self::Registry(url) => format!("the registry {url}"),
            Self::Text { name, .. } => name.clone(),
        }
    }
}

/// A name for this process that no other has at the same time.
pub fn worker_id() -> WorkerId {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "worker" } else { host.trim() };
    WorkerId::new(&format!("{host}/{}", std::process::id()))
}
