//! The types of the store's methods: plain values, without SQL.

pub(crate) mod feed;
pub(crate) mod feedback;
pub(crate) mod groups;
pub(crate) mod health;
pub(crate) mod host_check;
pub(crate) mod lease;
pub(crate) mod maintenance;
pub(crate) mod paths;
pub(crate) mod read_attempt;
pub(crate) mod reader_key;
pub(crate) mod registry_entry;
pub(crate) mod report;
pub(crate) mod retention;
pub(crate) mod robots;
pub(crate) mod search_count;
pub(crate) mod seed;
pub(crate) mod site;
pub(crate) mod stored;
pub(crate) mod suffix;
pub(crate) mod suspension;
pub(crate) mod task;
pub(crate) mod visit;
pub(crate) mod watch;
pub(crate) mod worker;

pub use feed::{FeedChange, FeedEntry, FeedPage, FeedPosition};
pub use feedback::{
    Feedback, FeedbackCap, FeedbackCaps, FeedbackFilter, FeedbackLine, FeedbackOutcome, FeedbackPair,
};
pub use groups::{GroupSet, HandOver, Member, MemberId, Membership, Share, SiteGroup};
pub use health::{DialectUsage, LatestVisit, NewSite, VisitsOfInterval, WorkerLoad};
pub use host_check::{HostCheck, NamedHost};
pub use lease::{LEASE_DURATION_DEFAULT, LEASE_DURATION_MAX, LeaseRequest, LeaseToken, LeasedSite};
pub use maintenance::{Housekeeping, SchemaState, Space};
pub use paths::{PathCheck, PathSlots};
pub use read_attempt::{EarlierAttempt, ReadAttempt, ReadAttemptWrite};
pub use reader_key::{READER_KEYS_MAX, ReaderKey, ReaderKeyOutcome};
pub use registry_entry::{
    REGISTRY_ROWS_MAX, RegistryPosition, RowsLeftOut, SITE_ROWS_MAX, SiteListing, UnfinishedReading,
};
pub use report::{Report, ReportCap, ReportCaps, ReportFilter, ReportLine, ReportOutcome, ReportedSite};
pub use retention::{FeedReader, Retained, Retention};
pub use robots::RobotsRecord;
pub use search_count::{CapabilitySearchCount, SearchCount};
pub use seed::{LINK_BYTES_MAX, Seed, SeedOrigin, SeedsAdded};
pub use site::{
    BlockOutcome, BlockRecord, FailingSite, Hint, HostOrigin, HostState, ResourceState, SiteLease,
    SiteReport, SiteState, SiteSummary, SitesRequest, SlowSite,
};
pub use stored::{
    ManifestBatch, ManifestSize, NamespaceCount, SemanticTypeCount, SharedCapability, SiteManifestSize,
    Stats, StoredDeclaration, StoredManifest, VersionRecord,
};
pub use suffix::{SuffixPermit, SuffixPermitOutcome, SuffixPermitRequest};
pub use suspension::{DatedText, SuspendedSite, SuspensionOutcome, SuspensionRecord};
pub use task::{BackgroundTask, FailingTask};
pub use visit::{
    AddressSlot, ClockOutcome, ClockWrite, FetchRecord, FetchReport, LinkChanges, NewSource, NextVisit,
    ParkedVisit, Phases, SlotClaim, VisitProgress, VisitRecord, VisitReport, VisitSaved,
};
pub use watch::{
    DeliveryEnd, DeliveryLine, DueContent, DueDelivery, NewChallenge, NewDelivery, NewWatch, ReceiverCaps,
    SearchWatch, Watch, WatchCap, WatchCaps, WatchOutcome, WatchTarget, WatchWithChanges,
};
pub use worker::WorkerId;
