//! SIGHUP: what may change does so while the program runs, and a file that is wrong changes nothing.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use testweb::Web;

use crate::world::{Api, Backend, PATIENCE, World, client};

/// How the interface hears of a client that is not on this machine.
const STRANGER: (&str, &str) = ("x-forwarded-for", "192.0.2.7");

fn write(file: &Path, limits: &str) {
    let text = format!("[api]\ntrusted_proxies = [\"127.0.0.1\"]\n[api.limits]\n{limits}\n");
    std::fs::write(file, text).unwrap();
}

/// The reads that a stranger may do at once, as every answer tells.
#[expect(clippy::disallowed_methods, reason = "asks our own api on loopback")]
async fn burst(api: &Api) -> String {
    let asked = client().get(format!("{}/stats", api.base())).header(STRANGER.0, STRANGER.1).send().await;
    asked.unwrap().headers()["ratelimit-limit"].to_str().unwrap().to_owned()
}

async fn soon(what: &str, is_so: impl AsyncFn() -> bool) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.unwrap_or_else(|_| panic!("{what}: not in time"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reloads_the_limits_unless_the_file_is_invalid() {
    let world = World::start(Backend::Sqlite, Web::builder()).await;
    let (file, log) = (world.path("agentdex.toml"), world.path("api.log"));
    write(&file, "reads_burst = 7");
    let api = Api::start(&world, |command| {
        command.arg("--config").arg(&file).stderr(File::create(&log).unwrap());
    });
    soon("the api answers", async || api.try_get("/healthz").await.is_some()).await;
    assert_eq!(burst(&api).await, "7");

    write(&file, "reads_burst = 9");
    api.hang_up();
    soon("the new limit", async || burst(&api).await == "9").await;

    write(&file, "reads_burst = 11\nreads_brust = 12");
    api.hang_up();
    let told = || std::fs::read_to_string(&log).unwrap();
    soon("the complaint", async || told().contains("nothing was changed")).await;
    assert!(told().contains("reads_brust"), "{}", told());
    assert_eq!(burst(&api).await, "9");
}
