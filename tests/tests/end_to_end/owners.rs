//! How an operator sees the owners of addresses: a line of `explain`, and the metrics of each worker.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use testweb::{Host, Web};

use crate::flow::airline;
use crate::world::{Backend, TIMEOUT, World, client, kill, output};

/// Number of address groups in `policy::groups`.
const GROUPS: u64 = 4_096;
const OWNED: &str = "agentdex_crawler_address_groups";
const HANDED_OVER: &str = "agentdex_crawler_visits_handed_over_total";
const LOST: &str = "agentdex_crawler_memberships_lost_total";
/// Number of sites whose addresses are unresolved when the second worker starts, each in its own group.
const SITES: u8 = 16;

struct Worker {
    child: Child,
    metrics: String,
}

impl Worker {
    fn start(world: &World) -> Self {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let mut command = world.crawler(&["--daemon", "--strict", "--lease", "5s", "--metrics", &address]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Self { child, metrics: format!("http://{address}/metrics") }
    }

    /// The value of a metric; 0 before the worker serves metrics.
    #[expect(clippy::disallowed_methods, reason = "a client of the local crawler")]
    async fn metric(&self, metric: &str) -> u64 {
        let Ok(answer) = client().get(&self.metrics).send().await else { return 0 };
        let text = answer.text().await.unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix(' '));
        value.map_or(0, |count| count.parse().unwrap())
    }

    /// The end of the worker's name in `explain`.
    fn name(&self) -> String {
        format!("/{}.", self.child.id())
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "the worker had already exited");
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

/// Polls until a condition is true.
async fn wait_for<T: std::fmt::Debug>(ask: impl AsyncFn() -> T, is_it: impl Fn(&T) -> bool) {
    let began = tokio::time::Instant::now();
    loop {
        let answer = ask().await;
        if is_it(&answer) {
            return;
        }
        assert!(began.elapsed() < TIMEOUT, "timed out at {answer:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The line of `explain` about the owner of a site's address.
fn owner_line(world: &World) -> String {
    let mut command = world.program("crawler");
    command.args(["explain", "shop.test"]);
    let text = String::from_utf8(output(command).stdout).unwrap();
    text.lines().find(|line| line.starts_with("Its address is in group")).unwrap_or_default().to_owned()
}

/// Whether each worker owns about half of the groups, and every group has an owner.
fn is_fair((a, b): &(u64, u64)) -> bool {
    a + b == GROUPS && a.abs_diff(*b) < GROUPS / 4
}

pub(crate) async fn explain_and_metrics_name_the_owner_of_an_address() {
    let shop = Host::new("shop.test").robots("User-agent: *\nAllow: /agent.json$\nDisallow: /\n").file(
        "/agent.json",
        "application/json",
        airline("book_flight"),
    );
    // these visits last until groups have moved to the second worker
    let robots = "User-agent: *\nCrawl-delay: 3\nAllow: /agent.json$\nAllow: /agents.json$\nDisallow: /\n";
    let slow =
        |index| Host::new(&format!("site{index}.test")).at([127, 0, 1 + index, 1].into()).robots(robots);
    let web = Web::builder().host(shop).hosts((0..SITES).map(slow));
    let mut world = World::start(Backend::Postgres, web).await;
    world.delay = Duration::from_secs(1);
    world.write_seeds(["shop.test"]);
    let first = Worker::start(&world);
    wait_for(async || first.metric(OWNED).await, |count| *count == GROUPS).await;
    wait_for(async || owner_line(&world), |line| line.ends_with(&first.name())).await;

    world.write_seeds((0..SITES).map(|index| format!("site{index}.test")));
    let second = Worker::start(&world);
    wait_for(async || (first.metric(OWNED).await, second.metric(OWNED).await), is_fair).await;
    wait_for(
        async || first.metric(HANDED_OVER).await + second.metric(HANDED_OVER).await,
        |visits| *visits > 0,
    )
    .await;

    // a paused worker loses its groups, and detects this when it continues
    first.signal("-STOP");
    wait_for(async || second.metric(OWNED).await, |count| *count == GROUPS).await;
    wait_for(async || owner_line(&world), |line| line.ends_with(&second.name())).await;
    assert_eq!(second.metric(LOST).await, 0);
    first.signal("-CONT");
    wait_for(async || first.metric(LOST).await, |lost| *lost == 1).await;
    wait_for(async || (first.metric(OWNED).await, second.metric(OWNED).await), is_fair).await;

    drop(first);
    world.kills += 1;
    wait_for(async || second.metric(OWNED).await, |count| *count == GROUPS).await;
    wait_for(async || owner_line(&world), |line| line.ends_with(&second.name())).await;
    drop(second);
    // each paused or killed visit may cause one repeated request
    world.kills += 2;
    world.assert_polite();
}
