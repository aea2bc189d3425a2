//! Tests of hosts that behave correctly: files, validators, codings, changes at run time, and the log.

use testweb::{Answer, HandshakeOutcome, Host, Protocols, Web};

use crate::client::{client, get, get_with};

const MODIFIED_S: u64 = 1_700_000_000;

async fn web() -> Web {
    Web::builder()
        .host(
            Host::new("skyhop.example")
                .robots("User-agent: *\nDisallow: /private\n")
                .file("/agent.json", "application/json", "{}")
                .route("/dated", Answer::text("dated").last_modified(MODIFIED_S).max_age(60))
                .route("/coded", Answer::text("coded ".repeat(100)).gzip().brotli())
                .redirect("/old", 301, "/agent.json"),
        )
        .host(
            Host::new("plain.example")
                .protocols(Protocols::Http1)
                .catch_all(Answer::html("<title>shop</title>")),
        )
        .start()
        .await
        .expect("the web starts")
}

#[tokio::test]
async fn serves_a_file_with_an_etag_and_revalidates_it() {
    let web = web().await;
    let client = client(&web);
    let url = "https://skyhop.example/agent.json";
    let first = get(&client, url).await.unwrap();
    assert_eq!((first.status, first.body.as_slice()), (200, b"{}".as_slice()));
    assert_eq!(first.header("content-type"), Some("application/json"));
    let etag = first.header("etag").unwrap();
    let weak = format!("\"other\", W/{etag}");
    for tags in [etag, &weak, "*"] {
        let again = get_with(&client, url, &[("if-none-match", tags)]).await.unwrap();
        assert_eq!((again.status, again.body.len()), (304, 0), "{tags}");
        assert_eq!(again.header("etag"), Some(etag));
    }
    let changed = get_with(&client, url, &[("if-none-match", "\"other\"")]).await.unwrap();
    assert_eq!(changed.status, 200);
}

#[tokio::test]
async fn if_modified_since_applies_only_without_if_none_match() {
    let web = web().await;
    let client = client(&web);
    let url = format!("https://skyhop.example:{}/dated", web.port());
    let first = get(&client, &url).await.unwrap();
    let date = first.header("last-modified").unwrap();
    assert_eq!(date, "Tue, 14 Nov 2023 22:13:20 GMT");
    let same = get_with(&client, &url, &[("if-modified-since", date)]).await.unwrap();
    assert_eq!((same.status, same.header("cache-control")), (304, Some("max-age=60")));
    let older = [("if-modified-since", "Tue, 14 Nov 2023 22:13:19 GMT")];
    assert_eq!(get_with(&client, &url, &older).await.unwrap().status, 200);
    let both = [("if-none-match", "\"other\""), ("if-modified-since", date)];
    assert_eq!(get_with(&client, &url, &both).await.unwrap().status, 200);
}

#[tokio::test]
async fn sends_a_compressed_body_to_clients_that_accept_it() {
    let web = web().await;
    let client = client(&web);
    let url = format!("https://skyhop.example:{}/coded", web.port());
    let cases = [
        ("gzip, br", Some("br")),
        ("gzip;q=0.5", Some("gzip")),
        ("br;q=0, gzip", Some("gzip")),
        ("identity", None),
    ];
    let mut etags = std::collections::BTreeSet::new();
    for (accepted, expected) in cases {
        let got = get_with(&client, &url, &[("accept-encoding", accepted)]).await.unwrap();
        assert_eq!(got.header("content-encoding"), expected, "{accepted}");
        assert_eq!(got.header("vary"), Some("accept-encoding"));
        assert_eq!(expected.is_none(), got.body == "coded ".repeat(100).as_bytes(), "{accepted}");
        etags.insert(got.header("etag").unwrap().to_owned());
    }
    assert_eq!(etags.len(), 3, "one strong ETag for each coded form: {etags:?}");
}

#[tokio::test]
async fn files_can_be_added_changed_and_removed_at_run_time() {
    let web = web().await;
    let base = format!("https://skyhop.example:{}", web.port());
    let etag = {
        let got = get(&client(&web), &format!("{base}/agent.json")).await.unwrap();
        got.header("etag").unwrap().to_owned()
    };
    web.set_file("skyhop.example", "/agent.json", "application/json", r#"{"changed":true}"#);
    web.set("skyhop.example", "/new.txt", "new");
    web.set_host(Host::new("late.example").robots("").route("/", "<p>late</p>"));
    let client = client(&web);
    let changed =
        get_with(&client, &format!("{base}/agent.json"), &[("if-none-match", &etag)]).await.unwrap();
    assert_eq!((changed.status, changed.body.as_slice()), (200, br#"{"changed":true}"#.as_slice()));
    assert_eq!(get(&client, &format!("{base}/new.txt")).await.unwrap().body, b"new");
    let late = get(&client, &format!("https://late.example:{}/", web.port())).await.unwrap();
    assert_eq!(late.header("content-type"), Some("text/html; charset=utf-8"));
    web.remove("skyhop.example", "/agent.json");
    assert_eq!(get(&client, &format!("{base}/agent.json")).await.unwrap().status, 404);
    web.remove_host("late.example");
    assert!(web.socket_of("late.example").is_none());
}

#[tokio::test]
async fn records_every_hit_with_request_and_response_headers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hits.jsonl");
    let web = Web::builder()
        .host(Host::new("skyhop.example").robots("Crawl-delay: 2").route("/agent.json", "{}"))
        .log_file(&path)
        .start()
        .await
        .unwrap();
    let client = client(&web);
    let base = format!("https://skyhop.example:{}", web.port());
    get_with(&client, &format!("{base}/robots.txt"), &[("from", "bot@agentdex.example")]).await.unwrap();
    get(&client, &format!("{base}/agent.json?x=1")).await.unwrap();
    drop(client);
    web.log().wait_until(|log| log.hit_count() == 2 && log.connections().len() == 1).await;
    let hits = web.log().hits();
    let [robots, file] = hits.as_slice() else { panic!("{hits:?}") };
    assert_eq!(robots.robots_body.as_deref(), Some("Crawl-delay: 2"));
    assert_eq!(robots.request.from.as_deref(), Some("bot@agentdex.example"));
    assert_eq!(robots.request.user_agent.as_deref(), Some("testweb-tests/1.0"));
    assert_eq!((file.path.as_str(), file.status, file.body_bytes), ("/agent.json?x=1", Some(200), 2));
    assert_eq!((file.host.as_str(), file.http_version.as_str()), ("skyhop.example", "HTTP/2.0"));
    assert_eq!((robots.connection, file.connection, file.complete), (0, 0, true));
    assert!(robots.started_us <= robots.ended_us && robots.ended_us <= file.started_us);
    assert!(file.response.etag.is_some() && file.server.ip().is_loopback());
    let connections = web.log().connections();
    assert_eq!((connections[0].requests, &connections[0].handshake), (2, &HandshakeOutcome::Completed));
    let lines = std::fs::read_to_string(&path).unwrap();
    let records: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records.len(), 3);
    assert_eq!((&records[0]["record"], &records[2]["record"]), (&"hit".into(), &"connection".into()));
    let read: testweb::Hit = serde_json::from_value(records[1].clone()).unwrap();
    assert_eq!(read.path, file.path);
}

#[tokio::test]
async fn a_catch_all_answers_every_path_and_redirects_keep_their_target() {
    let web = web().await;
    let client = client(&web);
    let got = get(&client, &format!("https://plain.example:{}/any/agent.json", web.port())).await.unwrap();
    assert_eq!((got.status, got.body.as_slice()), (200, b"<title>shop</title>".as_slice()));
    assert_eq!(got.version, reqwest::Version::HTTP_11);
    let moved = get(&client, &format!("https://skyhop.example:{}/old", web.port())).await.unwrap();
    assert_eq!((moved.status, moved.header("location")), (301, Some("/agent.json")));
}
