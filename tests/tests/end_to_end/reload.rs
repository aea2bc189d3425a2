//! SIGHUP reloads the settings that can change at run time; an invalid file changes nothing.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use testweb::Web;

use crate::world::{Api, Backend, TIMEOUT, World, client};

/// The header that makes a client appear to be on another machine.
const REMOTE_CLIENT: (&str, &str) = ("x-forwarded-for", "192.0.2.7");

fn write(file: &Path, limits: &str) {
    let text = format!("[api]\ntrusted_proxies = [\"127.0.0.1\"]\n[api.limits]\n{limits}\n");
    std::fs::write(file, text).unwrap();
}

/// The burst limit for reads of remote clients, from the response headers.
#[expect(clippy::disallowed_methods, reason = "a client of the local api")]
async fn burst(api: &Api) -> String {
    let response =
        client().get(format!("{}/stats", api.base())).header(REMOTE_CLIENT.0, REMOTE_CLIENT.1).send().await;
    response.unwrap().headers()["ratelimit-limit"].to_str().unwrap().to_owned()
}

async fn wait_for(what: &str, is_so: impl AsyncFn() -> bool) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waited).await.unwrap_or_else(|_| panic!("{what}: timeout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn sighup_reloads_the_limits_unless_the_file_is_invalid() {
    let world = World::start(Backend::Sqlite, Web::builder()).await;
    let (file, log) = (world.path("agentdex.toml"), world.path("api.log"));
    write(&file, "reads_burst = 7");
    let api = Api::start(&world, |command| {
        command.arg("--config").arg(&file).stderr(File::create(&log).unwrap());
    });
    wait_for("the api responds", async || api.try_get("/healthz").await.is_some()).await;
    assert_eq!(burst(&api).await, "7");

    write(&file, "reads_burst = 9");
    api.hang_up();
    wait_for("the new limit", async || burst(&api).await == "9").await;

    write(&file, "reads_burst = 11\nreads_brust = 12");
    api.hang_up();
    let log_text = || std::fs::read_to_string(&log).unwrap();
    wait_for("the error in the log", async || log_text().contains("nothing was changed")).await;
    assert!(log_text().contains("reads_brust"), "{}", log_text());
    assert_eq!(burst(&api).await, "9");
}
