//! The log of every hit and connection: in memory, and as JSONL where a file was asked for.
//!
//! Records are kept when they end. Readers get them in the order in which they began.

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
    kept: Mutex<Kept>,
    changed: Notify,
}

#[derive(Default)]
struct Kept {
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
            kept: Mutex::new(Kept { file, ..Kept::default() }),
            changed: Notify::new(),
        })
    }

    /// All hits that have ended, by the time they began.
    pub fn hits(&self) -> Vec<Hit> {
        let mut hits = self.kept().hits.clone();
        hits.sort_by_key(|hit| hit.id);
        hits
    }

    /// The ended hits on one host.
    pub fn hits_on(&self, host: &str) -> Vec<Hit> {
        self.hits().into_iter().filter(|hit| hit.host == host).collect()
    }

    /// How many hits have ended.
    pub fn hit_count(&self) -> usize {
        self.kept().hits.len()
    }

    /// All connections that have ended, by the time they were opened.
    pub fn connections(&self) -> Vec<Connection> {
        let mut connections = self.kept().connections.clone();
        connections.sort_by_key(|connection| connection.id);
        connections
    }

    /// Connections that ended without a request: refused certificates, broken handshakes, unknown names.
    pub fn connections_without_request(&self) -> Vec<Connection> {
        self.connections().into_iter().filter(|connection| connection.requests == 0).collect()
    }

    /// Forgets what was written so far (in memory only), so that a second pass is judged by itself.
    pub fn forget(&self) {
        let mut kept = self.kept();
        kept.hits.clear();
        kept.connections.clear();
    }

    /// Waits until the log satisfies a condition. Waits without limit: put it under the test's own timeout.
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
        self.next_connection.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn keep_hit(&self, hit: Hit) {
        let mut kept = self.kept();
        kept.write(&Line::Hit(&hit));
        kept.hits.push(hit);
        drop(kept);
        self.changed.notify_waiters();
    }

    pub(crate) fn keep_connection(&self, connection: Connection) {
        let mut kept = self.kept();
        kept.write(&Line::Connection(&connection));
        kept.connections.push(connection);
        drop(kept);
        self.changed.notify_waiters();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// One write a line, so that a reader of the file never sees half of one.
    fn write(&mut self, line: &Line<'_>) {
        let Some(file) = &mut self.file else { return };
        let mut bytes = serde_json::to_vec(line).expect("a record is plain data");
        bytes.push(b'\n');
        file.write_all(&bytes).expect("the log file takes a line; without it no audit is worth anything");
    }
}

/// A hit whose answer is on its way. It is written down when this is dropped, however the answer ended.
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
            self.log.keep_hit(hit);
        }
    }
}

/// Microseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the log writes down when a request came")]
pub(crate) fn wall_us() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
