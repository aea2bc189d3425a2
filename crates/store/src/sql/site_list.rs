//! Sites as they are listed and told.

use manifest::{Format, SiteName};

use super::{Connection, block, site, visit};
use crate::StoreError;
use crate::fault::Outcome;
use crate::model::{SiteStory, SiteSummary, SitesPage, SitesRequest};
use crate::pack::{NEVER_MS, Place, counted, names, sized, text};
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
        let next_visit_at_ms = Some(row.next_visit_at_ms).filter(|at_ms| *at_ms < NEVER_MS);
        Ok(Self {
            name: place.parse("name", &row.name)?,
            status: place.parse("status", &row.status)?,
            manifests: counted(row.manifests),
            capabilities: counted(row.capabilities),
            formats: formats.map(|slug| place.parse::<Format>("formats", slug)).collect::<Result<_, _>>()?,
            last_visit_at: place.time_of("last_visit_at_ms", row.last_visit_at_ms)?,
            next_visit_at: place.time_of("next_visit_at_ms", next_visit_at_ms)?,
            next_visit_reason: row.next_visit_reason,
            last_end: place.parse_of("last_end", row.last_end.as_ref())?,
            first_seen_at: place.time("first_seen_at_ms", row.first_seen_at_ms)?,
        })
    }
}

/// Columns of a summary, and the conditions of a list on its own columns. `$2` is 1 for sites with manifests, 0 for
/// those without, null for all; `$3` and `$4` bound the names.
macro_rules! summaries {
    () => {
        "SELECT site.name, status, manifests, capabilities, formats, last_visit_at_ms, next_visit_at_ms,
                next_visit_reason, last_end, first_seen_at_ms
         FROM site_state JOIN site ON site.name = site_state.name "
    };
}
macro_rules! listed {
    () => {
        "($1 IS NULL OR status = $1)
         AND ($2 IS NULL OR ($2 = 1 AND manifests > 0) OR ($2 = 0 AND manifests = 0))
         AND ($3 IS NULL OR (site_state.name >= $3 AND site_state.name < $4)) "
    };
}

/// A page of sites in the order of their names, and how many there are on all pages.
pub(crate) async fn sites_page(connection: &mut Connection, request: &SitesRequest) -> Outcome<SitesPage> {
    let status = request.status.map(policy::Status::as_str);
    let with_manifests = request.with_manifests.map(i32::from);
    let prefix = request.prefix.as_deref().map(text);
    let prefix = prefix.as_deref();
    // Names are ASCII, so everything that begins with the prefix lies below this.
    let prefix_end = prefix.map(|prefix| format!("{prefix}\u{7f}"));
    let rows: Vec<SummaryRow> = sqlx::query_as(concat!(
        summaries!(),
        "WHERE ",
        listed!(),
        "AND ($5 IS NULL OR site_state.name > $5) ORDER BY site_state.name LIMIT $6"
    ))
    .bind(status)
    .bind(with_manifests)
    .bind(prefix)
    .bind(prefix_end.as_deref())
    .bind(request.after.as_ref().map(SiteName::as_str))
    .bind(i64::from(request.max))
    .fetch_all(&mut *connection)
    .await?;
    let total: i64 = sqlx::query_scalar(concat!("SELECT COUNT(*) FROM site_state WHERE ", listed!()))
        .bind(status)
        .bind(with_manifests)
        .bind(prefix)
        .bind(prefix_end.as_deref())
        .fetch_one(&mut *connection)
        .await?;
    let mut sites: Vec<SiteSummary> =
        rows.into_iter().map(SiteSummary::try_from).collect::<Result<_, _>>()?;
    let mut total = sized(total);
    if request.with_manifests != Some(true) {
        total += at_rest_add(connection, request, prefix.zip(prefix_end.as_deref()), &mut sites).await?;
    }
    Ok(SitesPage { sites, total })
}

/// Conditions of a list on sites at rest.
macro_rules! listed_at_rest {
    () => {
        "packed IS NOT NULL AND ($1 IS NULL OR substr(packed, 2, 1) = $1)
         AND ($2 IS NULL OR (name >= $2 AND name < $3)) "
    };
}

/// Puts the sites at rest of a page among the others; returns how many there are on all pages.
async fn at_rest_add(
    connection: &mut Connection,
    request: &SitesRequest,
    prefix: Option<(&str, &str)>,
    sites: &mut Vec<SiteSummary>,
) -> Outcome<u64> {
    let code = match request.status {
        None => None,
        // A status that has no code is none that a site at rest can have.
        Some(status) => match at_rest::status_code(status.as_str()) {
            None => return Ok(0),
            code => code.map(|code| vec![code]),
        },
    };
    let (from, to) = prefix.unzip();
    let rows: Vec<(String, i64, Vec<u8>)> = sqlx::query_as(concat!(
        "SELECT name, next_visit_at_ms, packed FROM site WHERE ",
        listed_at_rest!(),
        "AND ($4 IS NULL OR name > $4) ORDER BY name LIMIT $5"
    ))
    .bind(code.as_deref())
    .bind(from)
    .bind(to)
    .bind(request.after.as_ref().map(SiteName::as_str))
    .bind(i64::from(request.max))
    .fetch_all(&mut *connection)
    .await?;
    let total: i64 = sqlx::query_scalar(concat!("SELECT COUNT(*) FROM site WHERE ", listed_at_rest!()))
        .bind(code.as_deref())
        .bind(from)
        .bind(to)
        .fetch_one(&mut *connection)
        .await?;
    for (name, next_visit_at_ms, packed) in rows {
        sites.push(summary_at_rest(name, next_visit_at_ms, &packed)?);
    }
    sites.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    sites.truncate(usize::try_from(request.max).unwrap_or(usize::MAX));
    Ok(sized(total))
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

/// Everything that a site's owner may want to know.
pub(crate) async fn site_story(
    connection: &mut Connection,
    name: &SiteName,
    visits_max: u32,
) -> Outcome<Option<SiteStory>> {
    let row: Option<SummaryRow> = sqlx::query_as(concat!(summaries!(), "WHERE site.name = $1"))
        .bind(name.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let summary = if let Some(row) = row {
        row.try_into()?
    } else {
        let resting: Option<(i64, Vec<u8>)> = sqlx::query_as(
            "SELECT next_visit_at_ms, packed FROM site WHERE name = $1 AND packed IS NOT NULL",
        )
        .bind(name.as_str())
        .fetch_optional(&mut *connection)
        .await?;
        let Some((next_visit_at_ms, packed)) = resting else { return Ok(None) };
        summary_at_rest(name.as_str().to_owned(), next_visit_at_ms, &packed)?
    };
    let mut states = site::states_load(connection, &names([name.as_str()])?).await?;
    let Some(state) = states.remove(name.as_str()) else { return Ok(None) };
    Ok(Some(SiteStory {
        summary,
        state,
        blocked: block::block_find(connection, name.as_str()).await?,
        visits: visit::visits_of_site(connection, name.as_str(), i64::from(visits_max)).await?,
    }))
}
