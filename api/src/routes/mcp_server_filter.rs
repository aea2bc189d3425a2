//! The filters of `GET /v0.1/servers`, and its cursor, which contains them.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use manifest::{ManifestId, budget};
use serde::{Deserialize, Serialize};
use store::{FeedPosition, StoredManifest};

use super::mcp_server_names::{NAME_CHARS_MAX, VERSION_CHARS_MAX, name, version};
use crate::answers::search_parameters::instant;
use crate::cursor;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

const KNOWN: &[&str] = &["cursor", "include_deleted", "limit", "search", "updated_since", "version"];
/// Name of the listing to which cursors are bound.
const LISTING: &str = "servers";
const LATEST: &str = "latest";

/// The filters of a request for servers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<DateTime<Utc>>,
    /// Lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    search: Option<String>,
    /// `latest`, or one version.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    /// Whether servers are requested whose manifests were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    include_deleted: Option<bool>,
}

/// Where a page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// After a manifest in the index, or at the first one.
    Declared(Option<ManifestId>),
    /// After a position of the feed, among the removals that follow the manifests in the index.
    Removed(FeedPosition),
}

/// The content of a cursor. It contains the filters of the list, because clients send them only for the first page.
#[derive(Serialize, Deserialize)]
struct Position<'f> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    removed_after: Option<FeedPosition>,
    filter: Cow<'f, ServerFilter>,
}

impl ServerFilter {
    /// The filters of a request and where its page begins. Missing filters are taken from the cursor.
    pub(super) fn read(query: &QueryPairs) -> Result<(Self, Place), Problem> {
        query.only(KNOWN)?;
        let short = |name: &str, chars_max: usize| {
            let value = query.one(name)?;
            if value.is_some_and(|value| value.chars().count() > chars_max) {
                let detail = format!("\"{name}\" is longer than {chars_max} characters");
                return Err(Problem::bad_request(detail).with_parameter(name));
            }
            Ok(value)
        };
        let given = Self {
            since: query.one("updated_since")?.map(instant).transpose()?,
            search: short("search", NAME_CHARS_MAX)?.map(str::to_lowercase),
            version: short("version", VERSION_CHARS_MAX)?.map(ToOwned::to_owned),
            include_deleted: query.one_parsed("include_deleted")?,
        };
        let Some(text) = query.one("cursor")? else { return Ok((given, Place::Declared(None))) };
        let position = cursor::decode(LISTING, text)?;
        let position: Position<'static> = budget::parse_within_budget(position.as_bytes(), &budget::REQUEST)
            .map_err(|_| cursor::invalid())?;
        let place = match (position.after, position.removed_after) {
            (Some(after), None) => {
                Place::Declared(Some(ManifestId::parse(&after).map_err(|_| cursor::invalid())?))
            }
            (None, Some(after)) => Place::Removed(after),
            _ => return Err(cursor::invalid()),
        };
        let of_cursor = position.filter.into_owned();
        let filter = Self {
            since: given.since.or(of_cursor.since),
            search: given.search.or_else(|| of_cursor.search.clone()),
            version: given.version.or_else(|| of_cursor.version.clone()),
            include_deleted: given.include_deleted.or(of_cursor.include_deleted),
        };
        if filter == of_cursor { Ok((filter, place)) } else { Err(cursor::of_other_query()) }
    }

    /// The cursor of the page that begins at a place.
    pub(super) fn cursor(&self, place: &Place) -> Result<String, Problem> {
        let (after, removed_after) = match place {
            Place::Declared(after) => (after.as_ref().map(|after| after.as_str().to_owned()), None),
            Place::Removed(after) => (None, Some(*after)),
        };
        let position = Position { after, removed_after, filter: Cow::Borrowed(self) };
        let position = serde_json::to_string(&position).map_err(|error| Problem::internal(&error))?;
        Ok(cursor::encode(LISTING, &position))
    }

    /// Whether servers are listed whose manifests were removed: if the client requests them, and always with `updated_since`.
    pub(super) fn includes_deleted(&self) -> bool {
        self.since.is_some() || self.include_deleted == Some(true)
    }

    pub(super) fn wants_latest(&self) -> bool {
        self.version.as_deref() == Some(LATEST)
    }

    /// Whether a manifest in the index declares a server that matches the filters.
    pub(super) fn matches(&self, stored: &StoredManifest) -> bool {
        self.since.is_none_or(|since| stored.changed_at >= since) && self.names(stored)
    }

    /// Whether the name and the version of a server match the filters.
    pub(super) fn names(&self, stored: &StoredManifest) -> bool {
        let has_version = |wanted: &str| wanted == LATEST || version(&stored.manifest).0 == wanted;
        self.search.as_deref().is_none_or(|search| name(stored).0.to_lowercase().contains(search))
            && self.version.as_deref().is_none_or(has_version)
    }
}
