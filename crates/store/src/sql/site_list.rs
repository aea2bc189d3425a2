//! Sites as they are listed and told.

use manifest::{Format, SiteName};
use sqlx::QueryBuilder;

use super::{Connection, Database, block, site, visit_story};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::{SiteStory, SiteSummary, SitesRequest};
use crate::pack::{Page, Place, UNPLANNED_MS, counted, names, sized, text};
use crate::rest::{self as at_rest, SiteAtRest};

#[derive(sqlx::FromRow)]
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

impl TryFrom<SummaryRow> for SiteSummary {
    type Error = StoreError;

    fn try_from(row: SummaryRow) -> Result<Self, StoreError> {
        let place = Place::new("site_state", &row.name);
        let formats = row.formats.split(',').filter(|slug| !slug.is_empty());
        let next_visit_at_ms = Some(row.next_visit_at_ms).filter(|at_ms| *at_ms < UNPLANNED_MS);
        Ok(Self {
            name: place.parse("name", &row.name)?,
            status: place.parse("status", &row.status)?,
            manifests: counted(row.manifests),
            capabilities: counted(row.capabilities),
            formats: formats.map(|slug| place.parse::<Format>("formats", slug)).collect::<Result<_, _>>()?,
            last_visit_at: place.time_of("last_visit_at_ms", row.last_visit_at_ms)?,
            next_visit_at: next_visit_at_ms
                .map(|at_ms| Place::new("site", &row.name).nearest_time("next_visit_at_ms", at_ms)),
            next_visit_reason: row.next_visit_reason,
            last_end: place.parse_of("last_end", row.last_end.as_ref())?,
            first_seen_at: place.time("first_seen_at_ms", row.first_seen_at_ms)?,
        })
    }
}

/// Columns of a summary. A site that has no row in the queue is not planned, and stays on its page.
macro_rules! summaries {
    () => {
        "SELECT state.name, status, manifests, capabilities, formats, last_visit_at_ms,
                COALESCE(next_visit_at_ms, 8000000000000000) AS next_visit_at_ms,
                next_visit_reason, last_end, first_seen_at_ms FROM "
    };
}

/// What a list asks of names. Only conditions that are asked for are written: among those that may be null the database
/// finds no index.
fn names_push(query: &mut QueryBuilder<Database>, request: &SitesRequest) {
    if let Some(prefix) = request.prefix.as_deref().map(text) {
        // Names are ASCII, so everything that begins with the prefix lies below this.
        let end = format!("{prefix}\u{7f}");
        query.push(" AND name >= ").push_bind(prefix.into_owned()).push(" AND name < ").push_bind(end);
    }
}

/// What a page asks beyond its list: sites behind a name, where there is one.
fn page_push(query: &mut QueryBuilder<Database>, after: Option<&String>, max: i64) {
    if let Some(after) = after {
        query.push(" AND name > ").push_bind(after.clone());
    }
    query.push(" ORDER BY name LIMIT ").push_bind(max);
}

/// The name after which a list begins.
fn begin(request: &SitesRequest) -> Option<String> {
    request.after.as_ref().map(|after| after.as_str().to_owned())
}

/// What a list asks of sites with rows of their own.
fn awake_push(query: &mut QueryBuilder<Database>, request: &SitesRequest) {
    if let Some(status) = request.status {
        query.push(" AND status = ").push_bind(status.as_str());
    }
    match request.with_manifests {
        Some(true) => query.push(" AND manifests > 0"),
        Some(false) => query.push(" AND manifests = 0"),
        None => query,
    };
    names_push(query, request);
}

/// A page of sites in the order of their names.
pub(crate) async fn sites_page(
    connection: &mut Connection,
    request: &SitesRequest,
) -> Outcome<Vec<SiteSummary>> {
    let (mut page, mut after) = (Page::new(i64::from(request.max)), begin(request));
    while let Some(wanted) = page.wanted() {
        let mut query = QueryBuilder::new(concat!(summaries!(), "(SELECT * FROM site_state WHERE true"));
        awake_push(&mut query, request);
        page_push(&mut query, after.as_ref(), wanted);
        query.push(") AS state LEFT JOIN site ON site.name = state.name ORDER BY state.name");
        let rows: Vec<SummaryRow> = query.build_query_as().fetch_all(&mut *connection).await?;
        after = rows.last().map(|row| row.name.clone()).or(after);
        page.add(rows, SiteSummary::try_from);
    }
    let mut sites = page.values;
    at_rest_add(connection, request, &mut sites).await?;
    Ok(sites)
}

/// How many sites there are on all pages. They are counted one by one, so this takes longer the more there are.
pub(crate) async fn sites_count(connection: &mut Connection, request: &SitesRequest) -> Outcome<u64> {
    let mut query = QueryBuilder::new("SELECT COUNT(*) FROM site_state WHERE true");
    awake_push(&mut query, request);
    let awake: i64 = query.build_query_scalar().fetch_one(&mut *connection).await?;
    let mut query = QueryBuilder::new("SELECT COUNT(*) FROM site WHERE packed IS NOT NULL");
    if !at_rest_push(&mut query, request) {
        return Ok(sized(awake));
    }
    let resting: i64 = query.build_query_scalar().fetch_one(&mut *connection).await?;
    Ok(sized(awake) + sized(resting))
}

/// What a list asks of sites at rest; false where none of them can be on it.
fn at_rest_push(query: &mut QueryBuilder<Database>, request: &SitesRequest) -> bool {
    if request.with_manifests == Some(true) {
        return false;
    }
    if let Some(status) = request.status {
        // A status that has no code is none that a site at rest can have.
        let Some(code) = at_rest::status_code(status.as_str()) else { return false };
        query.push(" AND substr(packed, 2, 1) = ").push_bind(vec![code]);
    }
    names_push(query, request);
    true
}

/// Puts the sites at rest of a page among the others.
async fn at_rest_add(
    connection: &mut Connection,
    request: &SitesRequest,
    sites: &mut Vec<SiteSummary>,
) -> Outcome<()> {
    let (mut page, mut after) = (Page::new(i64::from(request.max)), begin(request));
    while let Some(wanted) = page.wanted() {
        let mut query =
            QueryBuilder::new("SELECT name, next_visit_at_ms, packed FROM site WHERE packed IS NOT NULL");
        if !at_rest_push(&mut query, request) {
            return Ok(());
        }
        page_push(&mut query, after.as_ref(), wanted);
        let rows: Vec<(String, i64, Vec<u8>)> = query.build_query_as().fetch_all(&mut *connection).await?;
        after = rows.last().map(|(name, ..)| name.clone()).or(after);
        page.add(rows, |(name, next_visit_at_ms, packed)| summary_at_rest(name, next_visit_at_ms, &packed));
    }
    sites.append(&mut page.values);
    sites.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    sites.truncate(usize::try_from(request.max).unwrap_or(usize::MAX));
    Ok(())
}

fn summary_at_rest(name: String, next_visit_at_ms: i64, packed: &[u8]) -> Result<SiteSummary, StoreError> {
    let site = SiteAtRest::unpack(&name, packed)?;
    SummaryRow {
        name,
        status: site.status,
        manifests: 0,
        capabilities: 0,
        formats: String::new(),
        last_visit_at_ms: site.last_visit_at_ms,
        next_visit_at_ms,
        next_visit_reason: site.next_visit_reason,
        last_end: site.last_end,
        first_seen_at_ms: site.first_seen_at_ms,
    }
    .try_into()
}

/// A site in one line.
pub(crate) async fn site_summary(
    connection: &mut Connection,
    name: &SiteName,
) -> Outcome<Option<SiteSummary>> {
    let row: Option<SummaryRow> = sqlx::query_as(concat!(
        summaries!(),
        "site_state AS state LEFT JOIN site ON site.name = state.name WHERE state.name = $1"
    ))
    .bind(name.as_str())
    .fetch_optional(&mut *connection)
    .await?;
    if let Some(row) = row {
        return Ok(Some(row.try_into()?));
    }
    let resting: Option<(i64, Vec<u8>)> =
        sqlx::query_as("SELECT next_visit_at_ms, packed FROM site WHERE name = $1 AND packed IS NOT NULL")
            .bind(name.as_str())
            .fetch_optional(&mut *connection)
            .await?;
    let at_rest = |(next_visit_at_ms, packed): (i64, Vec<u8>)| {
        summary_at_rest(name.as_str().to_owned(), next_visit_at_ms, &packed)
    };
    Ok(resting.map(at_rest).transpose()?)
}

/// Everything that a site's owner may want to know, with at most so many hosts.
pub(crate) async fn site_story(
    connection: &mut Connection,
    name: &SiteName,
    visits_max: u32,
    hosts_max: Option<u32>,
) -> Outcome<Option<SiteStory>> {
    let Some(summary) = site_summary(connection, name).await? else { return Ok(None) };
    let mut state =
        site::states_load(connection, &names([name.as_str()])?, hosts_max).await?.take(name.as_str())?;
    let (hosts_total, not_before_ms) = site::hosts_count(connection, name.as_str()).await?;
    let not_before = Place::new("host", name.as_str()).time_of("not_before_ms", not_before_ms)?;
    state.not_before = state.not_before.max(not_before);
    let hosts_total = sized(hosts_total).max(state.hosts.len() as u64);
    if let Some(max) = hosts_max.and_then(|max| usize::try_from(max).ok()) {
        // those of a site at rest are in its one row
        state.hosts.truncate(max);
    }
    Ok(Some(SiteStory {
        summary,
        state,
        hosts_total,
        blocked: block::block_find(connection, name.as_str()).await?,
        visits: visit_story::visits_of_site(connection, name.as_str(), i64::from(visits_max)).await?,
    }))
}
