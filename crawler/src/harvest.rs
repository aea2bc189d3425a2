//! Follows a registry: which entries to request, and what is stored of them.
//!
//! All entries are read at first and again every week; entries that the registry no longer has are removed then. In between, only changes
//! since the last one that the registry has stated are requested, with tombstones if the registry has them. A registry that refuses a
//! request for changes is asked for all entries. The position is stored with each page, so that a reading which uses up the daily budget of
//! the host continues at the next time. If the seed lists are followed, all entries are read each time. A registry whose URL has a query is
//! read as the operator says: its entries are stored, but none is removed because it is missing.

use chrono::{DateTime, TimeDelta, Utc};
use manifest::{ManifestUrl, RegistryEntry};
use store::{RegistryPosition, RowsLeftOut, SITE_ROWS_MAX, Store, StoreError, UnfinishedReading};

use crate::clock;
use crate::page_size::PageSize;
use crate::retry::retry_while_unavailable;
use crate::seeds::SeedError;

/// Maximum number of entries with too many bytes that one reading leaves out: each costs downloads of up to 16 MiB at several sizes of the page.
const ENTRIES_LEFT_OUT_MAX: u32 = 3;
/// How often all entries are read. Shorter than the time that the store keeps entries that are not read again.
const WHOLE_EVERY: TimeDelta = TimeDelta::days(7);
/// A reading that began longer ago is not continued: the store no longer keeps the entries of its first pages.
const RESUMED_WITHIN: TimeDelta = TimeDelta::days(28);
/// A page that fails as often in a row is given up: the next reading begins with the first page.
const FAILURES_MAX: u32 = 3;
/// Changes are requested from this long before the last one, because a registry may publish them in another order than that of their times.
const OVERLAP: TimeDelta = TimeDelta::hours(1);

/// How to treat a registry that cannot be read to its last page, because its daily budget is used up or a page fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incomplete {
    /// Uses the pages read so far.
    Used,
    /// Uses nothing, because the sites that the unread pages name would be removed.
    Refused,
}

/// Which entries are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All entries. Stored entries that are missing are removed.
    Whole,
    /// Entries that have changed since this time.
    Changes { since: DateTime<Utc> },
    /// Entries that the operator's query selects.
    Selected,
}

/// One reading of a registry.
pub(crate) struct Harvest {
    store: Store,
    /// URL of the registry without a query.
    registry: String,
    extent: Extent,
    /// Before this reading.
    position: RegistryPosition,
    /// Whether a page of the registry was read before.
    is_known: bool,
    began_at: DateTime<Utc>,
    /// Token of the page with which an earlier reading continues.
    resumed_at: Option<String>,
    latest: Option<DateTime<Utc>>,
    /// The size of the next page.
    page_size: PageSize,
    /// Whether entries between the pages may be missing. A token may be the number of a page: then they are missing if pages of several sizes
    /// were requested, or if entries were removed after the pages that an earlier reading read.
    may_have_gaps: bool,
    /// Whether pages of several sizes were requested.
    has_several_sizes: bool,
    /// How often the page with which this reading continues has failed in a row.
    failures: u32,
    /// Rows beyond the limit of the registry.
    left_out_of_registry: u64,
    /// Rows beyond the limit of a site.
    left_out_of_sites: u64,
    /// Number of pages of one entry with too many bytes.
    entries_left_out: u32,
}

impl Harvest {
    /// A reading of a registry that can list its changes.
    pub(crate) async fn of_changes(
        store: &Store,
        base: &ManifestUrl,
        incomplete: Incomplete,
    ) -> Result<Self, SeedError> {
        let mut harvest = Self::of_selection(store, base);
        if base.as_url().query().is_some() {
            return Ok(harvest);
        }
        let position =
            retry_while_unavailable("read registry position", || store.registry_position(&harvest.registry));
        let position = position.await.map_err(|source| harvest.unstored(source))?;
        harvest.is_known = position.is_some();
        let mut position = position.unwrap_or_default();
        let now = harvest.began_at;
        let is_resumed = |unfinished: &UnfinishedReading| {
            incomplete == Incomplete::Used && now < unfinished.began_at + RESUMED_WITHIN
        };
        if let Some(unfinished) = position.unfinished.take().filter(is_resumed) {
            harvest.page_size = unfinished.page_entries.map_or(PageSize::MAX, PageSize::resumed);
            harvest.has_several_sizes = unfinished.page_entries.is_some();
            harvest.may_have_gaps = next_number(&unfinished.next_page).is_some();
            harvest.began_at = unfinished.began_at;
            harvest.latest = unfinished.latest;
            harvest.resumed_at = Some(unfinished.next_page);
            harvest.failures = unfinished.failures;
        }
        harvest.extent = extent(&position, incomplete, harvest.began_at);
        harvest.position = position;
        Ok(harvest)
    }

    /// A reading of the entries that a query selects.
    pub(crate) fn of_selection(store: &Store, base: &ManifestUrl) -> Self {
        let mut url = base.as_url().clone();
        url.set_query(None);
        Self {
            store: store.clone(),
            registry: url.into(),
            extent: Extent::Selected,
            position: RegistryPosition::default(),
            is_known: false,
            began_at: clock::now(),
            resumed_at: None,
            latest: None,
            page_size: PageSize::MAX,
            may_have_gaps: false,
            has_several_sizes: false,
            failures: 0,
            left_out_of_registry: 0,
            left_out_of_sites: 0,
            entries_left_out: 0,
        }
    }

    /// Only entries that have changed since this time are read.
    pub(crate) const fn changed_since(&self) -> Option<DateTime<Utc>> {
        match self.extent {
            Extent::Changes { since } => Some(since),
            Extent::Whole | Extent::Selected => None,
        }
    }

    /// Whether a page of the registry was read before, and its position is stored.
    pub(crate) const fn is_known(&self) -> bool {
        self.is_known
    }

    /// Reads all entries instead of the changes.
    pub(crate) const fn read_whole(&mut self) {
        if let Extent::Changes { .. } = self.extent {
            self.extent = Extent::Whole;
        }
    }

    pub(crate) const fn page_size(&self) -> PageSize {
        self.page_size
    }

    /// The page of a token is requested with fewer entries than the pages before it. If the token is a number, nothing is removed because it
    /// is missing, and the next reading is of all entries.
    pub(crate) fn reduce_page_size(&mut self, smaller: PageSize, token: Option<&str>) {
        self.page_size = smaller;
        self.has_several_sizes = true;
        self.may_have_gaps |= token.and_then(next_number).is_some();
    }

    /// Whether one more entry with too many bytes may be left out.
    pub(crate) fn leave_out_entry(&mut self) -> bool {
        self.entries_left_out += 1;
        self.entries_left_out <= ENTRIES_LEFT_OUT_MAX
    }

    /// Whether entries between pages may be missing.
    pub(crate) const fn may_have_gaps(&self) -> bool {
        self.may_have_gaps
    }

    /// Token of the first page of this reading, if it continues an earlier one.
    pub(crate) fn resumed_at(&self) -> Option<&str> {
        self.resumed_at.as_deref()
    }

    /// Stores the entries of a page, and the position after it.
    pub(crate) async fn save(
        &mut self,
        entries: &[RegistryEntry],
        next_page: Option<&str>,
    ) -> Result<(), SeedError> {
        self.latest = self.latest.max(latest_change(entries, self.began_at));
        self.failures = 0;
        self.page_size = self.page_size.after_page();
        self.may_have_gaps |= self.has_several_sizes && next_page.and_then(next_number).is_some();
        let position = self.position_before(next_page);
        let left_out = self.write(entries, position.as_ref()).await?;
        if left_out.of_registry > 0 && self.left_out_of_registry == 0 {
            tracing::warn!(registry = self.registry, "a registry has too many entries: the rest is not kept");
        }
        self.left_out_of_registry += left_out.of_registry;
        self.left_out_of_sites += left_out.of_sites;
        Ok(())
    }

    /// Stores the entries of a page that names a next page which cannot be requested. The next reading begins with the first page.
    pub(crate) async fn save_unfinished(&mut self, entries: &[RegistryEntry]) -> Result<(), SeedError> {
        let position = (self.extent != Extent::Selected).then(|| self.position.clone());
        self.left_out_of_sites += self.write(entries, position.as_ref()).await?.of_sites;
        Ok(())
    }

    /// Logs at the end of a reading how many entries about sites were not kept.
    pub(crate) fn log_left_out(&self) {
        let rows = self.left_out_of_sites;
        if rows > 0 {
            let (registry, max) = (&self.registry, SITE_ROWS_MAX);
            tracing::warn!(
                registry,
                rows,
                max,
                "a registry has too many entries about a site: the last are not kept"
            );
        }
    }

    /// Counts a failure of the page of a token, with which the next reading continues. After [`FAILURES_MAX`] failures in a row, the next
    /// reading begins with the first page.
    pub(crate) async fn page_failed(&mut self, token: &str) -> Result<(), SeedError> {
        if self.extent == Extent::Selected {
            return Ok(());
        }
        self.failures += 1;
        if self.failures < FAILURES_MAX {
            return self.write(&[], self.position_before(Some(token)).as_ref()).await.map(drop);
        }
        let (registry, failures) = (&self.registry, self.failures);
        tracing::warn!(
            registry,
            failures,
            "a page of a registry has failed too often: the next reading begins with the first page"
        );
        self.write(&[], Some(&self.position)).await.map(drop)
    }

    /// Forgets the page with which this reading began, so that the next one begins with the first page.
    pub(crate) async fn restart(&self) -> Result<(), SeedError> {
        if self.resumed_at.is_some() {
            self.write(&[], Some(&self.position)).await?;
        }
        Ok(())
    }

    /// The position after all pages before this one; `None` if no position is kept.
    fn position_before(&self, next_page: Option<&str>) -> Option<RegistryPosition> {
        let RegistryPosition { changed_until, read_whole_at, .. } = self.position;
        match (self.extent, next_page) {
            (Extent::Selected, _) => None,
            (_, Some(next_page)) => Some(RegistryPosition {
                unfinished: Some(UnfinishedReading {
                    began_at: self.began_at,
                    next_page: next_page.to_owned(),
                    latest: self.latest,
                    failures: self.failures,
                    page_entries: self.has_several_sizes.then(|| self.page_size.entries()),
                }),
                ..self.position.clone()
            }),
            (extent, None) => Some(RegistryPosition {
                changed_until: self.latest.max(changed_until),
                read_whole_at: match extent {
                    _ if self.may_have_gaps => None,
                    Extent::Whole => Some(self.began_at),
                    Extent::Changes { .. } | Extent::Selected => read_whole_at,
                },
                unfinished: None,
            }),
        }
    }

    async fn write(
        &self,
        entries: &[RegistryEntry],
        position: Option<&RegistryPosition>,
    ) -> Result<RowsLeftOut, SeedError> {
        let save = || self.store.registry_page_save(&self.registry, entries, position, clock::now());
        let saved = retry_while_unavailable("store registry entries", save).await;
        saved.map_err(|source| self.unstored(source))
    }

    fn unstored(&self, source: StoreError) -> SeedError {
        SeedError::Unstored { name: self.registry.clone(), source }
    }
}

/// The number after a token, if the token is a number: of a page, or of the entries before it.
pub(crate) fn next_number(token: &str) -> Option<String> {
    let is_number = token.bytes().all(|byte| byte.is_ascii_digit());
    token.parse::<u32>().ok().filter(|_| is_number)?.checked_add(1).map(|next| next.to_string())
}

/// The latest change of a page. A time in the future would hide the changes before it, so it counts as the begin of the reading.
fn latest_change(entries: &[RegistryEntry], began_at: DateTime<Utc>) -> Option<DateTime<Utc>> {
    entries.iter().filter_map(|entry| entry.updated_at).max().map(|latest| latest.min(began_at))
}

fn extent(position: &RegistryPosition, incomplete: Incomplete, began_at: DateTime<Utc>) -> Extent {
    match (position.changed_until, position.read_whole_at) {
        (Some(until), Some(read_whole_at))
            if incomplete == Incomplete::Used && began_at < read_whole_at + WHOLE_EVERY =>
        {
            Extent::Changes { since: until - OVERLAP }
        }
        _ => Extent::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_the_future_counts_as_the_begin() {
        let began_at = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        let entry = |updated_at| RegistryEntry {
            identifier: "example.a/mcp".to_owned(),
            sites: Vec::new(),
            name: None,
            url: None,
            version: None,
            updated_at: Some(updated_at),
            is_deleted: true,
        };
        let entries = [entry(began_at + TimeDelta::days(900)), entry(DateTime::UNIX_EPOCH)];
        assert_eq!(latest_change(&entries, began_at), Some(began_at));
        assert_eq!(latest_change(&entries[1..], began_at), Some(DateTime::UNIX_EPOCH));
        assert_eq!(latest_change(&[], began_at), None);
    }

    #[test]
    fn the_token_after_a_number_is_the_next_number() {
        assert_eq!(next_number("0").as_deref(), Some("1"));
        assert_eq!(next_number("99").as_deref(), Some("100"));
        for token in ["", "two", "+1", "-1", "1.5", "a1", "4294967295", "99999999999"] {
            assert_eq!(next_number(token), None, "{token}");
        }
    }

    #[test]
    fn changes_are_requested_until_all_entries_are_read_again() {
        let at = |hours: i64| DateTime::UNIX_EPOCH + TimeDelta::hours(hours);
        let position = |changed_until| RegistryPosition {
            changed_until,
            read_whole_at: Some(at(1_000)),
            unfinished: None,
        };
        let changes = Extent::Changes { since: at(899) };
        for (position, incomplete, began_at, expected) in [
            (RegistryPosition::default(), Incomplete::Used, at(1_001), Extent::Whole),
            (position(None), Incomplete::Used, at(1_001), Extent::Whole),
            (position(Some(at(900))), Incomplete::Used, at(1_001), changes),
            (position(Some(at(900))), Incomplete::Refused, at(1_001), Extent::Whole),
            (position(Some(at(900))), Incomplete::Used, at(1_000 + 7 * 24), Extent::Whole),
        ] {
            assert_eq!(extent(&position, incomplete, began_at), expected);
        }
    }
}
