//! Atom feeds (RFC 4287): the required members of feeds and entries, without characters that XML forbids.

use askama::Template;
use chrono::{DateTime, SecondsFormat, Utc};
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::text::one_line;

pub(crate) const MEDIA_TYPE: &str = "application/atom+xml; charset=utf-8";
/// Maximum number of entries of one feed, chosen for clients that poll once a day.
pub(crate) const ENTRIES_MAX: u32 = 50;
const TITLE_CHARS_MAX: usize = 200;
const SUMMARY_CHARS_MAX: usize = 1_000;

#[derive(Template)]
#[template(path = "feed.xml")]
pub(crate) struct Feed {
    id: String,
    title: String,
    updated: String,
    own_url: String,
    page_url: String,
    entries: Vec<Entry>,
}

pub(crate) struct Entry {
    id: String,
    title: String,
    updated: String,
    author: String,
    /// Link to the HTML page.
    url: String,
    /// Link to the JSON of the subject, if it has no HTML page.
    json_url: Option<String>,
    summary: String,
    at: DateTime<Utc>,
}

impl Feed {
    /// Creates a feed. Without entries, `updated` is the Unix epoch.
    pub(crate) fn new(title: &str, own_url: String, page_url: String, mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.at));
        let updated = entries.first().map_or(DateTime::UNIX_EPOCH, |entry| entry.at);
        Self {
            id: permanent(&["feed", &own_url]),
            title: one_line(title, TITLE_CHARS_MAX),
            updated: written(updated),
            own_url,
            page_url,
            entries,
        }
    }
}

impl Entry {
    /// `parts` identify the entry permanently, even if its address changes.
    pub(crate) fn new(
        parts: &[&str],
        title: &str,
        author: &str,
        url: String,
        summary: &str,
        at: DateTime<Utc>,
    ) -> Self {
        Self {
            id: permanent(parts),
            title: one_line(title, TITLE_CHARS_MAX),
            updated: written(at),
            author: one_line(author, TITLE_CHARS_MAX),
            url,
            json_url: None,
            summary: one_line(summary, SUMMARY_CHARS_MAX),
            at,
        }
    }

    /// Links to the JSON in addition to the page.
    pub(crate) fn with_json(self, url: String) -> Self {
        Self { json_url: Some(url), ..self }
    }
}

fn written(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// A UUID of version 8 (RFC 9562 §5.8): a custom hash.
fn permanent(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let digest = hasher.finalize();
    let mut bytes: Vec<u8> = digest.iter().copied().take(16).collect();
    for (index, keep, mark) in [(6, 0x0f, 0x80), (8, 0x3f, 0x80)] {
        if let Some(byte) = bytes.get_mut(index) {
            *byte = (*byte & keep) | mark;
        }
    }
    let hex = HEXLOWER.encode(&bytes);
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("urn:uuid:{}-{}-{}-{}-{}", part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32))
}
