//! Many clients that request a large response and never read it, in a separate process whose memory is measured.

#![expect(clippy::unwrap_used, reason = "a failed test should show the line")]

#[path = "../support/fixture.rs"]
mod fixture;

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use api::{ClientTimeouts, MinRate};
use manifest::{Discovery, Document, ManifestUrl};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, fetched_at, found};

/// The allocator of the program `api`, because the allocator decides when memory is returned to the system.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const CLIENTS: u8 = 250;
/// Source addresses of the clients.
const ADDRESSES: u8 = 10;
const DOCUMENT_BYTES: usize = 4_900_000;
const MORE_MEMORY_MAX_KIB: u64 = 128 * 1024;
/// Maximum time that a client may leave its response unread in this test.
const UNREAD_MAX: Duration = Duration::from_secs(8);
/// Timeout of each wait.
const SOON: Duration = Duration::from_mins(2);

/// Saves a site with one document of a few megabytes; returns the path of its bytes.
async fn published(fixture: &Fixture) -> String {
    let url = ManifestUrl::parse("https://large.example/agent.json").unwrap();
    let (begin, end) = (
        r#"{"awp_version": "0.1", "domain": "large.example", "intent": "x", "actions": [], "x": ""#,
        r#""}"#,
    );
    // Pseudo-random letters, which compress badly, so that stored and compressed documents are large too.
    let mut state = 1_u32;
    let filler = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        char::from(b'a' + u8::try_from((state >> 24) % 26).unwrap())
    });
    let filler: String = filler.take(DOCUMENT_BYTES - begin.len() - end.len()).collect();
    let body = format!("{begin}{filler}{end}").into_bytes();
    let manifest = manifest::read(&Document {
        bytes: &body,
        url: &url,
        final_url: None,
        discovery: Discovery::WellKnown,
        served: None,
        linked: &[],
        force: None,
    });
    let path = format!("/manifests/{}/raw", manifest.id);
    fixture.visit(vec![found(manifest, body, fetched_at())], Vec::new(), fetched_at()).await;
    path
}

/// Resident memory of this process.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Sends a request and does not read the response; returns the connection.
async fn ask(server: SocketAddr, number: u8, path: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let from = SocketAddr::from((Ipv4Addr::new(127, 0, 1, number % ADDRESSES + 1), 0));
    socket.bind(from).unwrap();
    let mut stream = socket.connect(server).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await.unwrap();
    stream
}

/// Forty clients that read their responses. The memory that they cause is not counted as growth: database connections, caches, and memory
/// that the allocator has not yet returned. Returns the peak resident memory.
async fn warm_up(server: SocketAddr, path: &str) -> u64 {
    let mut readers = JoinSet::new();
    for number in 0..40 {
        let stream = ask(server, number, path).await;
        readers.spawn(async move {
            let mut stream = stream;
            let mut buffer = vec![0; 64 * 1024];
            let mut read = 0;
            while read < DOCUMENT_BYTES {
                let more = tokio::time::timeout(SOON, stream.read(&mut buffer)).await.unwrap().unwrap();
                read += more;
                let is_refused = read < 10_000 && !buffer.starts_with(b"HTTP/1.1 200");
                if more == 0 || is_refused {
                    return;
                }
            }
        });
    }
    let mut most = resident_kib();
    while let Some(read) = readers.join_next().await {
        read.unwrap();
        most = most.max(resident_kib());
    }
    most
}

#[tokio::test]
async fn unread_responses_are_aborted_and_memory_stays_constant() {
    let fixture = Fixture::new().await;
    let path = published(&fixture).await;
    fixture.build_index().await;
    let mut config = fixture.config();
    let reads = MinRate { allowance: UNREAD_MAX, bytes_per_second: 4_096 };
    config.timeouts = ClientTimeouts { reads, ..ClientTimeouts::default() };
    let (_, app) = fixture.serve(config).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let mut serving = JoinSet::new();
    serving.spawn(api::serve(listener, app, stop.clone()));
    let before = warm_up(server, &path).await;
    let mut silent = Vec::new();
    for number in 0..CLIENTS {
        silent.push(ask(server, number, &path).await);
    }
    let mut most = before;
    let (mut large, mut refused) = (0, 0);
    for stream in &mut silent {
        let mut begin = [0; 12];
        tokio::time::timeout(SOON, stream.read_exact(&mut begin)).await.unwrap().unwrap();
        match &begin {
            b"HTTP/1.1 200" => large += 1,
            b"HTTP/1.1 429" | b"HTTP/1.1 503" => refused += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
        most = most.max(resident_kib());
    }
    assert!(large >= 3, "{large} were served, {refused} refused");
    println!("{large} served, {refused} refused, {before} KiB before and {most} KiB at most");
    assert!(most.saturating_sub(before) <= MORE_MEMORY_MAX_KIB, "{} KiB more", most - before);
    // No client reads, and in the end all connections are closed: with a reset if a response was in progress.
    tokio::time::sleep(UNREAD_MAX).await;
    let mut cut = 0;
    for stream in &mut silent {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(SOON, stream.read_to_end(&mut rest)).await.expect("it is gone");
        cut += usize::from(ended.is_err());
    }
    assert_eq!(cut, large, "every unread response was aborted");
    drop(silent);
    stop.cancel();
    tokio::time::timeout(SOON, serving.join_next()).await.unwrap().unwrap().unwrap().unwrap();
}
