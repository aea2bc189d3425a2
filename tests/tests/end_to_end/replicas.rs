//! APIs on a streaming replica of PostgreSQL: reads are those of the primary, writes are refused with the reason, and lag is only delay.

use std::time::Duration;

use agentdex_tests::harness::PostgresServer;
use reqwest::StatusCode;
use serde_json::{Value, json};
use sqlx::Connection as _;
use testweb::{Host, Web};

use crate::flow::airline;
use crate::world::{Api, Backend, TIMEOUT, World, client};

const SITE: &str = "sky.test";

/// What a client of an API can read, with the places of the ids of one capability and its manifest.
const READS: [&str; 13] = [
    "/search?q=book+flight",
    "/search?site=sky.test&facets=format",
    "/suggest?q=fl",
    "/sites",
    "/sites/sky.test",
    "/capabilities/CAPABILITY",
    "/capabilities/CAPABILITY/similar",
    "/manifests/MANIFEST",
    "/changes",
    "/export.jsonl",
    "/semantic-types",
    "/stats",
    "/metrics",
];

/// A primary with a crawled site and its index, a replica, and an API on each.
struct Replicated {
    world: World,
    primary: PostgresServer,
    replica: PostgresServer,
    on_primary: Api,
    on_replica: Api,
}

impl Replicated {
    async fn start() -> Self {
        let host = Host::new(SITE).file("/agent.json", "application/json", airline("book_flight"));
        let mut world = World::start(Backend::Sqlite, Web::builder().host(host)).await;
        world.write_seeds([SITE]);
        let (primary, replica) = (PostgresServer::planned().unwrap(), PostgresServer::planned().unwrap());
        primary.start().unwrap();
        world.database_url = Some(primary.url("postgres"));
        world.crawl(&[]);
        world.index();
        replica.start_as_replica_of(&primary).unwrap();
        let on_primary = world.api().await;
        world.database_url = Some(replica.url("postgres"));
        let log = std::fs::File::create(world.path("replica.log")).unwrap();
        let on_replica = Api::start(&world, |command| {
            command.stderr(log);
        });
        on_replica.wait_until_ready().await;
        world.database_url = Some(primary.url("postgres"));
        Self { world, primary, replica, on_primary, on_replica }
    }

    /// The paths that clients read.
    async fn paths(&self) -> Vec<String> {
        let found = self.on_primary.get("/search?q=book+flight").await;
        let first = &found["results"][0];
        let of = |name: &str| first[name].as_str().unwrap_or_else(|| panic!("no {name}: {found}")).to_owned();
        let (capability, manifest) = (of("id"), of("manifest_id"));
        READS.map(|path| path.replace("CAPABILITY", &capability).replace("MANIFEST", &manifest)).to_vec()
    }

    async fn on_replica_server(&self, statement: &'static str) {
        let mut connection = sqlx::PgConnection::connect(&self.replica.url("postgres")).await.unwrap();
        sqlx::raw_sql(statement).execute(&mut connection).await.unwrap();
    }

    /// The actions that an API shows for the site.
    async fn actions(api: &Api) -> String {
        api.get("/sites/sky.test").await.to_string()
    }

    /// Waits until the API on the replica shows an action.
    async fn wait_for(&self, action: &str) {
        let shown = async {
            while !Self::actions(&self.on_replica).await.contains(action) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, shown).await.expect("the replica did not catch up");
    }
}

#[expect(clippy::disallowed_methods, reason = "a client of the local api")]
async fn post(api: &Api, path: &str, body: &Value) -> (StatusCode, String) {
    let request = client().post(format!("{}{path}", api.base())).header("content-type", "application/json");
    let answer = request.body(body.to_string()).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

/// With the URL of the primary, an API on the replica reads from the replica and writes to the primary, the counts of searches too.
async fn assert_writes_of_a_replica_with_a_primary(of: &mut Replicated) {
    let mut connection = sqlx::PgConnection::connect(&of.primary.url("postgres")).await.unwrap();
    sqlx::raw_sql(
        "INSERT INTO site_claim (site, key_hash, proof, since_ms, proven_at_ms)
         VALUES ('sky.test', repeat('0f', 32), 'dns', 1, CAST(extract(epoch FROM now()) * 1000 AS BIGINT))",
    )
    .execute(&mut connection)
    .await
    .unwrap();
    let shows_owner = async |api: &Api| api.get("/sites/sky.test").await["owner"].is_object();
    let arrived = async {
        while !shows_owner(&of.on_replica).await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, arrived).await.expect("the owner did not arrive on the replica");
    let primary_url = of.world.database_url.replace(of.replica.url("postgres"));
    let log = std::fs::File::create(of.world.path("with_primary.log")).unwrap();
    let mut api = Api::start(&of.world, |command| {
        command.args(["--primary-url", primary_url.as_deref().unwrap()]).stderr(log);
    });
    of.world.database_url = primary_url;
    api.wait_until_ready().await;
    for (path, body) in [
        ("/sites", json!({"domain": "fourth.test"})),
        ("/reports", json!({"site": SITE, "reason": "malware"})),
        ("/sites/sky.test/claim", json!({})),
    ] {
        let (status, text) = post(&api, path, &body).await;
        assert!(status.is_success(), "{path}: {text}");
    }
    assert_eq!(of.on_primary.try_get("/sites/fourth.test").await.unwrap().status(), StatusCode::OK);
    let found = api.get("/search?q=book+flight").await;
    assert_eq!(found["results"][0]["site"], SITE, "{found}");
    api.stop();
    let count = "SELECT CAST(SUM(searches) AS BIGINT) FROM search_count WHERE site = 'sky.test'";
    let count: Option<i64> = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
    assert!(count.is_some_and(|count| count >= 1), "the search on the replica is counted on the primary");
    let log = std::fs::read_to_string(of.world.path("with_primary.log")).unwrap();
    assert!(!log.contains("the database is unavailable"), "{log}");
}

/// Everything that can be read is the same on both. Writes succeed on the primary alone.
async fn assert_reads_and_refused_writes(of: &Replicated) {
    for path in of.paths().await {
        let here = of.on_primary.try_get(&path).await.unwrap();
        let there = of.on_replica.try_get(&path).await.unwrap();
        assert_eq!((here.status(), there.status()), (StatusCode::OK, StatusCode::OK), "{path}");
    }
    for path in ["/sites/sky.test", "/changes"] {
        assert_eq!(of.on_primary.get(path).await, of.on_replica.get(path).await, "{path}");
    }
    let writes =
        [("/sites", json!({"domain": "other.test"})), ("/reports", json!({"site": SITE, "reason": "spam"}))];
    for (path, body) in writes {
        let (status, text) = post(&of.on_replica, path, &body).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{path}: {text}");
        assert!(text.contains("read-only") && text.contains("primary"), "{path}: {text}");
        let (status, text) = post(&of.on_primary, path, &body).await;
        assert!(status.is_success(), "{path}: {text}");
    }
    let log = std::fs::read_to_string(of.world.path("replica.log")).unwrap();
    assert!(!log.contains("the database is unavailable"), "a refused write is no outage: {log}");
}

/// A replica that lags shows the earlier state; when it catches up, the later one.
async fn assert_lag_is_delay(of: &Replicated) {
    of.on_replica_server("SELECT pg_wal_replay_pause()").await;
    of.world.web.set_file(SITE, "/agent.json", "application/json", airline("cancel_flight"));
    of.world.crawl(&["--revisit", "0s"]);
    assert!(Replicated::actions(&of.on_primary).await.contains("cancel_flight"));
    assert!(Replicated::actions(&of.on_replica).await.contains("book_flight"));
    assert!(of.on_replica.try_get("/readyz").await.unwrap().status().is_success());
    of.on_replica_server("SELECT pg_wal_replay_resume()").await;
    of.wait_for("cancel_flight").await;
    // a reader of the primary gives positions to new entries, which then have to arrive
    let changes = of.on_primary.get("/changes").await;
    let arrived = async {
        while of.on_replica.get("/changes").await != changes {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, arrived).await.expect("the changes did not arrive");
}

/// After the primary is lost and the replica is promoted, the API on it accepts writes without a restart.
async fn assert_promotion(of: Replicated) {
    let Replicated { mut world, primary, replica, on_primary, on_replica } = of;
    drop((on_primary, primary));
    let mut connection = sqlx::PgConnection::connect(&replica.url("postgres")).await.unwrap();
    sqlx::raw_sql("SELECT pg_promote()").execute(&mut connection).await.unwrap();
    let (status, text) = post(&on_replica, "/sites", &json!({"domain": "third.test"})).await;
    assert!(status.is_success(), "{text}");
    world.database_url = Some(replica.url("postgres"));
    world.web.set_file(SITE, "/agent.json", "application/json", airline("rebook_flight"));
    world.crawl(&["--revisit", "0s"]);
    let shown = Replicated::actions(&on_replica).await;
    assert!(shown.contains("rebook_flight"), "{shown}");
    world.assert_polite();
}

pub(crate) async fn apis_read_from_a_streaming_replica() {
    let mut replicated = Replicated::start().await;
    assert_reads_and_refused_writes(&replicated).await;
    assert_writes_of_a_replica_with_a_primary(&mut replicated).await;
    assert_lag_is_delay(&replicated).await;
    assert_promotion(replicated).await;
}
