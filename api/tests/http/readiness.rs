//! `GET /readyz` while a thread of the runtime is blocked.

use std::sync::mpsc::channel;
use std::time::Duration;

use axum::http::StatusCode;
use runtime::Watchdog;

use crate::world::{Settings, World};

/// The watchdog checks once a second and reports after five failed checks.
const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn readyz_fails_while_a_thread_of_the_runtime_is_blocked() {
    let watched = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let watchdog = Watchdog::start(watched.handle().clone()).unwrap();
    let (release, blocked_until) = channel::<()>();
    let blocking = watched.spawn(async move { blocked_until.recv().is_err() });
    let world = World::with(Settings { runtime_health: watchdog.health(), ..Settings::default() }).await;
    let blocked = tokio::time::timeout(SOON, async {
        loop {
            let ready = world.get("/readyz").await;
            if ready.status != StatusCode::OK {
                return ready;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let blocked = blocked.await.expect("the blocked thread is noticed");
    assert_eq!(blocked.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        blocked.json()["detail"].as_str().unwrap().contains("runtime: 1 of its threads"),
        "{:?}",
        blocked.json()
    );
    drop(release);
    let ready = tokio::time::timeout(SOON, async {
        while world.get("/readyz").await.status != StatusCode::OK {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    ready.await.expect("the thread makes progress again");
    assert!(blocking.await.unwrap());
    watched.shutdown_background();
}
