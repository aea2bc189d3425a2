//! Tasks of a visit.

use manifest::model::{Link, PolicyChoice};
use manifest::{Discovery, Host, ManifestUrl};
use policy::plan::PlannedPath;
use policy::{BodyKind, plan};
use serde::{Deserialize, Serialize};

/// The purpose of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    /// A manifest of its own.
    Manifest,
    /// Completes the manifest that links to it.
    Part,
    /// A page; only its links are read.
    Page,
    /// A path that cannot exist; its response shows how the host answers missing paths.
    Canary,
    /// The proof that somebody controls the domain.
    Claim,
}

/// One document to request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) url: ManifestUrl,
    /// Redirects followed so far, without `url`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) hops: Vec<ManifestUrl>,
    /// What robots.txt says about training models with the documents at the URLs before the last hop.
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
    /// Whose turn it takes.
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
    /// Its last request failed: it comes after everything else. Another failure may end the rest of what documents link to.
    Retry,
    /// It was begun: an interrupted request, or one that the last response asks for.
    Begun,
}

impl Turn {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    fn is_new_link(&self) -> bool {
        *self == Self::NewLink
    }
}

/// The ranks of a turn of the queue, one after the other. Known documents have half of the requests, and no kind of new URL is left out
/// when a budget ends each visit.
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
/// The rank of known documents that the site itself does not publish, which is the first one with turns.
pub(super) const RANK_OF_KNOWN: u8 = 2;

/// Who named a URL, by decreasing standing.
///
/// Only responses to what the site itself names are evidence about the site. Everything else was reached by a link in a document, whose
/// author may be a user of the site, or was named by somebody else. A response to it ends or delays only what the same source named at the
/// same host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NamedBy {
    /// The path table, the robots.txt, the DNS records or the home page of an own host, at an own host; or the operator.
    #[default]
    Site,
    /// A document that the site itself publishes links to it. Or the site itself names it, but at a host that is not its own.
    Document,
    /// A document links to it that was itself reached by a link.
    Further,
    /// Only a submission or another site ([`policy::naming`]), or a list whose URL has yielded no manifest yet.
    Others,
}

impl NamedBy {
    /// The standing of the links of a document with this standing.
    pub(crate) const fn of_links(self) -> Self {
        match self {
            Self::Site => Self::Document,
            Self::Document | Self::Further => Self::Further,
            Self::Others => Self::Others,
        }
    }

    /// Whether a task with this standing is neither one of the site itself nor a part of its manifests.
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

    /// The rank of the task in the queue. What the site itself names has rank 0 and parts have rank 1; both come before everything else.
    /// The other ranks have turns ([`TURNS`]), but for the last one, 8.
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

    /// Whether the task is neither of the site itself nor a part of its manifests.
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

/// The limit on the body of a URL, if only its path is known.
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

/// The limit on the body of a document to which a manifest links.
pub(crate) fn body_of_link(link: &Link, url: &ManifestUrl) -> BodyKind {
    let media_type = link.media_type.as_deref().unwrap_or_default();
    let says_openapi =
        media_type.contains("openapi") || matches!(link.rel.as_str(), "service-desc" | "tools");
    if says_openapi { BodyKind::OpenApi } else { body_of_path(url) }
}
