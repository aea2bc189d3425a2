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
    /// What is known of earlier requests.
    #[serde(default, skip_serializing_if = "Earlier::is_usual")]
    pub(crate) earlier: Earlier,
}

/// What is known of earlier requests for a URL. It does not affect URLs that the site itself names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Earlier {
    /// Nothing that matters.
    #[default]
    Usual,
    /// A known document, which takes turns with the other known documents.
    Known,
    /// It is new, and comes before all other new URLs in this visit ([`Earlier::of_new`]).
    First,
    /// Only others name it, and it was never requested: it comes after known documents, except in each fourth visit. Its failure may end
    /// the other requests for what others name.
    Untried,
    /// The last request failed, or it redirects to another host, which may fail: it comes after everything else. Another failure may end the
    /// rest of what documents link to.
    Failed,
}

/// New URLs, by what names them: a failure of one may end the rest of the visit at its host, so none of these is the last in all visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NewUrl {
    /// A submission or another site.
    Hint,
    /// A document that only others name.
    LinkOfOthers,
}

impl Earlier {
    /// What is known of a new URL in the visit after so many others. In each second visit the links of the site's documents are the first
    /// new URLs. In the others hints come before them, and every other time the links of what others name before the hints.
    pub(crate) const fn of_new(visits: u32, new: NewUrl) -> Self {
        match new {
            NewUrl::Hint if visits.is_multiple_of(2) => Self::First,
            NewUrl::Hint => Self::Untried,
            NewUrl::LinkOfOthers if visits.is_multiple_of(2) && !visits.is_multiple_of(4) => Self::First,
            NewUrl::LinkOfOthers => Self::Usual,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
    fn is_usual(&self) -> bool {
        *self == Self::Usual
    }
}

/// The rank of known documents that the site itself does not publish. They take turns, independent of who names them.
const RANK_OF_KNOWN: u8 = 2;
/// The rank of the first new URLs.
const RANK_OF_FIRST: u8 = 3;

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
    /// Only a submission or another site ([`policy::naming`]), or a list whose URL has yielded no manifest yet. It is requested after
    /// everything else.
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

    /// The position of a task with this standing in a visit, lowest first: URLs that the site itself names, the parts of its manifests,
    /// known documents with their parts directly after them, and then new links by their standing.
    pub(crate) const fn rank(self, role: Role) -> u8 {
        match (self, role) {
            (Self::Site, _) => 0,
            (Self::Document, Role::Part) => 1,
            (_, Role::Part) => RANK_OF_KNOWN,
            (Self::Document, _) => 4,
            (Self::Further, _) => 5,
            (Self::Others, _) => 6,
        }
    }

    /// Whether a task with this standing is neither one of the site itself nor a part of its manifests.
    pub(crate) const fn is_link(self, role: Role) -> bool {
        self.rank(role) > 1
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
            earlier: Earlier::Usual,
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

    /// The position of the task in the queue, lowest first.
    pub(crate) const fn rank(&self) -> u8 {
        match (self.named_by, self.earlier) {
            (NamedBy::Site, _) | (_, Earlier::Usual) => self.named_by.rank(self.role),
            (_, Earlier::Known) => RANK_OF_KNOWN,
            (_, Earlier::First) => RANK_OF_FIRST,
            (_, Earlier::Untried) => 7,
            (_, Earlier::Failed) => 8,
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

/// The limit on the body of a URL of which only the path is known.
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
