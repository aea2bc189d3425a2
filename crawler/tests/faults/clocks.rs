//! Steps of the system clock during a crawl do not change delays.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::fixture::{Fixture, text};
use crate::skipped::skipped;
use crate::support::shop;

const DELAY: Duration = Duration::from_millis(150);
/// Paths of libfaketime on Debian, by architecture.
const LIBRARIES: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/faketime/libfaketime.so.1",
];

/// Pass criterion: no gap is shorter than the delay, and the crawl continues.
#[tokio::test]
async fn clock_steps_do_not_change_delays() {
    let Some(library) = LIBRARIES.iter().find(|path| Path::new(path).exists()) else {
        skipped("libfaketime is not installed (Debian: apt-get install libfaketime)");
        return;
    };
    let fixture = Fixture::with([shop()]).await;
    fixture.file("seeds", "shop.example\n");
    let clock = fixture.file("clock", "+0\n");
    let delay = format!("{}ms", DELAY.as_millis());
    let child = fixture
        .command(&["--seeds", "seeds", "--delay", &delay, "--format", "json"])
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", &clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("DONT_FAKE_MONOTONIC", "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for (hits, jump) in [(4, "+1h\n"), (9, "-1h\n"), (14, "+0\n")] {
        fixture.web.log().wait_until(|log| log.hit_count() >= hits).await;
        std::fs::write(&clock, jump).unwrap();
    }
    let ended =
        tokio::time::timeout(Duration::from_mins(1), child.wait_with_output()).await.unwrap().unwrap();
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!((&summary["sites_visited"], &summary["requests"]), (&1.into(), &20.into()), "{summary}");
    let hits = fixture.web.log().hits_on("shop.example");
    for pair in hits.windows(2) {
        let gap = Duration::from_micros(pair[1].started_us.saturating_sub(pair[0].ended_us));
        assert!(gap >= DELAY, "{gap:?} between {} and {}", pair[0].path, pair[1].path);
    }
}
