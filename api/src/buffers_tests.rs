//! Tests for which bytes of requests and responses are counted, and when slow bodies are aborted.

use super::*;
use std::net::Ipv4Addr;

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PACE: MinRate = MinRate { allowance: Duration::from_millis(100), bytes_per_second: 1_000 };

#[tokio::test]
async fn large_response_counts_until_its_last_chunk_is_sent() {
    let shares = Shares::new(300_000, 150_000);
    let whole: Vec<u8> = (0..100_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let answer = counted(Response::new(Body::from(whole.clone())), 0, &shares, CLIENT).unwrap();
    assert_eq!(shares.taken(), whole.len());
    assert_eq!(answer.body().size_hint().exact(), Some(100_000), "Content-Length is still sent");
    let second = Response::new(Body::from(vec![0; 60_000]));
    assert_eq!(counted(second, 0, &shares, CLIENT).unwrap_err(), LimitReached::Client);
    let small = Response::new(Body::from(vec![0; SMALL_BYTES]));
    assert!(counted(small, 0, &shares, CLIENT).is_ok(), "small ones are always sent");
    let mut body = answer.into_body();
    let mut seen = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= CHUNK_BYTES);
        seen.extend_from_slice(&data);
    }
    assert_eq!(seen, whole);
    drop(body);
    assert_eq!(shares.taken(), 0);
}

#[test]
fn compressor_of_a_large_response_counts() {
    let shares = Shares::new(10_000_000, 10_000_000);
    for (accepted, bytes) in [("gzip, deflate, br, ZSTD", ZSTD_BYTES), ("gzip", GZIP_BYTES), ("identity", 0)]
    {
        let headers = HeaderMap::from_iter([(header::ACCEPT_ENCODING, accepted.parse().unwrap())]);
        let compressor = compressor_bytes(&headers);
        let large = counted(Response::new(Body::from(vec![0; 135_000])), compressor, &shares, CLIENT);
        assert_eq!(shares.taken(), 135_000 + bytes, "{accepted}");
        drop(large);
        let usual = counted(Response::new(Body::from(vec![0; 60_000])), compressor, &shares, CLIENT);
        assert_eq!(shares.taken(), 60_000, "the kernel's buffer takes the whole response");
        drop(usual);
    }
    assert_eq!(compressor_bytes(&HeaderMap::new()), 0);
}

#[tokio::test]
async fn request_body_counts_by_received_bytes_and_times_out_when_it_stalls() {
    let shares = Shares::new(1_000_000, 100_000);
    let read_of = |body: Body| read(body, 200_000, PACE, &shares, CLIENT);
    let (bytes, share) = read_of(Body::from(vec![0; 50_000])).await.unwrap();
    assert_eq!((bytes.len(), shares.taken()), (50_000, 50_000 - SMALL_BYTES));
    assert_eq!(read_of(Body::from(vec![0; 200_001])).await.unwrap_err(), BodyError::TooLarge);
    let held = shares.take(CLIENT, 80_000).unwrap();
    assert_eq!(
        read_of(Body::from(vec![0; 50_000])).await.unwrap_err(),
        BodyError::OverCapacity(LimitReached::Client)
    );
    drop((held, share));
    let silent = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    assert_eq!(read_of(silent).await.unwrap_err(), BodyError::TooSlow);
    let broken = Body::from_stream(futures::stream::iter([Err::<Vec<u8>, _>(std::io::Error::other("gone"))]));
    assert_eq!(read_of(broken).await.unwrap_err(), BodyError::Broken);
    assert_eq!(shares.taken(), 0);
}

#[tokio::test]
async fn large_request_body_that_trickles_ends_at_its_deadline() {
    let shares = Shares::new(1_000_000, 500_000);
    let trickle = |first: usize| {
        Body::from_stream(futures::stream::unfold(first, |bytes| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            Some((Ok::<_, std::io::Error>(vec![0; bytes]), 200))
        }))
    };
    let begun = Instant::now();
    let kept = CountedBytes::new(&shares, CLIENT);
    let large = read_until(begun + Duration::from_millis(300), trickle(50_000), 400_000, PACE, kept).await;
    assert_eq!(large.unwrap_err(), BodyError::TooSlow);
    assert!(begun.elapsed() >= Duration::from_millis(300), "{:?}", begun.elapsed());
    assert_eq!(shares.taken(), 0);
}

#[tokio::test]
async fn small_request_body_is_read_when_all_memory_is_taken() {
    let shares = Shares::new(1_000, 500);
    let other = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    let _all = [shares.take(CLIENT, 500).unwrap(), shares.take(other, 500).unwrap()];
    let small = vec![b'x'; SMALL_BYTES];
    let (bytes, share) = read(Body::from(small.clone()), 100_000, PACE, &shares, CLIENT).await.unwrap();
    assert_eq!((bytes.len(), share.is_none()), (small.len(), true));
    let larger = Body::from(vec![b'x'; SMALL_BYTES + 1]);
    assert!(matches!(read(larger, 100_000, PACE, &shares, CLIENT).await, Err(BodyError::OverCapacity(_))));
}

#[tokio::test]
async fn request_body_counts_by_its_reserved_capacity() {
    let pieces = |count: usize| {
        let pieces = (0..count).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 10_000]));
        Body::from_stream(futures::stream::iter(pieces))
    };
    let shares = Shares::new(1_000_000, 1_000_000);
    let (bytes, _share) = read(pieces(9), 100_000, PACE, &shares, CLIENT).await.unwrap();
    assert_eq!(bytes.len(), 90_000);
    assert_eq!(shares.taken(), 100_000 - SMALL_BYTES, "room for 10, 20, 40, 80 and then all that may come");
}

#[test]
fn event_streams_do_not_count_buffered_bytes() {
    let shares = Shares::new(2 * STREAM_BYTES, STREAM_BYTES);
    let endless = || Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let events = Response::builder().header("content-type", "text/event-stream").body(endless()).unwrap();
    let held = counted(events, 0, &shares, CLIENT).unwrap();
    assert_eq!(shares.taken(), 0);
    let lines = counted(Response::new(endless()), 0, &shares, CLIENT).unwrap();
    assert_eq!(shares.taken(), STREAM_BYTES);
    drop((held, lines));
}

#[test]
fn reserved_bytes_of_a_response_are_counted_once() {
    let shares = Shares::new(200_000, 200_000);
    let mut response = Response::new(Body::from(vec![0; 150_000]));
    let share = shares.take(CLIENT, 150_000).unwrap();
    response.extensions_mut().insert(Reserved::new(share));
    let answer = counted(response, 0, &shares, CLIENT).unwrap();
    assert_eq!(shares.taken(), 150_000);
    drop(answer);
    assert_eq!(shares.taken(), 0);
}
