//! Sites in lists, and the report of one site.

use std::sync::LazyLock;

use manifest::{Format, Host, SiteName, is_main_host};
use policy::RobotsKind;
use sqlx::QueryBuilder;

use super::compaction::{SiteRow, compacted_columns};
use super::rows::{Cursor, decode, decode_row};
use super::state::{RobotsBodies, hosts_count, robots_starts};
use super::{Connection, Database, block, site, suspension, visit_report};
use crate::StoreError;
use crate::compaction::CompactedSite;
use crate::convert::{Page, RowRef, UNPLANNED_MS, names, text, to_u32, to_u64};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::seed::PRIORITY_SUBMITTED;
use crate::model::{
    HostOrigin, HostState, SiteLease, SiteReport, SiteState, SiteSummary, SitesRequest, WorkerId,
};

/// Maximum number of robots.txt files in a brief report, and maximum bytes of each.
const ROBOTS_STARTS_MAX: usize = 4;
const ROBOTS_START_BYTES: u64 = 16 * 1024;

struct SummaryRow {
    name: String,
    status: String,
    manifests: i32,
    capabilities: i32,
    formats: String,
    last_visit_at_ms: Option<i64>,
    next_visit_at_ms: i64,
    next_visit_reason: Option<String>,
    last_end: Option<String>,
    first_seen_at_ms: i64,
}

from_row!(SummaryRow {
    name,
    status,
    manifests,
    capabilities,
    formats,
    last_visit_at_ms,
    next_visit_at_ms,
    next_visit_reason,
    last_end,
    first_seen_at_ms
});

impl SummaryRow {
    fn of_compacted(CompactedSite { state, .. }: CompactedSite, next_visit_at_ms: i64) -> Self {
        Self {
            name: state.name,
            status: state.status,
            manifests: state.manifests,
            capabilities: state.capabilities,
            formats: state.formats,
            last_visit_at_ms: state.last_visit_at_ms,
            next_visit_at_ms,
            next_visit_reason: state.next_visit_reason,
            last_end: state.last_end,
            first_seen_at_ms: state.first_seen_at_ms,
        }
    }
}

impl TryFrom<SummaryRow> for SiteSummary {
    type Error = StoreError;

    fn try_from(row: SummaryRow) -> Result<Self, StoreError> {
        let at = RowRef::new("site_state", &row.name);
        let formats = row.formats.split(',').filter(|slug| !slug.is_empty());
        let next_visit_at_ms = Some(row.next_visit_at_ms).filter(|at_ms| *at_ms < UNPLANNED_MS);
        Ok(Self {
            name: at.parse("name", &row.name)?,
            status: at.parse("status", &row.status)?,
            manifests: to_u32(row.manifests),
            capabilities: to_u32(row.capabilities),
            formats: formats.map(|slug| at.parse::<Format>("formats", slug)).collect::<Result<_, _>>()?,
            last_visit_at: at.time_of("last_visit_at_ms", row.last_visit_at_ms)?,
            next_visit_at: next_visit_at_ms
                .map(|at_ms| RowRef::new("site", &row.name).nearest_time("next_visit_at_ms", at_ms)),
            next_visit_reason: row.next_visit_reason,
            last_end: at.parse_of("last_end", row.last_end.as_ref())?,
            first_seen_at: at.time("first_seen_at_ms", row.first_seen_at_ms)?,
        })
    }
}

/// Selects summaries. A site without a row in `site` is still listed, as unplanned ([`UNPLANNED_MS`]).
macro_rules! select_summaries {
    ($from:literal) => {
        concat!(
            "SELECT state.name, status, manifests, capabilities, formats, last_visit_at_ms,
                    COALESCE(next_visit_at_ms, 8000000000000000) AS next_visit_at_ms,
                    next_visit_reason, last_end, first_seen_at_ms FROM ",
            $from
        )
    };
}

/// Columns by which a list is filtered.
struct FilterColumns {
    status: &'static str,
    /// `None` if every row is without manifests, and so without their formats.
    manifests: Option<&'static str>,
}

/// Values of the column `formats` of sites whose documents were fetched and of which none can be read: sorted slugs of formats without an
/// index, with one of documents that cannot be read.
static UNREADABLE: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut slugs: Vec<&str> =
        Format::ALL.iter().filter(|format| !format.is_indexable()).map(|format| format.as_str()).collect();
    slugs.sort_unstable();
    let subsets = (1_u32..1 << slugs.len()).map(|chosen| {
        let is_chosen = |at: usize| chosen & (1 << at) != 0;
        slugs.iter().enumerate().filter(|(at, _)| is_chosen(*at)).map(|(_, slug)| *slug).collect::<Vec<_>>()
    });
    let marks = [Format::Malformed.as_str(), Format::Opaque.as_str()];
    let unreadable = subsets.filter(|subset| subset.iter().any(|slug| marks.contains(slug)));
    unreadable.map(|subset| subset.join(",")).collect()
});

const EXPANDED: FilterColumns = FilterColumns { status: "status", manifests: Some("manifests") };
const COMPACTED: FilterColumns = FilterColumns { status: "compacted_status", manifests: None };

/// Pushes only the conditions that are set, because the planner finds no index for conditions on nullable parameters. False if no row can
/// match.
fn push_filter(query: &mut QueryBuilder<Database>, request: &SitesRequest, columns: &FilterColumns) -> bool {
    if let Some(status) = request.status {
        query.push(" AND ").push(columns.status).push(" = ").push_bind(status.as_str());
    }
    match (request.with_manifests, columns.manifests) {
        (Some(true), None) => return false,
        (Some(with), Some(column)) => {
            query.push(" AND ").push(column).push(if with { " > 0" } else { " = 0" });
        }
        (Some(false) | None, _) => {}
    }
    if let Some(prefix) = request.prefix.as_deref().map(text) {
        // Names are ASCII, so every name with the prefix is less than this.
        let end = format!("{prefix}\u{7f}");
        query.push(" AND name >= ").push_bind(prefix.into_owned()).push(" AND name < ").push_bind(end);
    }
    if let Some(part) = request.contains.as_deref().map(text) {
        let escaped = part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        query.push(" AND name LIKE ").push_bind(format!("%{escaped}%")).push(" ESCAPE '\\'");
    }
    match (request.readable, columns.manifests) {
        (Some(false), None) => return false,
        (Some(readable), Some(_)) => {
            query.push(if readable { " AND formats NOT IN (" } else { " AND formats IN (" });
            let mut values = query.separated(", ");
            for formats in UNREADABLE.iter() {
                values.push_bind(formats.as_str());
            }
            values.push_unseparated(")");
        }
        (Some(true) | None, _) => {}
    }
    true
}

fn push_page(query: &mut QueryBuilder<Database>, after: &Cursor<String>, max: i64) {
    if !after.key.is_empty() {
        query.push(" AND name > ").push_bind(after.key.clone());
    }
    query.push(" ORDER BY name LIMIT ").push_bind(max);
    if after.skipped > 0 {
        query.push(" OFFSET ").push_bind(after.skipped);
    }
}

/// The name after which the page begins; empty for the first page.
fn page_begin(request: &SitesRequest) -> Cursor<String> {
    Cursor::after(request.after.as_ref().map(|after| after.as_str().to_owned()).unwrap_or_default())
}

/// A page of sites sorted by name.
pub(crate) async fn sites_page(
    connection: &mut Connection,
    request: &SitesRequest,
) -> Outcome<Vec<SiteSummary>> {
    let mut sites = expanded_page(connection, request).await?;
    sites.extend(compacted_page(connection, request).await?);
    sites.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    sites.truncate(usize::try_from(request.max).unwrap_or(usize::MAX));
    Ok(sites)
}

async fn expanded_page(connection: &mut Connection, request: &SitesRequest) -> Outcome<Vec<SiteSummary>> {
    let (mut page, mut after) = (Page::new(i64::from(request.max)), page_begin(request));
    while let Some(wanted) = page.wanted() {
        let mut query = QueryBuilder::new(select_summaries!("(SELECT * FROM site_state WHERE true"));
        push_filter(&mut query, request, &EXPANDED);
        push_page(&mut query, &after, wanted);
        query.push(") AS state LEFT JOIN site ON site.name = state.name ORDER BY state.name");
        let rows = query.build().fetch_all(&mut *connection).await?;
        after.pass(&rows);
        page.add(decode::<SummaryRow>(&["site_state", "site"], &rows), SiteSummary::try_from);
    }
    Ok(page.values)
}

async fn compacted_page(connection: &mut Connection, request: &SitesRequest) -> Outcome<Vec<SiteSummary>> {
    let (mut page, mut after) = (Page::new(i64::from(request.max)), page_begin(request));
    while let Some(wanted) = page.wanted() {
        let mut query = QueryBuilder::new(concat!(
            "SELECT name, fence, next_visit_at_ms, ",
            compacted_columns!(),
            " FROM site WHERE packed IS NOT NULL"
        ));
        if !push_filter(&mut query, request, &COMPACTED) {
            break;
        }
        push_page(&mut query, &after, wanted);
        let rows = query.build().fetch_all(&mut *connection).await?;
        after.pass(&rows);
        page.add(decode(&["site"], &rows), summary_of_compacted);
    }
    Ok(page.values.into_iter().flatten().collect())
}

/// `None` if the site is not compacted.
fn summary_of_compacted(row: SiteRow) -> Result<Option<SiteSummary>, StoreError> {
    let next_visit_at_ms = row.next_visit_at_ms;
    let summary = |site| SiteSummary::try_from(SummaryRow::of_compacted(site, next_visit_at_ms));
    row.decode()?.map(summary).transpose()
}

/// Number of sites on all pages. Reads whole tables.
pub(crate) async fn sites_count(connection: &mut Connection, request: &SitesRequest) -> Outcome<u64> {
    let mut sites = 0;
    for (statement, columns) in [
        ("SELECT COUNT(*) FROM site_state WHERE true", EXPANDED),
        ("SELECT COUNT(*) FROM site WHERE compacted_status IS NOT NULL", COMPACTED),
    ] {
        let mut query = QueryBuilder::new(statement);
        if push_filter(&mut query, request, &columns) {
            let count: i64 = query.build_query_scalar().fetch_one(&mut *connection).await?;
            sites += to_u64(count);
        }
    }
    Ok(sites)
}

/// The summary of a site.
pub(crate) async fn site_summary(
    connection: &mut Connection,
    name: &SiteName,
) -> Outcome<Option<SiteSummary>> {
    let expanded: Option<SummaryRow> = sqlx::query_as(select_summaries!(
        "site_state AS state LEFT JOIN site ON site.name = state.name WHERE state.name = $1"
    ))
    .bind(name.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    match expanded {
        Some(row) => Ok(Some(row.try_into()?)),
        None => compacted_summary(connection, name).await,
    }
}

/// Everything that is known about a site, with up to `hosts_max` hosts.
pub(crate) async fn site_report(
    connection: &mut Connection,
    name: &SiteName,
    visits_max: u32,
    hosts_max: Option<u32>,
) -> Outcome<Option<SiteReport>> {
    let Some(summary) = site_summary(connection, name).await? else { return Ok(None) };
    let listed = names([name.as_str()])?;
    let mut state =
        site::states_load(connection, &listed, RobotsBodies::None, hosts_max).await?.take(name.as_str())?;
    let (is_submitted, lease) = queue_state(connection, name).await?;
    state.is_submitted = is_submitted;
    let (hosts_total, not_before_ms) = hosts_count(connection, name.as_str()).await?;
    let not_before = RowRef::new("host", name.as_str()).time_of("not_before_ms", not_before_ms)?;
    state.not_before = state.not_before.max(not_before);
    let hosts_total = to_u64(hosts_total).max(state.hosts.len() as u64);
    if let Some(max) = hosts_max.and_then(|max| usize::try_from(max).ok()) {
        // The hosts of a compacted site are not limited by the query.
        if state.hosts.len() > max {
            let is_named_by_others =
                |of: &HostState| !is_main_host(name, &of.host) && of.origin < HostOrigin::Collected;
            state.hosts.sort_by_key(is_named_by_others);
            state.hosts.truncate(max);
        }
        robots_starts_add(connection, &mut state).await?;
    }
    Ok(Some(SiteReport {
        summary,
        state,
        hosts_total,
        blocked: block::block_find(connection, name.as_str()).await?,
        suspended: suspension::suspension_find(connection, name.as_str()).await?,
        visits: visit_report::visits_of_site(connection, name.as_str(), i64::from(visits_max)).await?,
        lease,
    }))
}

/// Whether a site was submitted, and the lease on it.
async fn queue_state(connection: &mut Connection, name: &SiteName) -> Outcome<(bool, Option<SiteLease>)> {
    let query = sqlx::query("SELECT priority, lease_owner, lease_until_ms FROM site WHERE name = $1");
    let row = query.bind(name.as_str()).fetch_optional(&mut *connection).await?;
    let Some(row) = row else { return Ok((false, None)) };
    let (priority, worker, until_ms): (i32, Option<String>, i64) = decode_row(&["site"], &row)?;
    let at = RowRef::new("site", name.as_str());
    let lease = worker.map(|worker| {
        Ok::<_, StoreError>(SiteLease {
            worker: WorkerId::new(&worker),
            until: at.time("lease_until_ms", until_ms)?,
        })
    });
    Ok((priority == PRIORITY_SUBMITTED, lease.transpose()?))
}

/// Adds the beginnings of a few robots.txt files, main hosts first.
async fn robots_starts_add(connection: &mut Connection, state: &mut SiteState) -> Outcome<()> {
    let with_rules = state
        .hosts
        .iter()
        .filter(|host| host.robots.as_ref().is_some_and(|robots| robots.kind == RobotsKind::Rules));
    let mut hosts: Vec<&Host> = with_rules.map(|host| &host.host).collect();
    hosts.sort_by_key(|host| !is_main_host(&state.name, host));
    hosts.truncate(ROBOTS_STARTS_MAX);
    if hosts.is_empty() {
        return Ok(());
    }
    let mut starts =
        robots_starts(connection, &names(hosts.into_iter().map(Host::as_str))?, ROBOTS_START_BYTES).await?;
    for host in &mut state.hosts {
        if let Some(robots) = &mut host.robots {
            robots.body = starts.remove(host.host.as_str()).map(Into::into);
        }
    }
    Ok(())
}

async fn compacted_summary(connection: &mut Connection, name: &SiteName) -> Outcome<Option<SiteSummary>> {
    let row: Option<SiteRow> = sqlx::query_as(concat!(
        "SELECT name, fence, next_visit_at_ms, ",
        compacted_columns!(),
        " FROM site WHERE name = $1"
    ))
    .bind(name.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    Ok(row.map(summary_of_compacted).transpose()?.flatten())
}
