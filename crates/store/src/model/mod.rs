//! The words of the store's contract: plain values, without SQL.

pub(crate) mod care;
pub(crate) mod feed;
pub(crate) mod feedback;
pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod lease;
pub(crate) mod read_attempt;
pub(crate) mod retention;
pub(crate) mod seed;
pub(crate) mod site;
pub(crate) mod slots;
pub(crate) mod stored;
pub(crate) mod suffix;
pub(crate) mod visit;

pub use care::{SchemaState, Space};
pub use feed::{FeedChange, FeedEntry, FeedPage, FeedPosition};
pub use feedback::{
    Feedback, FeedbackCap, FeedbackCaps, FeedbackFilter, FeedbackLine, FeedbackOutcome, FeedbackPair,
};
pub use groups::{GroupSet, HandOver, Member, MemberId, Membership, Share, SiteGroup};
pub use health::{Adoption, NewSite, VisitsOfHour, WorkerLoad};
pub use lease::{LEASE_DURATION_DEFAULT, LeaseRequest, LeaseToken, LeasedSite, WorkerId};
pub use read_attempt::{EarlierAttempt, ReadAttempt, ReadAttemptWrite};
pub(crate) use retention::FeedTrimmed;
pub use retention::{FeedReader, Retained, Retention};
pub use seed::{LINK_BYTES_MAX, Seed, SeedOrigin, SeedsAdded};
pub use site::{
    BlockOutcome, BlockRecord, FailingSite, Hint, HostOrigin, HostState, ResourceState, RobotsRecord,
    SiteState, SiteStory, SiteSummary, SitesRequest, SlowSite, is_main_host,
};
pub use slots::{PathCheck, PathSlots};
pub use stored::{
    ManifestBatch, ManifestSize, NamespaceCount, SemanticTypeCount, Stats, StoredManifest, VersionRecord,
};
pub use suffix::{SuffixTurn, TurnAnswer, TurnRequest};
pub use visit::{
    ClockWrite, FetchRecord, FetchStory, Housekeeping, NextVisit, ParkedVisit, Phases, VisitProgress,
    VisitRecord, VisitSaved, VisitStory,
};
