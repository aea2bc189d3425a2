//! A load generator for a server on loopback: many connections, either as fast as responses arrive or at a steady rate.
//!
//! At a steady rate, each request has a due time, and its latency is measured from that time. So a server that falls behind cannot appear
//! fast by slowing its clients down.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{HOST, RETRY_AFTER};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::measure::Times;

/// Timeout of one response.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Delay before a connection is reopened.
const RECONNECT_AFTER: Duration = Duration::from_millis(20);

/// When the next request is sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each request is sent after the response to the previous one.
    AsAnswered,
    /// At this rate per second, independent of responses.
    PerSecond(f64),
    /// At this rate per second, but only while a connection is free. Latencies are measured from the time of sending. For loads above the
    /// capacity of the server, at which clients wait for it.
    Offered(f64),
}

/// The requests to a server.
#[derive(Debug, Clone)]
pub struct Load {
    pub address: SocketAddr,
    pub connections: usize,
    pub pace: Pace,
    pub time: Duration,
}

/// The results of a load.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Responses by status.
    pub answers: BTreeMap<u16, u64>,
    /// Responses 503 with Retry-After.
    pub shed: u64,
    /// Broken connections and missing responses.
    pub failed: u64,
    /// Requests that were due but never sent because every connection was busy.
    pub unsent: u64,
    /// Successful responses per second.
    pub per_second: f64,
    /// Average bytes of a successful response.
    pub bytes: f64,
    /// Latencies of the successful responses.
    pub times: Times,
}

impl Outcome {
    /// Responses that are neither successful nor 503 with Retry-After, and broken connections.
    pub fn errors(&self) -> u64 {
        let others = self.answers.iter().filter(|(status, _)| **status != 200).map(|(_, count)| count);
        others.sum::<u64>() - self.shed + self.failed
    }
}

/// The results of one connection.
#[derive(Debug, Default)]
struct ConnectionResults {
    answers: BTreeMap<u16, u64>,
    shed: u64,
    failed: u64,
    bytes: u64,
    times: Vec<Duration>,
}

/// State shared by the connections.
struct Shared {
    load: Load,
    paths: Arc<[String]>,
    start: Instant,
    end: Instant,
    next: AtomicUsize,
}

impl Shared {
    /// The next request and when it is due; `None` when the time is over.
    fn take(&self) -> Option<(&str, Instant)> {
        let now = Instant::now();
        if now >= self.end {
            return None;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let due = match self.load.pace {
            Pace::AsAnswered => now,
            Pace::PerSecond(rate) => self.start + due_after(number, rate),
            Pace::Offered(rate) => (self.start + due_after(number, rate)).max(now),
        };
        let path = self.paths.get(number % self.paths.len())?;
        (due < self.end).then_some((path, due))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
fn due_after(number: usize, rate: f64) -> Duration {
    Duration::from_secs_f64(number as f64 / rate)
}

/// Requests the paths in turn until the time is over.
pub async fn drive(load: Load, paths: &[String]) -> anyhow::Result<Outcome> {
    anyhow::ensure!(!paths.is_empty(), "a load needs paths to request");
    let (connections, time, pace) = (load.connections, load.time, load.pace);
    let start = Instant::now();
    let shared =
        Arc::new(Shared { load, paths: paths.into(), start, end: start + time, next: AtomicUsize::new(0) });
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        tasks.spawn(run_connection(Arc::clone(&shared)));
    }
    let mut all = ConnectionResults::default();
    while let Some(seen) = tasks.join_next().await {
        let seen = seen.context("a connection's task")?;
        for (status, count) in seen.answers {
            *all.answers.entry(status).or_default() += count;
        }
        all.shed += seen.shed;
        all.failed += seen.failed;
        all.bytes += seen.bytes;
        all.times.extend(seen.times);
    }
    let sent: u64 = all.answers.values().sum::<u64>() + all.failed;
    Ok(outcome(all, time, unsent(pace, time, sent)))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate times seconds")]
fn unsent(pace: Pace, time: Duration, sent: u64) -> u64 {
    match pace {
        Pace::AsAnswered => 0,
        Pace::PerSecond(rate) | Pace::Offered(rate) => {
            ((rate * time.as_secs_f64()) as u64).saturating_sub(sent)
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests are small")]
fn outcome(all: ConnectionResults, time: Duration, unsent: u64) -> Outcome {
    let good = all.times.len() as f64;
    Outcome {
        answers: all.answers,
        shed: all.shed,
        failed: all.failed,
        unsent,
        per_second: (good / time.as_secs_f64()).round(),
        bytes: (all.bytes as f64 / good.max(1.0)).round(),
        times: Times::of(all.times),
    }
}

/// One connection, reopened when it breaks.
async fn run_connection(shared: Arc<Shared>) -> ConnectionResults {
    let mut seen = ConnectionResults::default();
    let mut background = JoinSet::new();
    let mut sender = None;
    while let Some((path, due)) = shared.take() {
        sleep_until(due).await;
        let answered = tokio::time::timeout(TIMEOUT, async {
            let mut connected = match sender.take() {
                Some(connected) => connected,
                None => connect(shared.load.address, &mut background).await?,
            };
            let answer = get(&mut connected, shared.load.address, path).await?;
            anyhow::Ok((connected, answer))
        });
        if let Ok(Ok((connected, answer))) = answered.await {
            sender = (!connected.is_closed()).then_some(connected);
            *seen.answers.entry(answer.status.as_u16()).or_default() += 1;
            if answer.status == StatusCode::OK {
                seen.bytes += answer.bytes;
                seen.times.push(due.elapsed());
            } else if answer.status == StatusCode::SERVICE_UNAVAILABLE && answer.has_retry_after {
                seen.shed += 1;
            }
        } else {
            seen.failed += 1;
            tokio::time::sleep(RECONNECT_AFTER).await;
        }
    }
    background.shutdown().await;
    seen
}

type Sender = SendRequest<Empty<Bytes>>;

async fn connect(address: SocketAddr, background: &mut JoinSet<()>) -> anyhow::Result<Sender> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    background.spawn(async move {
        // The request reports the error.
        connection.await.ok();
    });
    Ok(sender)
}

struct Response {
    status: StatusCode,
    has_retry_after: bool,
    bytes: u64,
}

async fn get(sender: &mut Sender, address: SocketAddr, path: &str) -> anyhow::Result<Response> {
    sender.ready().await?;
    let request = Request::get(path).header(HOST, address.to_string()).body(Empty::new())?;
    let answer = sender.send_request(request).await?;
    let (status, has_retry_after) = (answer.status(), answer.headers().contains_key(RETRY_AFTER));
    let mut body = answer.into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(Response { status, has_retry_after, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers every request on every connection with the same bytes.
    async fn server(answer: &'static str) -> (SocketAddr, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                connections.spawn(async move {
                    let mut buffer = [0; 4096];
                    while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                        if stream.write_all(answer.as_bytes()).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        (address, serving)
    }

    fn load(address: SocketAddr, pace: Pace) -> Load {
        Load { address, connections: 4, pace, time: Duration::from_millis(300) }
    }

    #[tokio::test]
    async fn counts_successes_refusals_and_errors_separately() {
        let (good, _serving) = server("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        let paths = ["/a".to_owned(), "/b".to_owned()];
        let seen = drive(load(good, Pace::PerSecond(100.0)), &paths).await.unwrap();
        assert!((20..=30).contains(&seen.answers[&200]), "{seen:?}");
        assert!((seen.bytes - 2.0).abs() < 1e-9 && seen.errors() == 0, "{seen:?}");
        let seen = drive(load(good, Pace::AsAnswered), &paths).await.unwrap();
        assert!(seen.answers[&200] > 30 && seen.unsent == 0, "{seen:?}");

        let busy = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n";
        let (busy, _serving) = server(busy).await;
        let seen = drive(load(busy, Pace::PerSecond(50.0)), &paths).await.unwrap();
        assert!(seen.shed > 5 && seen.errors() == 0 && seen.times.runs == 0, "{seen:?}");

        let (broken, _serving) = server("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n").await;
        let seen = drive(load(broken, Pace::PerSecond(50.0)), &paths).await.unwrap();
        assert!(seen.errors() > 5, "{seen:?}");
    }

    #[tokio::test]
    async fn an_unreachable_server_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let seen = drive(load(address, Pace::PerSecond(50.0)), &["/".to_owned()]).await.unwrap();
        assert!(seen.failed > 0 && seen.errors() == seen.failed, "{seen:?}");
    }
}
