//! Tests of decoding, of caps and of the minimum rate of response bodies.

use super::*;

use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{Stream, StreamExt as _};
use http::{HeaderMap, StatusCode};

const MIB: usize = 1024 * KIB;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Feeds a body in pieces of 1,000 bytes.
fn read_all(coding: Coding, kind: BodyKind, wire: &[u8]) -> Result<Body, Failure> {
    let mut reader = Reader::new(coding, kind);
    let mut wire_bytes = 0;
    for chunk in wire.chunks(1_000) {
        wire_bytes += chunk.len() as u64;
        if reader.push(chunk, wire_bytes)? == Progress::Enough {
            return Ok(reader.cut(wire_bytes));
        }
    }
    reader.finish(wire_bytes)
}

/// Text that compresses about as well as JSON does.
fn lifelike(bytes: usize) -> Vec<u8> {
    let mut state = 7_u32;
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + u8::try_from(state >> 24).unwrap() % 26
    })
    .take(bytes)
    .collect()
}

#[test]
fn gzip_and_plain_bodies_are_decoded_whole() {
    let text = lifelike(200_000);
    for (coding, wire) in [(Coding::Identity, text.clone()), (Coding::Gzip, gzip(&text))] {
        let body = read_all(coding, BodyKind::Manifest, &wire).unwrap();
        assert_eq!((body.bytes == text, body.extent), (true, Extent::Whole), "{coding:?}");
    }
}

#[test]
fn stops_gzip_bombs_by_ratio_and_size() {
    let zeros = vec![0; 3 * MIB];
    let bomb = read_all(Coding::Gzip, BodyKind::Manifest, &gzip(&zeros));
    assert_eq!(bomb.unwrap_err().cause, Cause::Encoding);
    let large = lifelike(5 * MIB);
    for (coding, wire) in [(Coding::Identity, large.clone()), (Coding::Gzip, gzip(&large))] {
        assert_eq!(read_all(coding, BodyKind::Manifest, &wire).unwrap_err().cause, Cause::TooLarge);
    }
}

/// Maximum memory of decoding besides the decoded body, whose buffer grows by doubling. gzip keeps 32 KiB.
const GZIP_BYTES_MAX: u64 = 256 * 1024;

#[test]
fn decoding_allocates_the_body_cap_plus_a_constant() {
    let text = lifelike(3 * MIB);
    let zeros = vec![0; 3 * MIB];
    let names = [[0x1f, 0x8b, 8, 0x18, 0, 0, 0, 0, 0, 0].as_slice(), &vec![b'x'; 2 * MIB]].concat();
    for (coding, wire, more) in [
        (Coding::Gzip, gzip(&text), GZIP_BYTES_MAX),
        (Coding::Gzip, gzip(&zeros), GZIP_BYTES_MAX),
        // a gzip header with an unterminated file name and comment
        (Coding::Gzip, names, GZIP_BYTES_MAX),
    ] {
        let spent = allocation_counter::measure(|| drop(read_all(coding, BodyKind::Manifest, &wire)));
        let cap = 3 * BodyKind::Manifest.bytes_max() as u64;
        assert!(spent.bytes_max <= cap + more, "{coding:?}: {} bytes take {}", wire.len(), spent.bytes_max);
    }
}

#[test]
fn doubling_a_body_at_most_doubles_what_decoding_allocates() {
    let cost = |bytes: usize| {
        let wire = gzip(&lifelike(bytes));
        allocation_counter::measure(|| drop(read_all(Coding::Gzip, BodyKind::OpenApi, &wire))).bytes_total
    };
    let (single, double) = (cost(MIB), cost(2 * MIB));
    assert!(double <= single * 23 / 10 + 1024, "{single} bytes become {double}");
}

#[test]
fn truncates_robots_and_homepages_at_their_cap() {
    let body = read_all(Coding::Identity, BodyKind::Robots, &lifelike(MIB)).unwrap();
    assert_eq!((body.bytes.len(), body.extent), (512 * KIB, Extent::Cut));
    let mut page = b"<html><head><link rel=x></HEAD>".to_vec();
    page.extend(lifelike(500_000));
    let body = read_all(Coding::Gzip, BodyKind::Homepage, &gzip(&page)).unwrap();
    assert_eq!(body.extent, Extent::Cut);
    assert!(body.wire_bytes < 3_000, "{}", body.wire_bytes);
}

#[test]
fn names_broken_and_truncated_encodings() {
    let whole = gzip(b"hello, hello, hello");
    let truncated = &whole[..whole.len() - 6];
    assert_eq!(read_all(Coding::Gzip, BodyKind::Manifest, truncated).unwrap_err().cause, Cause::Encoding);
    assert_eq!(read_all(Coding::Gzip, BodyKind::Manifest, b"{}").unwrap_err().cause, Cause::Encoding);
    assert_eq!(read_all(Coding::Gzip, BodyKind::Manifest, b"").unwrap().bytes, b"");
}

/// The tests below must not run concurrently, because all bodies of a process share the permits.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
const LARGE: usize = LARGE_BODY_BYTES + 1;

type Chunk = io::Result<Vec<u8>>;

async fn read_stream(chunks: impl Stream<Item = Chunk> + Send + 'static) -> Result<Body, Failure> {
    read_response(HeaderMap::new(), chunks).await
}

async fn read_response(
    headers: HeaderMap,
    chunks: impl Stream<Item = Chunk> + Send + 'static,
) -> Result<Body, Failure> {
    let head = Head { status: StatusCode::OK, headers, address: None };
    let response = http::Response::new(reqwest::Body::wrap_stream(chunks));
    read(reqwest::Response::from(response), &head, BodyKind::OpenApi).await
}

#[tokio::test]
async fn a_body_that_ends_before_its_content_length_is_not_read() {
    let read = async |name, length: &'static str| {
        let headers = HeaderMap::from_iter([(name, http::HeaderValue::from_static(length))]);
        read_response(headers, futures::stream::iter([Ok(b"User-agent: *".to_vec())])).await
    };
    assert_eq!(read(CONTENT_LENGTH, "14").await.unwrap_err().cause, Cause::Protocol);
    assert_eq!(read(CONTENT_LENGTH, "13").await.unwrap().bytes, b"User-agent: *");
    assert_eq!(read(TRANSFER_ENCODING, "14").await.unwrap().bytes, b"User-agent: *");
}

#[tokio::test]
async fn sixteen_large_bodies_are_read_concurrently_and_the_next_one_waits() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let (large, finish) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let mut bodies = tokio::task::JoinSet::new();
    for _ in 0..17 {
        let (large, finish) = (Arc::clone(&large), Arc::clone(&finish));
        let rest = futures::stream::once(async move {
            // read only when the body has its permit
            large.fetch_add(1, Ordering::SeqCst);
            finish.acquire().await.map_err(io::Error::other)?.forget();
            Ok(Vec::from("the end"))
        });
        bodies.spawn(read_stream(futures::stream::iter([Ok(vec![b'x'; LARGE])]).chain(rest)));
    }
    let reached = async |count: usize| {
        while large.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(4), reached(16)).await.expect("sixteen at once");
    assert_eq!(LARGE_BODIES.available_permits(), 0);
    assert!(timeout(Duration::from_millis(200), reached(17)).await.is_err());
    finish.add_permits(1);
    let first = bodies.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(first.bytes.len(), LARGE + 7);
    assert!(timeout(Duration::from_millis(200), reached(17)).await.is_err(), "the body waits for a permit");
    drop(first);
    finish.add_permits(16);
    assert_eq!(bodies.join_all().await.into_iter().flatten().count(), 16);
    assert_eq!(large.load(Ordering::SeqCst), 17);
}

#[tokio::test]
async fn aborts_large_bodies_slower_than_32_kib_per_second() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let then_slowly = |chunk_bytes: usize| {
        let slowly = futures::stream::iter(0..6).then(move |_| async move {
            tokio::time::sleep(Duration::from_millis(250)).await;
            Ok(vec![b'x'; chunk_bytes])
        });
        read_stream(futures::stream::iter([Ok(vec![b'x'; LARGE])]).chain(slowly))
    };
    let slow = then_slowly(1_024).await.unwrap_err();
    assert_eq!(slow.cause, Cause::Timeout);
    assert!(slow.reason.contains("slower than 32 KiB a second"), "{}", slow.reason);
    let fast = then_slowly(64 * KIB).await.unwrap();
    assert_eq!(fast.bytes.len(), LARGE + 6 * 64 * KIB);
}
