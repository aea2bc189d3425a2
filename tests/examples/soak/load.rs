//! Clients that search continuously and choose API processes like a load balancer: they skip a process that refuses the connection; any
//! other missing response is a failure.

use std::sync::OnceLock;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

const CLIENTS: usize = 2;
/// Delay between two searches of a client.
const PAUSE: Duration = Duration::from_millis(100);
const QUERIES: [&str; 5] =
    ["q=order+parcel", "q=book+flight", "q=delivery&format=awp", "site=shop1.test", "q=order&facets=format"];

/// The results of all clients.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) took: Vec<Duration>,
    pub(crate) failures: Vec<String>,
}

impl Answers {
    /// The latency of this percentile.
    pub(crate) fn percentile(&mut self, percent: usize) -> Duration {
        self.took.sort_unstable();
        self.took.get(self.took.len() * percent / 100).copied().unwrap_or_default()
    }
}

pub(crate) struct Load {
    stop: CancellationToken,
    clients: JoinSet<Answers>,
}

impl Load {
    pub(crate) fn on(interfaces: &[String]) -> Self {
        let stop = CancellationToken::new();
        let mut clients = JoinSet::new();
        for first in 0..CLIENTS {
            clients.spawn(ask_on(interfaces.to_vec(), first, stop.clone()));
        }
        Self { stop, clients }
    }

    pub(crate) async fn stop(self) -> Answers {
        self.stop.cancel();
        self.clients.join_all().await.into_iter().fold(Answers::default(), |mut all, one| {
            all.took.extend(one.took);
            all.failures.extend(one.failures);
            all
        })
    }
}

async fn ask_on(interfaces: Vec<String>, first: usize, stop: CancellationToken) -> Answers {
    let mut answers = Answers::default();
    let mut turn = first;
    while !stop.is_cancelled() {
        let asked = Instant::now();
        match ask(&interfaces, turn).await {
            Ok(()) => answers.took.push(asked.elapsed()),
            Err(failure) => answers.failures.push(failure),
        }
        turn += 1;
        sleep(PAUSE).await;
    }
    answers
}

#[expect(clippy::disallowed_methods, reason = "a client of the local api")]
async fn ask(interfaces: &[String], turn: usize) -> Result<(), String> {
    let mut last = String::new();
    for offset in 0..interfaces.len() {
        let interface = &interfaces[(turn + offset) % interfaces.len()];
        let url = format!("{interface}/search?{}", QUERIES[turn % QUERIES.len()]);
        match client().get(&url).header("connection", "close").send().await {
            Ok(answer) if answer.status().is_success() => {
                return answer.bytes().await.map(drop).map_err(|error| format!("{url}: {error:?}"));
            }
            Ok(answer) => return Err(format!("{url}: {}", answer.status())),
            Err(error) if error.is_connect() => last = format!("{url}: {error:?}"),
            Err(error) => return Err(format!("{url}: {error:?}")),
        }
    }
    Err(last)
}

/// A client for plain HTTP on loopback, which still requires a crypto provider.
#[expect(clippy::disallowed_methods, reason = "a client of the local programs")]
pub(crate) fn client() -> reqwest::Client {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    let make = || {
        drop(rustls::crypto::ring::default_provider().install_default());
        reqwest::Client::new()
    };
    CLIENT.get_or_init(make).clone()
}
