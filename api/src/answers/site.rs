//! All data about a site, for its owner: fetches with their reasons, found manifests, violated rules of specifications, and the time of the
//! next visit.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use manifest::model::{AppliesTo, Auth, Conformance, Interface, PolicyChoice, Protocol};
use manifest::{
    CapabilityId, ContentHash, Detection, Discovery, Finding, Format, IdentityMark, ManifestId, ManifestUrl,
    NamedBy, Publisher, SafetyClass, SiteName,
};
use percent_encoding::percent_decode_str;
use policy::{AbuseReason, FetchOutcome, Status};
use serde::Serialize;
use store::{
    BlockRecord, FetchReport, HostCheck, NextVisit, ResourceState, SiteListing, SiteReport, StoredManifest,
    SuspensionRecord, VisitReport,
};
use utoipa::ToSchema;

use super::claim::OwnerMark;
use super::declarations::{CapabilityContradiction, Disagreements, SharedDeclarations};
use super::listed_agents::{ListedAgent, listed_agents};
use super::listed_by::{Comparable, ListedBy, listings, of_site};
use super::liveness::Liveness;
use super::shown::{CapabilityCounts, Others, ShownCapability, shown_capabilities};
use super::site_hosts::{HostLine, host_line};
use super::sites::SiteLine;
use super::{TEXT_IS, named_by_others};
use crate::clock;
use crate::manifests::{ManifestReader, SiteManifests};
use crate::problem::Problem;
use crate::text;

/// Number of listed visits: enough to show a pattern, few enough for one page.
const VISITS_MAX: u32 = 20;
/// Maximum number of listed hosts: first those that are known to belong to the site, then hosts that received requests.
const HOSTS_MAX: u32 = 200;
/// Maximum number of bytes of the texts of all listed capabilities and findings; the others are only counted.
const LINES_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a line in addition to its texts: identifiers and member names.
const LINE_BYTES: usize = 150;

/// Maximum length of a text or address of a profile, and maximum number of its endpoints and of its schemes.
const PROFILE_CHARS_MAX: usize = 500;
const PROFILE_ENTRIES_MAX: usize = 10;
/// How a site's owner opts out.
pub(crate) const OPT_OUT: &str = "Disallow the user agent \"agentdex\" in robots.txt: a copy of it is used for at most \
     24 hours, or 48 if its Crawl-delay takes most of a day, and the next visit removes what was indexed. To be removed at once and not visited at all, opt out \
     with the key of a verified owner, or ask the operator of this instance to block the site.";

/// Everything that is known about a site.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SiteAnswer {
    #[serde(flatten)]
    pub(crate) line: SiteLine,
    pub(crate) visits_total: u32,
    pub(crate) changes_total: u32,
    pub(crate) failures_in_row: u32,
    /// No request before this time, because the site sent Retry-After.
    pub(crate) not_before: Option<DateTime<Utc>>,
    /// A paused visit: when it continues, and why it was paused.
    #[schema(value_type = Option<crate::openapi::schemas::Planned>)]
    pub(crate) parked: Option<NextVisit>,
    #[schema(value_type = Option<crate::openapi::site_records::Tombstone>)]
    pub(crate) blocked: Option<BlockRecord>,
    /// Set while the operator suspends the site.
    pub(crate) suspended: Option<Suspension>,
    /// Who proved control of the domain.
    #[schema(value_type = Option<crate::openapi::site_records::SiteOwner>)]
    pub(crate) owner: Option<OwnerMark>,
    /// Daily checks of the hosts of this domain that endpoints of its own documents name; absent if no host was checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, value_type = Vec<crate::openapi::liveness::Liveness>)]
    pub(crate) liveness: Vec<Liveness>,
    /// At most 200 of the hosts: first the domain and its `www.` host, then hosts of the operator's lists and those with manifests, then hosts
    /// that received requests. Excludes hosts that only clients or other sites named and that have no manifest.
    pub(crate) hosts: Vec<HostLine>,
    /// How many hosts there are.
    pub(crate) hosts_total: u64,
    /// Excludes URLs that only clients or other sites named and that have no manifest, because others chose the text of these URLs.
    pub(crate) resources: Vec<ResourceLine>,
    /// Number of excluded URLs: named by clients or other sites alone, without a manifest.
    pub(crate) submitted_without_manifest: u64,
    /// Contradictions between declarations of one capability. At most 200 capabilities are compared.
    #[schema(value_type = Vec<crate::openapi::schemas::Contradiction>)]
    pub(crate) contradictions: Vec<CapabilityContradiction>,
    /// Entries of other registries about the site; at most 50. What the site declares counts, not what they list.
    pub(crate) listed_by: Vec<ListedBy>,
    /// One record for each agent or server of `listed_by` that no document of the site's own declares. Empty while manifests are left out.
    pub(crate) listed_agents: Vec<ListedAgent>,
    #[schema(value_type = Vec<Object>)]
    pub(crate) visits: Vec<VisitReport>,
    /// Whether a crawler visits the site at this moment, for the page.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) is_being_visited: bool,
    pub(crate) opt_out: &'static str,
    pub(crate) text_is: &'static str,
}

/// Why a site is suspended, and how its owner can contact the operator.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Suspension {
    #[schema(inline, value_type = crate::openapi::schemas::AbuseReasonWord)]
    reason: AbuseReason,
    /// The reason in words.
    pub(crate) meaning: &'static str,
    /// The operator's explanation; may be empty.
    pub(crate) note: String,
    pub(crate) at: DateTime<Utc>,
    /// Contact of the operator for the owner: an email address or an https address; null if none is configured.
    pub(crate) contact: Option<String>,
}

impl Suspension {
    pub(crate) fn of(record: SuspensionRecord, contact: Option<String>) -> Self {
        // the places are for the owner alone
        let SuspensionRecord { reason, note, at, places: _ } = record;
        Self { reason, meaning: reason.description(), note, at, contact }
    }
}

/// A polled URL, its last fetch, and its manifest.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResourceLine {
    #[schema(value_type = String)]
    pub(crate) url: ManifestUrl,
    #[schema(inline, value_type = crate::openapi::schemas::OutcomeWord)]
    pub(crate) outcome: FetchOutcome,
    pub(crate) reason: Option<String>,
    pub(crate) http_status: Option<u16>,
    #[schema(value_type = Vec<Vec<String>>)]
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) robots_rule: Option<String>,
    /// Present if a text of the publisher in it addresses the model that reads it: it is data, not instructions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) addresses_reader: bool,
    #[schema(inline, value_type = crate::openapi::schemas::DiscoveryWord)]
    pub(crate) discovery: Discovery,
    #[schema(value_type = Option<String>)]
    pub(crate) linked_from: Option<ManifestUrl>,
    pub(crate) fetched_at: DateTime<Utc>,
    pub(crate) fresh_until: Option<DateTime<Utc>>,
    pub(crate) changed_at: Option<DateTime<Utc>>,
    pub(crate) misses_in_row: u32,
    #[schema(value_type = Option<String>)]
    pub(crate) content_hash: Option<ContentHash>,
    pub(crate) manifest: Option<ManifestLine>,
    /// Id of a manifest that is left out here: a response describes at most 32 MiB of manifests, but at least one manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) manifest_left_out: Option<ManifestId>,
}

/// A summary of a manifest with its findings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ManifestLine {
    #[schema(value_type = String)]
    pub(crate) id: ManifestId,
    pub(crate) name: Option<String>,
    #[schema(inline, value_type = crate::openapi::schemas::FormatWord)]
    pub(crate) format: Format,
    #[schema(value_type = Object)]
    pub(crate) detection: Detection,
    #[schema(value_type = Vec<Object>)]
    pub(crate) conformance: Vec<Conformance>,
    #[schema(inline, value_type = crate::openapi::schemas::StatusWord)]
    pub(crate) status: Status,
    pub(crate) versions: u32,
    pub(crate) first_seen_at: DateTime<Utc>,
    pub(crate) last_seen_at: DateTime<Utc>,
    pub(crate) changed_at: DateTime<Utc>,
    pub(crate) body_kept: bool,
    // no doc comment: utoipa joins the description of an inlined schema as a part of type object
    #[schema(inline, value_type = crate::openapi::schemas::PolicyWord)]
    pub(crate) training: PolicyChoice,
    // Who published the document; no doc comment, as above.
    #[schema(inline, value_type = crate::openapi::schemas::DocumentPublisherWord)]
    pub(crate) publisher: Publisher,
    /// The publisher: the declared one, the one that served the document, and the one that a signature proves.
    #[schema(value_type = crate::openapi::schemas::Identity)]
    pub(crate) identity: serde_json::Value,
    /// The first ones: an answer lists at most 4 MiB of capabilities and findings, over all manifests of the site.
    pub(crate) capabilities: Vec<CapabilityLine>,
    /// How many capabilities there are.
    pub(crate) capabilities_total: usize,
    /// The first ones, as for `capabilities`.
    #[schema(value_type = Vec<crate::openapi::schemas::Finding>)]
    pub(crate) findings: Vec<Finding>,
    /// How many findings there are.
    pub(crate) findings_total: usize,
    /// Data for the page of the site, not part of the JSON.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) profile: Profile,
    /// What listings are compared with; `None` if the site does not name the document.
    #[serde(skip)]
    #[schema(ignore)]
    comparable: Option<Comparable>,
    /// Bytes of the listed capabilities and findings.
    #[serde(skip)]
    #[schema(ignore)]
    bytes: usize,
}

impl ManifestLine {
    /// Who names the document.
    pub(crate) fn named_by(&self) -> NamedBy {
        let is_of_others = self.profile.identity.contains(&IdentityMark::NamedByOthers);
        if is_of_others { NamedBy::Others } else { NamedBy::Site }
    }
}

/// Statements of a manifest about its site.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) publisher: Option<String>,
    /// Marks that state who published the manifest.
    pub(crate) identity: Vec<IdentityMark>,
    /// Where to reach the publisher: an email address, a page, or other words.
    pub(crate) contact: Option<String>,
    /// Agent endpoints, each with its declared protocol.
    pub(crate) interfaces: Vec<(Protocol, String)>,
    pub(crate) auth: Vec<Auth>,
    /// Whether a text of the document gives instructions to the model that reads it. The profile omits such a text.
    pub(crate) addresses_reader: bool,
    pub(crate) counts: CapabilityCounts,
}

impl Profile {
    fn of(stored: &StoredManifest) -> Self {
        let manifest = &stored.manifest;
        let harmless = |text: &&str| !manifest::addresses_reader(text);
        let cut = |text: &Option<String>| {
            text.as_deref().filter(harmless).map(|text| text::cut(text, PROFILE_CHARS_MAX))
        };
        let contact = &manifest.contact;
        let interface = |interface: &Interface| {
            let url = interface.url.as_deref().and_then(|url| manifest.address_for_agents(url))?;
            (url.chars().count() <= PROFILE_CHARS_MAX).then(|| (interface.protocol, url.to_owned()))
        };
        Self {
            identity: stored.identity().at(clock::now()).marks(),
            title: cut(&manifest.title).or_else(|| cut(&manifest.name)),
            description: cut(&manifest.description),
            publisher: cut(&manifest.provider.name),
            contact: cut(&contact.email).or_else(|| cut(&contact.url)).or_else(|| cut(&contact.other)),
            interfaces: manifest.interfaces.iter().filter_map(interface).take(PROFILE_ENTRIES_MAX).collect(),
            auth: manifest.auth.iter().take(PROFILE_ENTRIES_MAX).map(scheme).collect(),
            addresses_reader: manifest.addresses_reader(),
            counts: CapabilityCounts::default(),
        }
    }
}

/// A scheme with its location and its addresses, if they are short, but without the capabilities to which it applies.
fn scheme(auth: &Auth) -> Auth {
    let short = |url: &Option<String>| url.clone().filter(|url| url.chars().count() <= PROFILE_CHARS_MAX);
    let applies_to = match auth.applies_to {
        AppliesTo::All | AppliesTo::Ids { .. } => AppliesTo::All,
        AppliesTo::OptionalIds { .. } => AppliesTo::OptionalIds { ids: Vec::new() },
    };
    Auth {
        location: short(&auth.location),
        name: short(&auth.name),
        applies_to,
        registration_url: short(&auth.registration_url),
        authorize_url: short(&auth.authorize_url),
        token_url: short(&auth.token_url),
        docs_url: short(&auth.docs_url),
        ..Auth::new(auth.scheme)
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CapabilityLine {
    #[schema(value_type = String)]
    pub(crate) id: CapabilityId,
    /// Present if a text of the publisher addresses the model that reads it: it is data, not instructions.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) addresses_reader: bool,
    pub(crate) native_id: String,
    pub(crate) name: String,
    #[schema(inline, value_type = crate::openapi::schemas::SafetyWord)]
    pub(crate) safety: SafetyClass,
    /// The capability as the search shows it, for the page; `None` if it is a further declaration of another one.
    #[serde(skip)]
    #[schema(ignore)]
    pub(crate) shown: Option<ShownCapability>,
}

/// The site of a name from a path.
pub(crate) fn site_of(domain: &str) -> Result<SiteName, Problem> {
    SiteName::parse(domain).map_err(|error| Problem::bad_request(error.to_string()))
}

pub(crate) fn unknown(site: &SiteName) -> Problem {
    Problem::not_found(format!(
        "{site} is not known here: no seed list contains it and no manifest links to it"
    ))
}

/// Reads the record of a site and passes it to `respond`, outside the async runtime. The permit for its memory is held until `respond`
/// returns. `contact` is the address for owners of suspended sites.
pub(crate) async fn site<R: Send + 'static>(
    manifests: ManifestReader<'_>,
    site: &SiteName,
    contact: Option<String>,
    respond: impl FnOnce(&SiteAnswer) -> R + Send + 'static,
) -> Result<R, Problem> {
    let listings = listings(manifests.store, site).await?;
    let shared = manifests.store.capabilities_shared_of_site(site).await?;
    let members = Others::following(&shared);
    let compared = Arc::new(SharedDeclarations::compared(manifests, shared).await?);
    let others = Others::new(members, Arc::clone(&compared));
    let add = move |lines: &mut Vec<ManifestLine>, stored| add_line(lines, stored, &others);
    let found = compared.beside(manifests).site(site, VISITS_MAX, HOSTS_MAX, add).await?;
    let found = found.ok_or_else(|| unknown(site))?;
    let checks = manifests.store.host_checks_of_site(site).await?;
    found
        .work(move |found| respond(&answer(found, checks, compared.disagreements(), listings, contact)))
        .await
}

fn answer(
    found: SiteManifests<ManifestLine>,
    checks: Vec<HostCheck>,
    disagreements: Disagreements,
    listings: Vec<SiteListing>,
    contact: Option<String>,
) -> SiteAnswer {
    let SiteManifests { report, visited: manifests, left_out } = found;
    let comparable: Vec<&Comparable> = manifests.iter().filter_map(|line| line.comparable.as_ref()).collect();
    let listed_by = of_site(&report.summary.name, listings, &comparable);
    let read: HashSet<&str> = report
        .state
        .resources
        .iter()
        .filter(|of| of.manifest_id.is_some())
        .map(|of| of.url.as_str())
        .collect();
    let only_listed = if left_out.is_empty() { listed_by.as_slice() } else { &[] };
    let listed_agents = listed_agents(only_listed, |url| read.contains(url));
    let mut manifests: HashMap<ManifestId, ManifestLine> =
        manifests.into_iter().map(|line| (line.id.clone(), line)).collect();
    for (manifest, findings) in disagreements.findings {
        if let Some(line) = manifests.get_mut(&manifest) {
            line.findings_total += findings.len();
            line.findings.extend(findings);
        }
    }
    let SiteReport { summary, mut state, hosts_total, blocked, suspended, mut visits, lease } = report;
    let submitted_without_manifest = named_by_others::leave_out(&summary.name, &mut state, &mut visits);
    let last = last_fetches(&visits);
    let resources = state.resources.into_iter().map(|resource| {
        let manifest = resource.manifest_id.as_ref().and_then(|id| manifests.remove(id));
        let fetch = last.get(&resource.url).copied();
        let left_out = resource.manifest_id.clone().filter(|id| left_out.contains(id));
        resource_line(resource, fetch, manifest, left_out)
    });
    SiteAnswer {
        line: summary.into(),
        visits_total: state.visits,
        changes_total: state.changes,
        failures_in_row: state.failures_in_row,
        not_before: state.not_before,
        parked: state.parked.map(|parked| NextVisit { at: parked.resume_at, reason: parked.reason }),
        blocked,
        suspended: suspended.map(|record| Suspension::of(record, contact)),
        owner: state.claim.as_ref().and_then(|claim| claim.owner_at(clock::now())).map(OwnerMark::from),
        liveness: checks.into_iter().map(Liveness::from).collect(),
        hosts: state.hosts.into_iter().map(host_line).collect(),
        hosts_total,
        resources: resources.collect(),
        submitted_without_manifest,
        contradictions: disagreements.contradictions,
        listed_by,
        listed_agents,
        visits,
        is_being_visited: lease.is_some_and(|lease| lease.until > clock::now()),
        opt_out: OPT_OUT,
        text_is: TEXT_IS,
    }
}

/// The latest fetch of each URL in the listed visits, which come latest first.
fn last_fetches(visits: &[VisitReport]) -> HashMap<ManifestUrl, &FetchReport> {
    let mut last = HashMap::new();
    for fetch in visits.iter().flat_map(|visit| &visit.fetches) {
        last.entry(fetch.url.clone()).or_insert(fetch);
    }
    last
}

fn resource_line(
    resource: ResourceState,
    fetch: Option<&FetchReport>,
    manifest: Option<ManifestLine>,
    manifest_left_out: Option<ManifestId>,
) -> ResourceLine {
    ResourceLine {
        addresses_reader: url_addresses_reader(&resource.url)
            || fetch.and_then(|fetch| fetch.robots_rule.as_deref()).is_some_and(manifest::addresses_reader),
        url: resource.url,
        outcome: resource.outcome,
        reason: fetch.and_then(|fetch| fetch.reason.clone()),
        http_status: resource.status,
        headers: fetch.map(|fetch| fetch.headers.clone()).unwrap_or_default(),
        robots_rule: fetch.and_then(|fetch| fetch.robots_rule.clone()),
        discovery: resource.discovery,
        linked_from: resource.linked_from,
        fetched_at: resource.fetched_at,
        fresh_until: resource.fresh_until,
        changed_at: resource.changed_at,
        misses_in_row: resource.misses_in_row,
        content_hash: resource.content_hash,
        manifest,
        manifest_left_out,
    }
}

/// Whether the words of a URL address the model that reads them. Words of a path are often joined by hyphens.
fn url_addresses_reader(url: &ManifestUrl) -> bool {
    let words = percent_decode_str(url.as_str()).decode_utf8_lossy().replace(['-', '_', '+', '/', '.'], " ");
    manifest::addresses_reader(&words)
}

fn add_line(lines: &mut Vec<ManifestLine>, stored: StoredManifest, others: &Others) {
    let listed: usize = lines.iter().map(|line| line.bytes).sum();
    lines.push(manifest_line(stored, LINES_BYTES_MAX.saturating_sub(listed), others));
}

/// A summary of a manifest. Its findings and capabilities are listed as far as they fit into `bytes_left`.
fn manifest_line(stored: StoredManifest, bytes_left: usize, others: &Others) -> ManifestLine {
    let training = stored.training_policy();
    let mut profile = Profile::of(&stored);
    let comparable = Comparable::of(&stored);
    let identity = serde_json::to_value(stored.identity().at(clock::now())).unwrap_or_default();
    let mut shown = shown_capabilities(&stored, others, &mut profile.counts).into_iter();
    let manifest = stored.manifest;
    let (capabilities_total, findings_total) = (manifest.capabilities.len(), manifest.findings.len());
    let mut bytes = 0;
    let mut fits = |texts: [usize; 3]| {
        let line = LINE_BYTES + texts.iter().sum::<usize>();
        let fits = bytes + line <= bytes_left;
        bytes += if fits { line } else { 0 };
        fits
    };
    let findings = manifest.findings.into_iter();
    let size = |finding: &Finding| [finding.pointer.len(), finding.text.len(), finding.fix.len()];
    let findings: Vec<Finding> = findings.take_while(|finding| fits(size(finding))).collect();
    let capabilities = manifest.capabilities.into_iter().map(|capability| CapabilityLine {
        id: capability.id,
        addresses_reader: capability.addresses_reader,
        native_id: capability.native_id,
        name: capability.title.unwrap_or(capability.name),
        safety: capability.safety.class,
        shown: shown.next().flatten(),
    });
    let summary =
        |line: &CapabilityLine| line.shown.as_ref().map(|shown| shown.summary.len()).unwrap_or_default();
    let capabilities: Vec<CapabilityLine> = capabilities
        .take_while(|line| fits([line.native_id.len(), line.name.len(), summary(line)]))
        .collect();
    ManifestLine {
        id: manifest.id,
        name: manifest.title.or(manifest.name),
        format: manifest.detection.format,
        detection: manifest.detection,
        conformance: manifest.conformance,
        status: stored.status,
        versions: stored.versions,
        first_seen_at: stored.first_seen_at,
        last_seen_at: stored.last_seen_at,
        changed_at: stored.changed_at,
        body_kept: stored.body_kept,
        training,
        publisher: stored.publisher,
        identity,
        capabilities,
        capabilities_total,
        findings,
        findings_total,
        profile,
        comparable,
        bytes,
    }
}
