//! Logs every hit and connection in memory, and optionally as JSONL in a file.
//!
//! Hits and connections are recorded when they end, and returned in the order in which they began.

use std::{
    fs::File,
    io::Write,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Context;
use serde::Serialize;
use tokio::{sync::Notify, time::Instant};

use crate::hit::{Connection, Hit};

/// The log of a web.
pub struct Log {
    began: Instant,
    next_hit: AtomicU64,
    next_connection: AtomicU64,
    records: Mutex<Records>,
    changed: Notify,
}

#[derive(Default)]
struct Records {
    hits: Vec<Hit>,
    connections: Vec<Connection>,
    file: Option<File>,
}

/// One line of the log file.
#[derive(Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
enum Line<'a> {
    Hit(&'a Hit),
    Connection(&'a Connection),
}

impl Log {
    pub(crate) fn new(file: Option<&Path>) -> anyhow::Result<Self> {
        let file = file
            .map(|path| {
                File::create(path).with_context(|| format!("cannot write the log to {}", path.display()))
            })
            .transpose()?;
        Ok(Self {
            began: Instant::now(),
            next_hit: AtomicU64::new(0),
            next_connection: AtomicU64::new(0),
            records: Mutex::new(Records { file, ..Records::default() }),
            changed: Notify::new(),
        })
    }

    /// All hits that have ended, in the order in which they began.
    pub fn hits(&self) -> Vec<Hit> {
        let mut hits = self.records().hits.clone();
        hits.sort_by_key(|hit| hit.id);
        hits
    }

    /// The ended hits on one host.
    pub fn hits_on(&self, host: &str) -> Vec<Hit> {
        self.hits().into_iter().filter(|hit| hit.host == host).collect()
    }

    /// How many hits have ended.
    pub fn hit_count(&self) -> usize {
        self.records().hits.len()
    }

    /// All connections that have ended, in the order in which they were opened.
    pub fn connections(&self) -> Vec<Connection> {
        let mut connections = self.records().connections.clone();
        connections.sort_by_key(|connection| connection.id);
        connections
    }

    /// Connections that ended without a request: refused certificates, broken handshakes, unknown names.
    pub fn connections_without_request(&self) -> Vec<Connection> {
        self.connections().into_iter().filter(|connection| connection.requests == 0).collect()
    }

    /// How many connections were opened since the web began, including those that have not ended.
    pub fn opened_count(&self) -> u64 {
        self.next_connection.load(Ordering::Relaxed)
    }

    /// Removes the records in memory, so that a second pass can be checked separately.
    pub fn clear(&self) {
        let mut records = self.records();
        records.hits.clear();
        records.connections.clear();
    }

    /// Waits until the log satisfies a condition. There is no time limit, so the caller must set a timeout.
    pub async fn wait_until(&self, condition: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            if condition(self) {
                return;
            }
            changed.await;
        }
    }

    /// Microseconds since the web began.
    pub fn now_us(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    pub(crate) fn number_hit(&self) -> u64 {
        self.next_hit.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn number_connection(&self) -> u64 {
        let number = self.next_connection.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_waiters();
        number
    }

    pub(crate) fn record_hit(&self, hit: Hit) {
        let mut records = self.records();
        records.write(&Line::Hit(&hit));
        records.hits.push(hit);
        drop(records);
        self.changed.notify_waiters();
    }

    pub(crate) fn record_connection(&self, connection: Connection) {
        let mut records = self.records();
        records.write(&Line::Connection(&connection));
        records.connections.push(connection);
        drop(records);
        self.changed.notify_waiters();
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Records {
    /// One write per line, so that a reader of the file never sees a partial line.
    fn write(&mut self, line: &Line<'_>) {
        let Some(file) = &mut self.file else { return };
        let mut bytes = serde_json::to_vec(line).expect("a record is plain data");
        bytes.push(b'\n');
        file.write_all(&bytes).expect("cannot write to the log file, which the audit needs");
    }
}

/// A hit whose answer is being sent. It is recorded on drop, also after an error.
pub(crate) struct OpenHit {
    log: Arc<Log>,
    hit: Option<Hit>,
}

impl OpenHit {
    pub(crate) fn new(log: Arc<Log>, hit: Hit) -> Self {
        Self { log, hit: Some(hit) }
    }

    pub(crate) fn add_bytes(&mut self, count: usize) {
        self.with(|hit| hit.body_bytes += count as u64);
    }

    pub(crate) fn mark_complete(&mut self) {
        self.with(|hit| hit.complete = true);
    }

    pub(crate) fn with(&mut self, change: impl FnOnce(&mut Hit)) {
        if let Some(hit) = &mut self.hit {
            change(hit);
        }
    }
}

impl Drop for OpenHit {
    fn drop(&mut self) {
        if let Some(mut hit) = self.hit.take() {
            hit.ended_us = self.log.now_us();
            self.log.record_hit(hit);
        }
    }
}

/// Microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the log records the time of requests")]
pub(crate) fn wall_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
