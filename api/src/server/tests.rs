//! Slow, greedy and invalid clients on loopback, with short deadlines of the server.

use std::net::SocketAddr;

use axum::body::Body;
use axum::response::Response;
use axum::routing::get;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use super::*;
use crate::buffers;
use crate::overload::Refused;
use crate::problem::Problem;
use crate::timeouts::MinRate;

/// Timeout of each wait.
const SOON: Duration = Duration::from_secs(20);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

/// A server with one route, and its limits.
struct Served {
    address: SocketAddr,
    admission: AdmissionControl,
    stop: CancellationToken,
    serving: JoinSet<()>,
}

impl Served {
    async fn start(router: Router, timeouts: ClientTimeouts) -> Self {
        Self::with_places(router, timeouts, 1).await
    }

    async fn with_places(router: Router, timeouts: ClientTimeouts, places: usize) -> Self {
        Self::with(router, timeouts, places, Shares::new(CONNECTIONS_MAX, 3)).await
    }

    async fn with(router: Router, timeouts: ClientTimeouts, places: usize, connections: Arc<Shares>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let admission = AdmissionControl {
            connections,
            requests: Shares::new(places, places),
            load: Load::new(tokio::time::Instant::now()),
            rejected: middleware::rejected(middleware::HeaderSettings::default()),
            trusted_proxies: Arc::from(["127.0.0.9/32".parse().unwrap()]),
            names: ServerNames::of_loopback(),
            admin_tokens: AdminTokens::default(),
            timeouts,
        };
        let stop = CancellationToken::new();
        let mut serving = JoinSet::new();
        serving.spawn(accept_until(listener, router, admission.clone(), stop.clone()));
        Self { address, admission, stop, serving }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Connects as a client with its own address.
    async fn connect_from(&self, address: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
        socket.connect(self.address).await.unwrap()
    }

    async fn end(mut self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.serving.join_next()).await.unwrap().unwrap().unwrap();
    }
}

fn hello() -> Router {
    Router::new().route("/", get(async || "hello"))
}

/// All data that a client receives until the connection ends.
async fn received(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    tokio::time::timeout(SOON, stream.read_to_end(&mut text)).await.unwrap().unwrap();
    String::from_utf8(text).unwrap()
}

/// One response on a connection that stays open.
async fn receive_one(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut piece = [0; 4_096];
        let read = tokio::time::timeout(SOON, stream.read(&mut piece)).await.unwrap().unwrap();
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
        let length = |head: &str| {
            let line = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            line.parse::<usize>().ok()
        };
        let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| length(head) == Some(body.len()));
        if whole || read == 0 {
            return text;
        }
    }
}

fn is_hello(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("hello")
}

#[tokio::test]
async fn closes_connections_that_send_no_request_in_time() {
    let short = Duration::from_millis(200);
    let timeouts = ClientTimeouts { headers: short, drain: short, ..ClientTimeouts::default() };
    let served = Served::start(hello(), timeouts).await;
    for begun in ["", "GET / HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let mut slow = served.connect().await;
        slow.write_all(begun.as_bytes()).await.unwrap();
        let answer = received(&mut slow).await;
        assert!(!answer.contains("200 OK"), "{begun:?}: {answer}");
    }
    let mut honest = served.connect().await;
    honest.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let answer = received(&mut honest).await;
    assert!(is_hello(&answer), "{answer}");
    served.end().await;
}

#[tokio::test]
async fn answers_connected_clients_before_it_stops() {
    let served = Served::start(hello(), ClientTimeouts::default()).await;
    let mut early = served.connect().await;
    served.stop.cancel();
    let mut late = served.connect().await;
    for client in [&mut early, &mut late] {
        client.write_all(REQUEST).await.unwrap();
        let answer = received(client).await;
        assert!(is_hello(&answer), "{answer}");
    }
    let address = served.address;
    served.end().await;
    assert!(TcpStream::connect(address).await.is_err());
}

/// An endless body of zeros, and a sender that is dropped with it.
fn endless(held: Arc<()>) -> Body {
    let zeros = futures::stream::unfold(held, async |held| {
        Some((Ok::<_, std::io::Error>(vec![0_u8; 64 * 1024]), held))
    });
    Body::from_stream(zeros)
}

#[tokio::test]
async fn closes_connections_whose_client_stops_reading() {
    let held = Arc::new(());
    let body_of = Arc::clone(&held);
    let router = Router::new().route("/", get(async move || endless(Arc::clone(&body_of))));
    let reads = MinRate { allowance: Duration::from_millis(300), bytes_per_second: 1_000_000 };
    let served = Served::start(router, ClientTimeouts { reads, ..ClientTimeouts::default() }).await;
    let mut silent = served.connect().await;
    silent.write_all(REQUEST).await.unwrap();
    let mut status_line = [0; 15];
    silent.read_exact(&mut status_line).await.unwrap();
    assert_eq!(&status_line, b"HTTP/1.1 200 OK");
    let gone = async {
        // The router keeps one reference to the body for each response.
        while Arc::strong_count(&held) > 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(SOON, gone).await.expect("the response is dropped");
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(SOON, silent.read_to_end(&mut rest)).await.unwrap();
    assert!(ended.is_err(), "the connection is reset, and data in the kernel's buffer is discarded");
    drop(silent);
    served.end().await;
}

#[tokio::test]
async fn closes_connections_that_read_a_large_response_too_slowly() {
    let shares = Shares::new(64 << 20, 64 << 20);
    let of_route = Arc::clone(&shares);
    let large = async move || {
        let whole = Response::new(Body::from(vec![b'x'; 16 << 20]));
        buffers::counted(whole, 0, &of_route, [192, 0, 2, 1].into()).unwrap()
    };
    let timeouts = ClientTimeouts { large_responses: Duration::from_secs(1), ..ClientTimeouts::default() };
    let served = Served::start(Router::new().route("/", get(large)), timeouts).await;
    let mut slow = served.connect().await;
    slow.write_all(REQUEST).await.unwrap();
    let reading = async {
        let mut piece = vec![0; 16 * 1_024];
        while slow.read(&mut piece).await.is_ok_and(|read| read > 0) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(SOON, reading)
        .await
        .expect("it is disconnected, although it reads faster than the minimum rate");
    assert_eq!(shares.taken(), 0);
    served.end().await;
}

#[tokio::test]
async fn keeps_connections_whose_client_keeps_reading() {
    let pieces = || {
        futures::stream::unfold(0, |count| async move {
            tokio::time::sleep(Duration::from_millis(40)).await;
            (count < 20).then_some((Ok::<_, std::io::Error>(vec![b'x'; 10]), count + 1))
        })
    };
    let router = Router::new().route("/", get(async move || Body::from_stream(pieces())));
    let reads = MinRate { allowance: Duration::from_millis(100), bytes_per_second: 1_000_000 };
    let served = Served::start(router, ClientTimeouts { reads, ..ClientTimeouts::default() }).await;
    let mut client = served.connect().await;
    client.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let answer = received(&mut client).await;
    assert_eq!(answer.matches('x').count(), 200, "time without data to send does not count");
    served.end().await;
}

#[tokio::test]
async fn one_client_cannot_take_all_connections() {
    let served = Served::start(hello(), ClientTimeouts::default()).await;
    let mut greedy = Vec::new();
    for _ in 0..3 {
        let mut client = served.connect_from("127.0.0.2").await;
        client.write_all(REQUEST).await.unwrap();
        assert!(is_hello(&receive_one(&mut client).await));
        greedy.push(client);
    }
    let mut fourth = served.connect_from("127.0.0.2").await;
    let closed = fourth.read(&mut [0; 1]).await;
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    for _ in 0..5 {
        let mut proxy = served.connect_from("127.0.0.9").await;
        proxy.write_all(REQUEST).await.unwrap();
        assert!(is_hello(&receive_one(&mut proxy).await), "a trusted proxy connects for many");
        greedy.push(proxy);
    }
    let mut other = served.connect_from("127.0.0.3").await;
    other.write_all(REQUEST).await.unwrap();
    assert!(is_hello(&receive_one(&mut other).await));
    drop((greedy, other));
    served.end().await;
}

/// Sends the headers of a request with a body, and the first byte of it, as a proxy forwards them for a client.
async fn begin_body(served: &Served, client: &str) -> TcpStream {
    let mut proxy = served.connect_from("127.0.0.9").await;
    let head =
        format!("POST / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {client}\r\ncontent-length: 60000\r\n\r\nx");
    proxy.write_all(head.as_bytes()).await.unwrap();
    proxy
}

async fn until(holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, waiting).await.expect("it happens");
}

/// A proxy that does not buffer requests forwards headers even if no body follows.
#[tokio::test]
async fn forwarded_clients_that_send_no_body_leave_connections_for_others() {
    let begun = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&begun);
    let answer = async move |request: axum::extract::Request| {
        if let Some(Refused(problem)) = request.extensions().get::<Refused>().cloned() {
            return Err(problem);
        }
        count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        drop(axum::body::to_bytes(request.into_body(), 100_000).await);
        Ok("hello")
    };
    let router = Router::new().route("/", get(answer.clone()).post(answer));
    let timeouts = ClientTimeouts { linger: SOON * 6, drain: Duration::ZERO, ..ClientTimeouts::default() };
    let served = Served::with(router, timeouts, 100, Shares::shrinking(80, 20)).await;
    let (mut held, mut refused) = (Vec::new(), 0);
    for number in 1..=10 {
        for _ in 0..25 {
            let (taken, before) =
                (served.admission.connections.taken(), begun.load(std::sync::atomic::Ordering::Relaxed));
            let mut proxy = begin_body(&served, &format!("192.0.2.{number}")).await;
            let mut byte = [0; 1];
            tokio::select! {
                read = proxy.read(&mut byte) => {
                    assert_eq!((read.unwrap(), byte), (1, *b"H"));
                    // the connection ends without lingering, because it does not count towards the limit of any client
                    let answer = received(&mut proxy).await;
                    assert!(answer.starts_with("TTP/1.1 429") || answer.starts_with("TTP/1.1 503"), "{answer}");
                    assert!(answer.contains("connection: close\r\n"), "{answer}");
                    refused += 1;
                }
                () = until(|| begun.load(std::sync::atomic::Ordering::Relaxed) > before) => {
                    assert_eq!(served.admission.connections.taken(), taken + 1);
                    held.push(proxy);
                }
            }
        }
        assert!(
            number > 1 || held.len() == 20,
            "a single client may have a quarter of the connections: {}",
            held.len()
        );
    }
    assert!(held.len() <= 76 && refused >= 174, "{} are held, {refused} refused", held.len());
    let mut other = served.connect_from("127.0.0.9").await;
    other.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.99\r\n\r\n").await.unwrap();
    assert!(is_hello(&receive_one(&mut other).await));
    let mut direct = served.connect_from("127.0.0.3").await;
    direct.write_all(REQUEST).await.unwrap();
    assert!(is_hello(&receive_one(&mut direct).await), "direct clients have the same shares");
    drop((held, other, direct));
    until(|| served.admission.connections.taken() == 0).await;
    served.end().await;
}

#[tokio::test]
async fn connections_of_forwarded_clients_count_while_they_linger() {
    let refuse = axum::routing::post(async || http::StatusCode::PAYLOAD_TOO_LARGE);
    let router = Router::new().route("/", refuse.get(async || "hello"));
    let timeouts = ClientTimeouts { linger: SOON * 6, ..ClientTimeouts::default() };
    let served = Served::with(router, timeouts, 100, Shares::shrinking(80, 20)).await;
    let taken = || served.admission.connections.taken();
    let mut sending = begin_body(&served, "192.0.2.1").await;
    let mut status_line = [0; 12];
    sending.read_exact(&mut status_line).await.unwrap();
    assert_eq!((&status_line, taken()), (b"HTTP/1.1 413", 1), "the connection is still read");
    drop(sending);
    until(|| taken() == 0).await;
    let mut idle = served.connect_from("127.0.0.9").await;
    idle.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 192.0.2.1\r\n\r\n").await.unwrap();
    assert!(is_hello(&receive_one(&mut idle).await));
    assert_eq!(taken(), 0, "idle connections belong to the proxy");
    drop(idle);
    served.end().await;
}

#[tokio::test]
async fn clients_with_too_many_connections_give_them_back_while_few_are_free() {
    let connections = Shares::shrinking(16, 4);
    let served = Served::with(hello(), ClientTimeouts::default(), 100, connections).await;
    let mut held = Vec::new();
    let ask = async |client: &mut TcpStream| {
        client.write_all(REQUEST).await.unwrap();
        receive_one(client).await
    };
    let open = async |number: u8| {
        let mut client = served.connect_from(&format!("127.0.0.{number}")).await;
        let answer = ask(&mut client).await;
        (client, answer)
    };
    for number in [2, 2, 2, 2, 3, 3, 3, 4, 4] {
        let (client, answer) = open(number).await;
        assert!(is_hello(&answer) && !answer.contains("connection: close"), "{answer}");
        held.push(client);
    }
    for number in 10..=16 {
        let (client, answer) = open(number).await;
        assert!(
            is_hello(&answer) && !answer.contains("connection: close"),
            "a single connection is kept open: {answer}"
        );
        held.push(client);
    }
    assert!(served.admission.connections.is_exhausted());
    let mut greedy = held.remove(0);
    let answer = ask(&mut greedy).await;
    assert!(is_hello(&answer) && answer.contains("connection: close\r\n"), "{answer}");
    assert_eq!(received(&mut greedy).await, "");
    drop(greedy);
    let given_back = async {
        while served.admission.connections.is_exhausted() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(SOON, given_back).await.unwrap();
    let (new, answer) = open(20).await;
    assert!(is_hello(&answer), "a new client gets the free connection: {answer}");
    drop((held, new));
    served.end().await;
}

#[tokio::test]
async fn rejects_requests_under_overload_before_routing() {
    let seen = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let answer = move || {
        let count = Arc::clone(&count);
        async move {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            "hello"
        }
    };
    let router = Router::new()
        .route("/", get(answer.clone()))
        .route("/healthz", get(answer.clone()))
        .route("/metrics", get(answer));
    let served = Served::start(router, ClientTimeouts::default()).await;
    let busy = served.admission.requests.take("192.0.2.1".parse().unwrap(), 1).unwrap();
    let mut client = served.connect().await;
    let mut when = std::collections::BTreeSet::new();
    for _ in 0..4 {
        client.write_all(REQUEST).await.unwrap();
        let answer = receive_one(&mut client).await;
        assert!(
            answer.starts_with("HTTP/1.1 503") && answer.contains("\"errorCode\":\"UNAVAILABLE\""),
            "{answer}"
        );
        assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
        when.extend(
            answer.lines().find_map(|line| line.strip_prefix("retry-after: ").map(ToOwned::to_owned)),
        );
    }
    assert!(when.len() > 1, "the retry times do not differ: {when:?}");
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 0);
    client.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    assert!(is_hello(&receive_one(&mut client).await), "monitoring requests are always answered");
    for (host, is_served) in [("localhost", true), ("rebound.example", false)] {
        let head = format!("GET /metrics HTTP/1.1\r\nhost: {host}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        assert_eq!(is_hello(&receive_one(&mut client).await), is_served, "the metrics, requested at {host}");
    }
    drop(busy);
    client.write_all(REQUEST).await.unwrap();
    assert!(is_hello(&receive_one(&mut client).await), "the connection stayed open");
    drop(client);
    served.end().await;
}

#[tokio::test]
async fn overload_rejects_the_client_that_causes_it_and_serves_others() {
    let served = Served::with_places(hello(), ClientTimeouts::default(), 512).await;
    let burst: Vec<_> = (0..200)
        .map(|_| {
            let place = served.admission.requests.take("127.0.0.2".parse().unwrap(), 1).unwrap();
            (place, served.admission.load.begin())
        })
        .collect();
    let mut greedy = served.connect_from("127.0.0.2").await;
    greedy.write_all(REQUEST).await.unwrap();
    let answer = receive_one(&mut greedy).await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let mut other = served.connect_from("127.0.0.3").await;
    let _one = served.admission.requests.take("127.0.0.3".parse().unwrap(), 1).unwrap();
    for _ in 0..3 {
        other.write_all(REQUEST).await.unwrap();
        let answer = receive_one(&mut other).await;
        assert!(is_hello(&answer), "{answer}");
    }
    // Behind a trusted proxy, clients are distinguished by the address that it forwards.
    for (forwarded, is_served) in [("127.0.0.2", false), ("127.0.0.4", true)] {
        let mut proxy = served.connect_from("127.0.0.9").await;
        let head = format!("GET / HTTP/1.1\r\nhost: x\r\nx-forwarded-for: {forwarded}\r\n\r\n");
        proxy.write_all(head.as_bytes()).await.unwrap();
        let answer = receive_one(&mut proxy).await;
        assert_eq!(is_hello(&answer), is_served, "{forwarded}: {answer}");
    }
    drop((burst, greedy, other));
    served.end().await;
}

/// A route that returns the rejection of the gate.
fn router() -> Router {
    let refuse = |request: axum::extract::Request| async move {
        let refused = request.extensions().get::<Refused>().cloned();
        refused.map_or_else(|| Ok("hello"), |Refused(problem)| Err::<&str, Problem>(problem))
    };
    Router::new().route("/", get(refuse))
}

#[tokio::test]
async fn refuses_requests_without_exactly_one_host() {
    let served = Served::start(router(), ClientTimeouts::default()).await;
    for (head, is_fine) in [
        ("GET / HTTP/1.1\r\nhost: x\r\n", true),
        ("GET / HTTP/1.1\r\n", false),
        ("GET / HTTP/1.1\r\nhost: x\r\nhost: x\r\n", false),
        ("GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n", false),
        ("GET / HTTP/1.1\r\nhost:\r\n", false),
        ("GET / HTTP/1.1\r\nhost: a/b\r\n", false),
        ("GET / HTTP/1.0\r\n", true),
        ("GET / HTTP/1.0\r\nhost: x\r\nhost: y\r\n", false),
    ] {
        let mut client = served.connect().await;
        client.write_all(format!("{head}connection: close\r\n\r\n").as_bytes()).await.unwrap();
        let answer = received(&mut client).await;
        if is_fine {
            assert!(answer.contains(" 200 OK\r\n"), "{head:?}: {answer}");
        } else {
            assert!(answer.contains(" 400 Bad Request\r\n"), "{head:?}: {answer}");
            assert!(answer.contains("\"errorCode\":\"INVALID_ARGUMENT\""), "{head:?}: {answer}");
        }
    }
    served.end().await;
}

#[tokio::test]
async fn accepts_headers_up_to_32_kib() {
    let served = Served::start(hello(), ClientTimeouts::default()).await;
    for (bytes, status) in
        [(HEADER_BYTES_MAX, "200"), (HEADER_BYTES_MAX + 1, "431"), (40_000, "431"), (400_000, "431")]
    {
        let (begin, end) = ("GET / HTTP/1.1\r\nhost: x\r\nx-filler: ", "\r\nconnection: close\r\n\r\n");
        let filler = "x".repeat(bytes - begin.len() - end.len());
        let mut client = served.connect().await;
        client.write_all(format!("{begin}{filler}{end}").as_bytes()).await.unwrap();
        let answer = received(&mut client).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{bytes}: {answer}");
    }
    served.end().await;
}

#[tokio::test]
async fn accepts_at_most_64_headers() {
    let served = Served::start(hello(), ClientTimeouts::default()).await;
    for (more, status) in [(62, "200"), (63, "431")] {
        let headers = (0..more).map(|number| format!("x-{number}: x")).collect::<Vec<_>>().join("\r\n");
        let mut client = served.connect().await;
        let request = format!("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        let answer = received(&mut client).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{more}: {answer}");
    }
    served.end().await;
}

#[tokio::test]
async fn client_that_is_still_sending_receives_the_refusal() {
    let router = Router::new().route("/", axum::routing::post(async || http::StatusCode::PAYLOAD_TOO_LARGE));
    let served = Served::start(router, ClientTimeouts::default()).await;
    let mut client = served.connect().await;
    let body = vec![b'x'; 6 * 1024 * 1024];
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&body).await.expect("the server accepts the whole body");
    client.shutdown().await.unwrap();
    let answer = received(&mut client).await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    served.end().await;
}

#[tokio::test]
async fn refusal_does_not_keep_a_reused_connection_open() {
    let refuse = async |_: axum::body::Bytes| http::StatusCode::UNPROCESSABLE_ENTITY;
    let router = hello().route("/", axum::routing::post(refuse));
    let timeouts = ClientTimeouts { linger: SOON * 6, drain: SOON * 3, ..ClientTimeouts::default() };
    let served = Served::start(router, timeouts).await;
    let mut client = served.connect().await;
    client.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}").await.unwrap();
    assert!(receive_one(&mut client).await.starts_with("HTTP/1.1 422"));
    client.write_all(REQUEST).await.unwrap();
    assert!(is_hello(&receive_one(&mut client).await));
    // The client stays connected; the connection was idle and ends immediately, not after the lingering time.
    served.end().await;
    drop(client);
}

/// The only line about an outage would otherwise be its beginning, until a client sends a request.
#[tokio::test]
async fn the_end_of_an_outage_is_noticed_without_a_request() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_in_data_dir(dir.path()).await.unwrap();
    OUTAGE.failed("search", "pool timed out", tokio::time::Instant::now());
    assert!(OUTAGE.is_on());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    tasks.spawn(await_ends_of_outages(store, stop.clone()));
    let ended = async {
        while OUTAGE.is_on() {
            tokio::time::sleep(OUTAGE_POLL / 10).await;
        }
    };
    tokio::time::timeout(SOON, ended).await.unwrap();
    stop.cancel();
    tasks.join_next().await.unwrap().unwrap();
}
