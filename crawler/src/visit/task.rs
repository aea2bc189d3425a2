//! Tasks of a visit.

use manifest::model::{Link, PolicyChoice};
use manifest::{Discovery, Host, ManifestUrl};
use policy::freshness::Use;
use policy::plan::PlannedPath;
use policy::{BodyKind, plan};
use serde::{Deserialize, Serialize};

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// A separate manifest.
    Manifest,
    /// A document that completes the manifest that links to it.
    Part,
    /// A page, of which only the links are read.
    Page,
    /// A path that should not exist. Its response shows how the host answers missing paths.
    Canary,
    /// The proof that somebody controls the domain.
    Claim,
}

impl Role {
    /// What a copy of the document is used for.
    pub(crate) const fn copy_use(self) -> Use {
        match self {
            Self::Part => Use::Part,
            Self::Manifest | Self::Page | Self::Canary | Self::Claim => Use::Document,
        }
    }
}

/// One document to request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) url: ManifestUrl,
    /// Redirects followed so far, without `url`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hops: Vec<ManifestUrl>,
    /// The preference on training models that applies to the URLs before the last hop.
    #[serde(default, skip_serializing_if = "PolicyChoice::is_unset")]
    pub(crate) training: PolicyChoice,
    pub(crate) body: BodyKind,
    pub(crate) discovery: Discovery,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) linked_from: Option<Box<ManifestUrl>>,
    /// Row of the path table, if the URL comes from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slot: Option<u8>,
    pub(crate) role: Role,
    #[serde(default, rename = "plainly", skip_serializing_if = "Validators::are_sent")]
    pub(crate) validators: Validators,
    /// Who named the URL.
    #[serde(default, skip_serializing_if = "NamedBy::is_site")]
    pub(crate) named_by: NamedBy,
    /// The kind of turn that the task takes.
    #[serde(default, skip_serializing_if = "Turn::is_new_link")]
    pub(crate) turn: Turn,
}

/// The turns of URLs that the site itself does not name ([`Task::rank`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Turn {
    /// A link that this visit found.
    #[default]
    NewLink,
    /// A known document.
    Known,
    /// A URL that a submission, another site or a list named.
    Hint,
    /// A path at a host that only others name.
    Path,
    /// A URL whose last request failed. It comes after everything else, because another failure may end the requests for other links.
    Retry,
    /// A task that was begun: an interrupted request, or one that the last response requires.
    Begun,
}

impl Turn {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    fn is_new_link(&self) -> bool {
        *self == Self::NewLink
    }
}

/// The order of ranks in the turns of the queue. Known documents get half of the requests, and each kind of new URL gets requests even if a
/// budget ends each visit early.
pub(super) const TURNS: [u8; 12] = [
    RANK_OF_KNOWN,
    3,
    RANK_OF_KNOWN,
    3,
    RANK_OF_KNOWN,
    5,
    RANK_OF_KNOWN,
    7,
    RANK_OF_KNOWN,
    4,
    RANK_OF_KNOWN,
    6,
];
/// The rank of known documents that the site itself does not publish. It is the first rank that takes turns.
pub(super) const RANK_OF_KNOWN: u8 = 2;

/// Who named a URL, by decreasing precedence.
///
/// Only responses to URLs that the site itself names are evidence about the site. Other URLs come from a document whose author may be a
/// user of the site, or from somebody else. Their responses end or delay only requests for URLs that the same source named at the same
/// host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NamedBy {
    /// The path table, the robots.txt, the DNS records or the home page of an own host, at an own host; or the operator.
    #[default]
    Site,
    /// A document that the site itself publishes, or the site itself if the URL is at a host that is not its own.
    Document,
    /// A document that was itself reached through a link.
    Further,
    /// Only a submission or another site ([`policy::naming`]), or a list, if no manifest was found at the URL yet.
    Others,
}

impl NamedBy {
    /// The value for the links in a document that is named in this way.
    pub(crate) const fn of_links(self) -> Self {
        match self {
            Self::Site => Self::Document,
            Self::Document | Self::Further => Self::Further,
            Self::Others => Self::Others,
        }
    }

    /// Whether a task that is named in this way is neither one of the site itself nor a part of its manifests.
    pub(crate) const fn is_link(self, role: Role) -> bool {
        !matches!((self, role), (Self::Site, _) | (Self::Document, Role::Part))
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    pub(super) fn is_site(&self) -> bool {
        *self == Self::Site
    }
}

/// Whether a request contains the validators of the stored copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Validators {
    #[default]
    #[serde(rename = "no")]
    Sent,
    /// None, so that the document is received completely.
    #[serde(rename = "yes")]
    Omitted,
}

impl Validators {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    fn are_sent(&self) -> bool {
        *self == Self::Sent
    }
}

impl Task {
    pub(crate) const fn new(url: ManifestUrl, body: BodyKind, discovery: Discovery) -> Self {
        Self {
            url,
            hops: Vec::new(),
            training: PolicyChoice::Unset,
            body,
            discovery,
            linked_from: None,
            slot: None,
            role: Role::Manifest,
            validators: Validators::Sent,
            named_by: NamedBy::Site,
            turn: Turn::NewLink,
        }
    }

    /// The discovery and the role of a row of the path table.
    pub(crate) fn manner_of(row: &PlannedPath) -> (Discovery, Role) {
        let is_well_known = row.path.starts_with("/.well-known/");
        let discovery = if is_well_known { Discovery::WellKnown } else { Discovery::Root };
        let role = if row.body == BodyKind::Homepage { Role::Page } else { Role::Manifest };
        (discovery, role)
    }

    /// The task for a row of the path table; `None` if its URL would not be valid.
    pub(crate) fn of_path(host: &Host, row: &PlannedPath) -> Option<Self> {
        let url = ManifestUrl::on_host(host, row.path).ok()?;
        let (discovery, role) = Self::manner_of(row);
        Some(Self { slot: Some(row.slot), role, ..Self::new(url, row.body, discovery) })
    }

    /// The rank of the task in the queue. Tasks that the site itself names and tasks that have begun have rank 0, and come first. Retries
    /// of other tasks have rank 8, and come last. Other parts have rank 1, before the remaining ranks, which take turns ([`TURNS`]).
    pub(crate) const fn rank(&self) -> u8 {
        match (self.named_by, self.role, self.turn) {
            (NamedBy::Site, ..) | (_, _, Turn::Begun) => 0,
            (_, _, Turn::Retry) => 8,
            (_, Role::Part, _) => 1,
            (_, _, Turn::Known) => RANK_OF_KNOWN,
            (NamedBy::Document, _, Turn::NewLink) => 3,
            (NamedBy::Further, _, Turn::NewLink) => 4,
            (_, _, Turn::Hint) => 5,
            (NamedBy::Others, _, Turn::NewLink) => 6,
            (_, _, Turn::Path) => 7,
        }
    }

    /// Whether the task is neither one of the site itself nor a part of its manifests.
    pub(crate) const fn is_link(&self) -> bool {
        self.named_by.is_link(self.role)
    }

    /// The URL to request next.
    pub(crate) fn current(&self) -> &ManifestUrl {
        self.hops.last().unwrap_or(&self.url)
    }

    /// Every URL requested so far, in order.
    pub(crate) fn chain(&self) -> Vec<ManifestUrl> {
        std::iter::once(&self.url).chain(&self.hops).cloned().collect()
    }

    /// The target of the last redirect.
    pub(crate) fn final_url(&self) -> Option<ManifestUrl> {
        self.hops.last().cloned()
    }
}

/// The kind of body of a URL, which determines its size limit, if only the path is known.
pub(crate) fn body_of_path(url: &ManifestUrl) -> BodyKind {
    if let Some(row) = plan::find(&url.path_and_query()) {
        return row.body;
    }
    let path = url.path().to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| path.contains(word));
    match () {
        () if has(&["openapi", "swagger", "api-docs"]) => BodyKind::OpenApi,
        () if has(&["llms.txt", "llms-full.txt"]) => BodyKind::LlmsTxt,
        () => BodyKind::Manifest,
    }
}

/// The kind of body of a document to which a manifest links.
pub(crate) fn body_of_link(link: &Link, url: &ManifestUrl) -> BodyKind {
    let media_type = link.media_type.as_deref().unwrap_or_default();
    let says_openapi =
        media_type.contains("openapi") || matches!(link.rel.as_str(), "service-desc" | "tools");
    if says_openapi { BodyKind::OpenApi } else { body_of_path(url) }
}
