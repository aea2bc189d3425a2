//! Tests which errors of a PostgreSQL server are retried, with a server that answers every connection with the same error.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

use std::time::Duration;

use store::{DatabaseUrl, Store, StoreConfig, StoreError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Answers the startup message of every connection with an error of this SQLSTATE.
async fn refusing(listener: TcpListener, code: &'static str) {
    while let Ok((mut stream, _)) = listener.accept().await {
        let mut startup = [0; 1_024];
        if stream.read(&mut startup).await.is_err() {
            continue;
        }
        let fields = format!("SFATAL\0VFATAL\0C{code}\0Mrefused for the test\0\0");
        let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
        let answer = [b"E".as_slice(), &length, fields.as_bytes()].concat();
        // the client has closed the connection
        drop(stream.write_all(&answer).await);
    }
}

async fn opened(code: &'static str) -> (StoreConfig, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut servers = JoinSet::new();
    servers.spawn(refusing(listener, code));
    let url = format!("postgres://me:secret@127.0.0.1:{port}/agentdex?sslmode=disable");
    (StoreConfig::new(DatabaseUrl::parse(&url).unwrap()), servers)
}

#[tokio::test]
async fn retries_while_a_server_starts_or_is_full() {
    for code in ["57P03", "57P01", "53300"] {
        let (config, _server) = opened(code).await;
        let error = Store::open(&config).await.err().unwrap();
        let is_away = matches!(error, StoreError::Unavailable { .. } | StoreError::Unreachable { .. });
        assert!(is_away && error.is_transient(), "{code}: {error}");
        let waiting = Store::open_when_available(&config);
        let waited = tokio::time::timeout(Duration::from_secs(1), waiting).await;
        assert!(waited.is_err(), "{code} was not retried");
    }
}

#[tokio::test]
async fn reports_permanent_errors_immediately() {
    for code in ["28P01", "28000", "3D000"] {
        let (config, _server) = opened(code).await;
        let opening = Store::open_when_available(&config);
        let opened = tokio::time::timeout(Duration::from_secs(30), opening).await.unwrap();
        let error = opened.err().unwrap();
        assert!(matches!(error, StoreError::Rejected { .. }), "{code}: {error:?}");
        let text = error.to_string();
        assert!(!text.contains("returned from database") && !text.contains("at line"), "{text}");
        assert!(text.contains("refused for the test") && text.contains("--database-url"), "{text}");
        assert!(!text.contains("secret") && !error.is_transient(), "{text}");
    }
}

#[tokio::test]
async fn retries_after_a_refused_port_and_an_unknown_name() {
    for url in ["postgres://me@127.0.0.1:1/agentdex", "postgres://me@database.invalid/agentdex"] {
        let config = StoreConfig::new(DatabaseUrl::parse(url).unwrap());
        let waiting = Store::open_when_available(&config);
        assert!(tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err(), "{url}");
    }
}
