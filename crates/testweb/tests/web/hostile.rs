//! Tests of hosts that misbehave in different ways, with a real client.

use std::time::Duration;

use testweb::{Answer, Certificate, Handshake, HandshakeOutcome, Host, Web};

use crate::client::{client, get, get_with};

fn hostile() -> Host {
    Host::new("hostile.example")
        .route("/busy", Answer::retry_after(503, "120").times(2, Answer::text("open again")))
        .route("/raw", Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nx"))
        .route("/drip", Answer::raw("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").dripping(9, TICK))
        .route("/slow-body", Answer::text("four").dripping(1, TICK))
        .route("/slow-head", Answer::text("late").after(TICK))
        .route("/short", Answer::text("short").with_content_length(1000))
        .route("/endless", Answer::endless("application/json"))
        .route("/reset", Answer::reset())
        .route("/close", Answer::close())
        .route("/silence", Answer::silence())
        .route("/big-head", Answer::text("x").padded(4, 1000))
        .route("/bomb", Answer::gzip_bomb("application/json", 10 << 20))
}

/// A short delay. The tests check only that it is not skipped.
const TICK: Duration = Duration::from_millis(5);

async fn web() -> Web {
    Web::builder()
        .host(hostile())
        .host(Host::new("expired.example").certificate(Certificate::Expired))
        .host(Host::new("early.example").certificate(Certificate::NotYetValid))
        .host(Host::new("wrong-name.example").certificate(Certificate::WrongName))
        .host(Host::new("self-signed.example").certificate(Certificate::SelfSigned))
        .host(Host::new("unknown-ca.example").certificate(Certificate::UnknownAuthority))
        .host(Host::new("reset.example").handshake(Handshake::Reset))
        .host(Host::new("close.example").handshake(Handshake::Close))
        .host(Host::new("stall.example").handshake(Handshake::Stall))
        .host(Host::new("refusing.example").refusing_connections())
        .start()
        .await
        .expect("the web starts")
}

#[tokio::test]
async fn answers_the_first_requests_differently() {
    let web = web().await;
    let client = client(&web);
    let url = format!("https://hostile.example:{}/busy", web.port());
    for _ in 0..2 {
        let got = get(&client, &url).await.unwrap();
        assert_eq!((got.status, got.header("retry-after")), (503, Some("120")));
    }
    assert_eq!(get(&client, &url).await.unwrap().body, b"open again");
}

#[tokio::test]
async fn broken_responses_fail_at_the_client_and_are_recorded() {
    let web = web().await;
    let client = client(&web);
    for (path, status) in [("/raw", Some(200)), ("/short", Some(200)), ("/reset", None), ("/close", None)] {
        let got = get(&client, &format!("https://hostile.example:{}{path}", web.port())).await;
        assert!(got.is_err(), "{path} gave {:?}", got.map(|got| got.status));
        web.log().wait_until(|log| log.hit_count() == 1).await;
        let hit = web.log().hits().remove(0);
        assert_eq!((hit.path.as_str(), hit.status), (path, status));
        web.log().clear();
    }
}

#[tokio::test]
async fn slow_responses_arrive_completely() {
    let web = web().await;
    let client = client(&web);
    for (path, body) in [("/drip", "ok"), ("/slow-body", "four"), ("/slow-head", "late")] {
        let got = get(&client, &format!("https://hostile.example:{}{path}", web.port())).await.unwrap();
        assert_eq!(got.body, body.as_bytes(), "{path}");
    }
    web.log().wait_until(|log| log.hit_count() == 3).await;
    for hit in web.log().hits() {
        let lasted = Duration::from_micros(hit.ended_us - hit.started_us);
        assert!(lasted >= TICK, "{} took {lasted:?}", hit.path);
        assert!(hit.complete, "{}", hit.path);
    }
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "this client connects only to the test web")]
async fn records_endless_responses_when_the_client_disconnects() {
    let web = web().await;
    for path in ["/endless", "/silence"] {
        let client = client(&web);
        let url = format!("https://hostile.example:{}{path}", web.port());
        if path == "/endless" {
            let mut response = client.get(&url).send().await.unwrap();
            assert!(!response.chunk().await.unwrap().unwrap().is_empty());
        } else {
            let asking = client.get(&url).send();
            assert!(tokio::time::timeout(Duration::from_millis(200), asking).await.is_err());
        }
        drop(client);
        web.log().wait_until(|log| log.hit_count() == 1).await;
        let hit = web.log().hits().remove(0);
        assert_eq!((hit.path.as_str(), hit.complete), (path, false));
        web.log().clear();
    }
}

#[tokio::test]
async fn padded_headers_and_gzip_bombs_have_the_configured_size() {
    let web = web().await;
    let client = client(&web);
    let base = format!("https://hostile.example:{}", web.port());
    let got = get(&client, &format!("{base}/big-head")).await.unwrap();
    assert_eq!(got.headers.iter().filter(|(_, value)| value.len() == 1000).count(), 4);
    let bomb = get_with(&client, &format!("{base}/bomb"), &[("accept-encoding", "gzip")]).await.unwrap();
    assert_eq!(bomb.header("content-encoding"), Some("gzip"));
    assert!(bomb.body.len() < 32 * 1024, "{} bytes", bomb.body.len());
    let mut decoded = flate2::read::GzDecoder::new(bomb.body.as_slice());
    assert_eq!(std::io::copy(&mut decoded, &mut std::io::sink()).unwrap(), 10 << 20);
}

#[tokio::test]
async fn invalid_certificates_and_handshakes_end_without_a_request() {
    let web = web().await;
    let client = client(&web);
    let hosts = [
        "expired.example",
        "early.example",
        "wrong-name.example",
        "self-signed.example",
        "unknown-ca.example",
        "reset.example",
        "close.example",
        "refusing.example",
    ];
    for host in hosts {
        assert!(get(&client, &format!("https://{host}/")).await.is_err(), "{host}");
    }
    web.log().wait_until(|log| log.connections_without_request().len() == hosts.len() - 1).await;
    let connections = web.log().connections_without_request();
    for connection in &connections {
        let misbehaved = connection.handshake == HandshakeOutcome::Misbehaved;
        let host = connection.host.as_deref().unwrap();
        assert_eq!(misbehaved, ["reset.example", "close.example"].contains(&host), "{host}");
        assert_ne!(connection.handshake, HandshakeOutcome::Completed, "{host}");
    }
    assert_eq!(web.log().hit_count(), 0);
}

#[tokio::test]
async fn a_stalled_handshake_lasts_until_the_client_disconnects() {
    let web = web().await;
    let client = client(&web);
    let asking = async { get(&client, &format!("https://stall.example:{}/", web.port())).await.is_err() };
    assert!(tokio::time::timeout(Duration::from_millis(200), asking).await.is_err());
    drop(client);
    web.log().wait_until(|log| log.connections().len() == 1).await;
    assert_eq!(web.log().connections()[0].handshake, HandshakeOutcome::Misbehaved);
}
