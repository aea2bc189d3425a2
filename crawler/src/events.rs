//! `--events FILE`: appends each event of the crawler as one JSON object per line.
//!
//! Events are for audits and programs; for people there is `explain`. Events show only what the crawler believes it did: check the
//! politeness of a crawl in the logs of the servers.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, SecondsFormat, Utc};
use manifest::{Host, ManifestUrl, SiteName};
use policy::{RobotsKind, VisitEnd};
use serde::Serialize;

use crate::clock;

/// An event.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event<'a> {
    /// Seeds were read.
    Seeded { read: u64, rejected: u64 },
    /// A site is leased, and its visit begins or is resumed.
    VisitBegan { site: &'a SiteName, goes_on: bool },
    /// A request is sent.
    Request { site: &'a SiteName, url: &'a ManifestUrl, conditional: bool },
    /// A host is checked by one TLS handshake, without a request.
    Handshake { host: &'a Host },
    /// The response, or the failure.
    Answer {
        site: &'a SiteName,
        url: &'a ManifestUrl,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<&'a str>,
        wire_bytes: u64,
        took_ms: u32,
    },
    /// The verdict of a robots.txt.
    Robots { host: &'a Host, kind: RobotsKind, cause: Option<&'a str>, use_until: DateTime<Utc> },
    /// A visit waits.
    VisitParked { site: &'a SiteName, until: DateTime<Utc>, reason: &'a str },
    /// A visit was saved.
    VisitEnded {
        site: &'a SiteName,
        end: VisitEnd,
        requests: u32,
        bytes_in: u64,
        manifests_added: u32,
        manifests_changed: u32,
        manifests_removed: u32,
        next_visit_at: DateTime<Utc>,
        next_visit_reason: &'a str,
    },
    /// The visit was handed over to the worker that owns its next address.
    VisitHandedOver { site: &'a SiteName, address_group: u16 },
    /// Another worker has the site now.
    VisitDropped { site: &'a SiteName },
    /// A visit failed because of an error in this crawler.
    VisitFailed { site: &'a SiteName, error: &'a str },
    /// A scheduled task ran.
    Scheduled { task: &'a str, came_to: &'a str },
    /// The crawl stops.
    Stopped { sites_visited: u64, requests: u64 },
}

#[derive(Serialize)]
struct Line<'a> {
    at: String,
    #[serde(flatten)]
    event: Event<'a>,
}

/// The log of events, if one is configured; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Events(Option<Arc<Mutex<Option<File>>>>);

impl Events {
    /// Appends to a file.
    pub(crate) fn append(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(Some(Arc::new(Mutex::new(Some(file))))))
    }

    /// Writes one event immediately. An error is logged once and closes the file, because the crawl is more important than its events.
    pub(crate) fn write(&self, event: Event<'_>) {
        let Some(file) = &self.0 else { return };
        let at = clock::now().to_rfc3339_opts(SecondsFormat::Millis, true);
        let Ok(mut line) = serde_json::to_vec(&Line { at, event }) else { return };
        line.push(b'\n');
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = file.as_mut() else { return };
        if let Err(error) = open.write_all(&line) {
            tracing::error!(%error, "the events file cannot be written; no further events are written");
            *file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_events_as_json_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let site = SiteName::parse("shop.example").unwrap();
        for _ in 0..2 {
            Events::append(&path).unwrap().write(Event::VisitBegan { site: &site, goes_on: false });
        }
        Events::default().write(Event::VisitDropped { site: &site });
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[1]["event"], &lines[1]["site"]), (&"visit_began".into(), &"shop.example".into()));
        assert!(lines[0]["at"].as_str().unwrap().ends_with('Z'));
    }
}
