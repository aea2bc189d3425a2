//! Conversions between Rust values and columns: times in milliseconds, counters, compressed bytes, batches as JSON.

use std::borrow::Cow;
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::{DateTime, Utc};
use manifest::model::PolicyChoice;
use manifest::{ManifestUrl, NamedBy, Publisher};
use policy::Status;
use policy::naming::{named_by_url, publisher_by_url};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;
use crate::from_row::from_row;

/// The default of zstd; higher levels gain little on JSON.
const ZSTD_LEVEL: i32 = 3;
/// Maximum size of a column before compression: the largest manifest that a visit accepts, as JSON (half of its memory).
const DECOMPRESSED_BYTES_MAX: u64 = 80 * 1024 * 1024;
/// Maximum window size of a frame: 8 MiB, which every decoder supports (RFC 8878 section 3.1.1.1.2). Frames of this program use 2 MiB.
const WINDOW_LOG_MAX: u32 = 23;

/// Planned time of a blocked site (year 2255), later than any schedule.
pub(crate) const NEVER_MS: i64 = 9_000_000_000_000_000;
/// Planned time of a site that no seed names. Earlier than [`NEVER_MS`], so that the site can be leased by name.
pub(crate) const UNPLANNED_MS: i64 = 8_000_000_000_000_000;

pub(crate) const fn millis(at: DateTime<Utc>) -> i64 {
    at.timestamp_millis()
}

pub(crate) fn millis_of(at: Option<DateTime<Utc>>) -> Option<i64> {
    at.map(millis)
}

pub(crate) fn until_ms(now: DateTime<Utc>, duration: Duration) -> i64 {
    millis(now).saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

/// Counters are INTEGER, at most `i32::MAX`.
pub(crate) fn to_i32(value: impl TryInto<i32>) -> i32 {
    value.try_into().unwrap_or(i32::MAX)
}

/// Sizes are BIGINT.
pub(crate) fn to_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Reads a counter; a negative one counts as 0.
pub(crate) fn to_u32(value: i32) -> u32 {
    u32::try_from(value).unwrap_or_default()
}

/// Reads a sum or a size; a negative one counts as 0.
pub(crate) fn to_u64(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}

/// Removes NUL, which servers may send and PostgreSQL cannot store in TEXT.
pub(crate) fn text(value: &str) -> Cow<'_, str> {
    if value.contains('\0') { Cow::Owned(value.replace('\0', "")) } else { Cow::Borrowed(value) }
}

pub(crate) fn text_of(value: Option<&String>) -> Option<Cow<'_, str>> {
    value.map(|value| text(value))
}

/// Compresses bytes into a frame that begins with the uncompressed size, for `decompressed_bytes`. Rejects input that [`decompress`] would
/// reject.
pub(crate) fn compress(bytes: &[u8], what: &'static str) -> Result<Vec<u8>, StoreError> {
    if bytes.len() as u64 > DECOMPRESSED_BYTES_MAX {
        let reason = format!("it has {} bytes; the limit is {DECOMPRESSED_BYTES_MAX}", bytes.len());
        return Err(StoreError::Unstorable { what, reason });
    }
    zstd::bulk::compress(bytes, ZSTD_LEVEL)
        .map_err(|error| StoreError::Unstorable { what, reason: error.to_string() })
}

/// The uncompressed size that the first bytes of a frame state; `None` if they do not state it.
pub(crate) fn decompressed_bytes(frame_start: &[u8]) -> Option<u64> {
    zstd::zstd_safe::get_frame_content_size(frame_start).ok().flatten()
}

/// Assumed size of a manifest from a version that did not record it: the limit on the capabilities of one document.
const UNRECORDED_BYTES: u64 = 32 * 1024 * 1024;

/// The size of a manifest before compression, from the first bytes of its model.
pub(crate) fn manifest_bytes(frame_start: &[u8]) -> u64 {
    decompressed_bytes(frame_start).unwrap_or(UNRECORDED_BYTES)
}

/// Decodes one frame of at most `bytes_max` bytes.
fn decompress(compressed: &[u8], bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_large = || io::Error::other(format!("it has more than {bytes_max} bytes before compression"));
    let announced = decompressed_bytes(compressed).unwrap_or_default();
    if announced > bytes_max {
        return Err(too_large());
    }
    let mut decoder = decoder(compressed)?;
    let mut bytes = Vec::with_capacity(usize::try_from(announced).unwrap_or_default());
    decoder.by_ref().take(bytes_max).read_to_end(&mut bytes)?;
    if decoder.read(&mut [0])? > 0 {
        return Err(too_large());
    }
    if !decoder.finish().is_empty() {
        return Err(io::Error::other("it has bytes after its end"));
    }
    Ok(bytes)
}

fn decoder(frame: &[u8]) -> io::Result<zstd::Decoder<'static, &[u8]>> {
    let mut decoder = zstd::Decoder::with_buffer(frame)?.single_frame();
    decoder.window_log_max(WINDOW_LOG_MAX)?;
    Ok(decoder)
}

/// Up to `bytes_max` bytes from the beginning of a frame, which may be truncated or damaged.
pub(crate) fn decompressed_start(frame_start: &[u8], bytes_max: u64) -> Vec<u8> {
    let mut start = Vec::new();
    let read = decoder(frame_start).and_then(|decoder| decoder.take(bytes_max).read_to_end(&mut start));
    if let Err(error) = read {
        tracing::trace!(%error, "a cut frame ends early"); // data from before the error is kept
    }
    start
}

pub(crate) fn json(value: &impl Serialize, what: &'static str) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Unstorable { what, reason: error.to_string() })
}

pub(crate) fn compressed_json(value: &impl Serialize, what: &'static str) -> Result<Vec<u8>, StoreError> {
    let bytes = serde_json::to_vec(value)
        .map_err(|error| StoreError::Unstorable { what, reason: error.to_string() })?;
    compress(&bytes, what)
}

/// Bytes in a JSON batch.
pub(crate) fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

/// A list of names for `list!` in a statement.
pub(crate) fn names<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<String, StoreError> {
    let rows: Vec<[&str; 1]> = values.into_iter().map(|value| [value]).collect();
    json(&rows, "list of names")
}

/// Returns the value, or logs the error that names a damaged row.
pub(crate) fn log_damaged<T>(result: Result<T, StoreError>) -> Option<T> {
    result
        .inspect_err(|error| {
            if let StoreError::BadRow { table, column, id, .. } = error {
                tracing::error!(table, key = id, column, %error, "a damaged row is left out");
            } else {
                tracing::error!(%error, "a row that cannot be read is left out");
            }
        })
        .ok()
}

/// Converts the decoded rows of a list. Damaged rows are logged and skipped, so that the others are still listed.
pub(crate) fn intact<R, T>(
    rows: impl IntoIterator<Item = Result<R, StoreError>>,
    mut each: impl FnMut(R) -> Result<T, StoreError>,
) -> Vec<T> {
    rows.into_iter().filter_map(|row| log_damaged(row.and_then(&mut each))).collect()
}

/// A page of a list. Damaged rows are replaced by the rows that follow, so only the last page can be short.
pub(crate) struct Page<T> {
    pub(crate) values: Vec<T>,
    max: i64,
    is_last: bool,
}

impl<T> Page<T> {
    pub(crate) const fn new(max: i64) -> Self {
        Self { values: Vec::new(), max, is_last: false }
    }

    /// How many rows to read next, after those that were added; `None` when the page is complete.
    pub(crate) fn wanted(&self) -> Option<i64> {
        let wanted = self.max - to_i64(self.values.len() as u64);
        (wanted > 0 && !self.is_last).then_some(wanted)
    }

    /// Adds the requested rows. Fewer rows than requested means that there are no more.
    pub(crate) fn add<R>(
        &mut self,
        rows: Vec<Result<R, StoreError>>,
        each: impl FnMut(R) -> Result<T, StoreError>,
    ) {
        self.is_last = self.wanted().is_none_or(|wanted| to_i64(rows.len() as u64) < wanted);
        self.values.extend(intact(rows, each));
    }
}

/// The columns of [`ManifestState`].
#[derive(Debug)]
pub(crate) struct ManifestStateColumns {
    status: String,
    training: Option<String>,
    named_by: Option<String>,
    publisher: Option<String>,
    first_seen_at_ms: i64,
    last_seen_at_ms: i64,
    changed_at_ms: i64,
}

from_row!(ManifestStateColumns {
    status,
    training,
    named_by,
    publisher,
    first_seen_at_ms,
    last_seen_at_ms,
    changed_at_ms
});

/// The columns of `manifest` about the current version, except its number.
pub(crate) struct ManifestState {
    pub(crate) status: Status,
    pub(crate) training: PolicyChoice,
    pub(crate) named_by: NamedBy,
    pub(crate) publisher: Publisher,
    pub(crate) first_seen_at: DateTime<Utc>,
    pub(crate) last_seen_at: DateTime<Utc>,
    pub(crate) changed_at: DateTime<Utc>,
}

/// Range to which damaged times are limited: 1970 to the end of the year 9999.
const TIMES_MS: RangeInclusive<i64> = 0..=253_402_300_799_000;

/// Names the row in errors about its columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowRef<'a> {
    pub(crate) table: &'static str,
    pub(crate) id: &'a str,
}

impl<'a> RowRef<'a> {
    pub(crate) const fn new(table: &'static str, id: &'a str) -> Self {
        Self { table, id }
    }

    pub(crate) fn damaged(&self, column: &'static str, reason: &(impl ToString + ?Sized)) -> StoreError {
        StoreError::BadRow {
            table: self.table,
            column: column.to_owned(),
            id: self.id.to_owned(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn parse<T>(&self, column: &'static str, value: &str) -> Result<T, StoreError>
    where
        T: std::str::FromStr,
        T::Err: ToString,
    {
        value.parse().map_err(|error: T::Err| self.damaged(column, &error))
    }

    pub(crate) fn parse_of<T>(
        &self,
        column: &'static str,
        value: Option<&String>,
    ) -> Result<Option<T>, StoreError>
    where
        T: std::str::FromStr,
        T::Err: ToString,
    {
        value.map(|value| self.parse(column, value)).transpose()
    }

    /// The state of the manifest of a URL.
    pub(crate) fn manifest_state(
        &self,
        columns: &ManifestStateColumns,
        url: &ManifestUrl,
    ) -> Result<ManifestState, StoreError> {
        let named_by = self.parse_of("named_by", columns.named_by.as_ref())?;
        let publisher = self.parse_of("publisher", columns.publisher.as_ref())?;
        Ok(ManifestState {
            status: self.parse("status", &columns.status)?,
            training: self.parse_of("training", columns.training.as_ref())?.unwrap_or_default(),
            named_by: named_by.unwrap_or_else(|| named_by_url(url)),
            publisher: publisher.unwrap_or_else(|| publisher_by_url(url)),
            first_seen_at: self.time("first_seen_at_ms", columns.first_seen_at_ms)?,
            last_seen_at: self.time("last_seen_at_ms", columns.last_seen_at_ms)?,
            changed_at: self.time("changed_at_ms", columns.changed_at_ms)?,
        })
    }

    pub(crate) fn time(&self, column: &'static str, millis: i64) -> Result<DateTime<Utc>, StoreError> {
        DateTime::from_timestamp_millis(millis)
            .ok_or_else(|| self.damaged(column, &format!("{millis} is not a time in milliseconds")))
    }

    /// A time that affects more than its own row. A time out of range is logged and replaced by the nearest time in [`TIMES_MS`].
    pub(crate) fn nearest_time(&self, column: &'static str, millis: i64) -> DateTime<Utc> {
        self.time(column, millis).unwrap_or_else(|error| {
            let (first, last) = TIMES_MS.into_inner();
            let counts_as = DateTime::from_timestamp_millis(millis.clamp(first, last)).unwrap_or_default();
            tracing::error!(table = self.table, key = self.id, %counts_as, %error, "a time is damaged");
            counts_as
        })
    }

    pub(crate) fn time_of(
        &self,
        column: &'static str,
        millis: Option<i64>,
    ) -> Result<Option<DateTime<Utc>>, StoreError> {
        millis.map(|millis| self.time(column, millis)).transpose()
    }

    pub(crate) fn http_status(
        &self,
        column: &'static str,
        value: Option<i32>,
    ) -> Result<Option<u16>, StoreError> {
        value
            .map(|value| {
                u16::try_from(value)
                    .map_err(|_| self.damaged(column, &format!("{value} is not an HTTP status")))
            })
            .transpose()
    }

    /// Decodes a compressed column of at most [`DECOMPRESSED_BYTES_MAX`].
    pub(crate) fn bytes(&self, column: &'static str, compressed: &[u8]) -> Result<Vec<u8>, StoreError> {
        decompress(compressed, DECOMPRESSED_BYTES_MAX).map_err(|error| self.damaged(column, &error))
    }

    pub(crate) fn json<T: DeserializeOwned>(
        &self,
        column: &'static str,
        bytes: &[u8],
    ) -> Result<T, StoreError> {
        serde_json::from_slice(bytes).map_err(|error| self.damaged(column, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

    use super::*;

    /// Logged events: level and fields.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<String>>>);

    impl<S: tracing::Subscriber> Layer<S> for Log {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            let mut line = event.metadata().level().to_string();
            event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                line.extend([" ", field.name(), "=", &format!("{value:?}")]);
            });
            self.0.lock().unwrap().push(line);
        }
    }

    #[test]
    fn refuses_to_store_what_it_would_refuse_to_read() {
        let most = usize::try_from(DECOMPRESSED_BYTES_MAX).unwrap();
        let stored = compress(&vec![b' '; most], "document").unwrap();
        assert_eq!(decompress(&stored, DECOMPRESSED_BYTES_MAX).unwrap().len(), most);
        let refused = compress(&vec![b' '; most + 1], "document");
        assert!(matches!(refused, Err(StoreError::Unstorable { .. })));
    }

    #[test]
    fn fills_a_page_with_rows_after_damaged_ones_and_logs_these() {
        let rows = ["1", "x", "2", "y", "z", "3"];
        let log = Log::default();
        let subscriber = tracing::subscriber::set_default(tracing_subscriber::registry().with(log.clone()));
        let mut page = Page::<u32>::new(3);
        let (mut position, mut reads) = (0, 0);
        while let Some(wanted) = page.wanted() {
            let following = rows.iter().skip(position).take(usize::try_from(wanted).unwrap()).copied();
            let read: Vec<&str> = following.collect();
            (position, reads) = (position + read.len(), reads + 1);
            page.add(read.into_iter().map(Ok).collect(), |row| {
                RowRef::new("table", row).parse("column", row)
            });
        }
        drop(subscriber);
        assert_eq!((page.values, reads), (vec![1, 2, 3], 4));
        let log = log.0.lock().unwrap();
        assert_eq!(log.len(), 3);
        for (line, key) in log.iter().zip(["x", "y", "z"]) {
            assert!(line.starts_with("ERROR ") && line.contains("table=\"table\""), "{line}");
            assert!(line.contains(&format!("key=\"{key}\"")) && line.contains("column column"), "{line}");
        }
        let mut short = Page::<u32>::new(9);
        assert_eq!(short.wanted(), Some(9));
        short.add(vec![Ok("1")], |row| RowRef::new("table", row).parse("column", row));
        assert_eq!(short.wanted(), None, "no rows follow");
    }

    #[test]
    fn limits_a_damaged_time_to_the_supported_range() {
        let at = RowRef::new("site", "shop.example");
        let near = |millis| at.nearest_time("next_visit_at_ms", millis).to_rfc3339();
        assert_eq!(near(i64::MIN), "1970-01-01T00:00:00+00:00");
        assert_eq!(near(i64::MAX), "9999-12-31T23:59:59+00:00");
        assert_eq!(near(1_000), "1970-01-01T00:00:01+00:00");
    }

    #[test]
    fn a_compressed_value_announces_its_size() {
        let value = vec![b'x'; 3_000_000];
        let compressed = compress(&value, "value").unwrap();
        assert_eq!(decompressed_bytes(&compressed[..18.min(compressed.len())]), Some(3_000_000));
        assert_eq!(RowRef::new("table", "row").bytes("column", &compressed).unwrap(), value);
        let earlier = zstd::stream::encode_all(&value[..], ZSTD_LEVEL).unwrap();
        assert_eq!(decompressed_bytes(&earlier), None, "earlier versions did not state it");
        assert_eq!(decompressed_bytes(b"damaged"), None);
        assert_eq!(RowRef::new("table", "row").bytes("column", &earlier).unwrap(), value);
    }

    #[test]
    fn compressed_value_is_decoded_up_to_a_limit() {
        let value = vec![b'x'; 1_000_000];
        let announced = compress(&value, "value").unwrap();
        let unannounced = zstd::stream::encode_all(&value[..], ZSTD_LEVEL).unwrap();
        for frame in [&announced, &unannounced] {
            assert_eq!(decompress(frame, 1_000_000).unwrap(), value);
            let error = decompress(frame, 999_999).unwrap_err().to_string();
            assert_eq!(error, "it has more than 999999 bytes before compression");
        }
        assert!(decompress(&[announced.clone(), announced].concat(), 3_000_000).is_err(), "one frame only");
        let zeros = io::repeat(0).take(DECOMPRESSED_BYTES_MAX + 1);
        let bomb = zstd::stream::encode_all(zeros, ZSTD_LEVEL).unwrap();
        let error = RowRef::new("robots", "shop.example").bytes("body", &bomb).unwrap_err().to_string();
        assert!(error.contains("robots") && error.contains("shop.example"), "{error}");
        let limit = format!("more than {DECOMPRESSED_BYTES_MAX} bytes");
        let source = format!("{:?}", RowRef::new("robots", "shop.example").bytes("body", &bomb));
        assert!(source.contains(&limit), "{source}");
    }

    #[test]
    fn frame_with_a_large_window_is_damaged() {
        let mut encoder = zstd::Encoder::new(Vec::new(), ZSTD_LEVEL).unwrap();
        encoder.window_log(WINDOW_LOG_MAX + 1).unwrap();
        io::copy(&mut io::repeat(0).take(1_000_000), &mut encoder).unwrap();
        assert!(decompress(&encoder.finish().unwrap(), 1_000_000).is_err());
    }
}
