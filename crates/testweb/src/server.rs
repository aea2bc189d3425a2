//! Serves connections, each in its own task: the handshake, which depends on the SNI, then HTTP with hyper.

use std::{
    convert::Infallible,
    fmt,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, Request, Response, StatusCode};
use hyper::{body::Incoming, server::conn, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::{
    ServerConfig,
    crypto::ring,
    server::{Acceptor, ClientHello, NoServerSessionStorage, ResolvesServerCert},
    sign::CertifiedKey,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{LazyConfigAcceptor, StartHandshake};

use crate::{
    Answer, Handshake, Host, Protocols,
    answer::Content,
    authority::Authority,
    body::{ResponseBody, sleep},
    forward,
    hit::{self, Connection, HandshakeOutcome, Hit, RequestHeaders, ResponseHeaders},
    log::{Log, OpenHit, wall_us},
    names::Names,
    respond::{Reply, paths_of},
    sequence::Sequences,
    tamper::{Plan, Takeover, TamperedStream, Tampering, reset_on_close},
};

/// State that all connections share.
pub(crate) struct Server {
    pub(crate) names: Arc<Names>,
    pub(crate) log: Arc<Log>,
    sequences: Sequences,
    both: Arc<ServerConfig>,
    http1: Arc<ServerConfig>,
}

/// One accepted connection.
struct Client {
    id: u64,
    peer: SocketAddr,
    server: SocketAddr,
    host: String,
    requests: AtomicU64,
    tampering: Tampering,
}

impl Server {
    pub(crate) fn new(names: Arc<Names>, log: Arc<Log>, authority: Arc<Authority>) -> anyhow::Result<Self> {
        let leaves = Arc::new(Leaves { names: Arc::clone(&names), authority });
        Ok(Self {
            names,
            log,
            sequences: Sequences::default(),
            both: tls(&leaves, &[b"h2", b"http/1.1"])?,
            http1: tls(&leaves, &[b"http/1.1"])?,
        })
    }

    /// Serves one connection to its end and records it.
    pub(crate) async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr, server: SocketAddr) {
        let mut record = Connection {
            id: self.log.number_connection(),
            opened_us: self.log.now_us(),
            closed_us: 0,
            peer,
            server,
            host: None,
            handshake: HandshakeOutcome::Completed,
            requests: 0,
        };
        stream.set_nodelay(true).ok();
        if let Err(outcome) = self.handshake_and_serve(stream, &mut record).await {
            record.handshake = outcome;
        }
        record.closed_us = self.log.now_us();
        self.log.record_connection(record);
    }

    async fn handshake_and_serve(
        self: &Arc<Self>,
        stream: TcpStream,
        record: &mut Connection,
    ) -> Result<(), HandshakeOutcome> {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await.map_err(failed)?;
        let name = start.client_hello().server_name().map(str::to_ascii_lowercase);
        record.host.clone_from(&name);
        let name = name.ok_or(HandshakeOutcome::UnknownName)?;
        let host = self.names.host(&name).ok_or(HandshakeOutcome::UnknownName)?;
        if host.handshake != Handshake::Complete {
            fail_handshake(start, host.handshake).await;
            return Err(HandshakeOutcome::Misbehaved);
        }
        let config = match host.protocols {
            Protocols::Both => &self.both,
            Protocols::Http1 => &self.http1,
        };
        let stream = start.into_stream(Arc::clone(config)).await.map_err(failed)?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let client = Arc::new(Client {
            id: record.id,
            peer: record.peer,
            server: record.server,
            host: name,
            requests: AtomicU64::new(0),
            tampering: Tampering::default(),
        });
        let stream = TokioIo::new(TamperedStream::new(stream, client.tampering.clone()));
        let service = service_fn({
            let (server, client) = (Arc::clone(self), Arc::clone(&client));
            move |request| Arc::clone(&server).answer(Arc::clone(&client), request)
        });
        // errors at the end of a connection are expected; the log contains its requests
        if is_http2 {
            conn::http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await.ok();
        } else {
            conn::http1::Builder::new().serve_connection(stream, service).await.ok();
        }
        record.requests = client.requests.load(Ordering::Relaxed);
        Ok(())
    }

    async fn answer(
        self: Arc<Self>,
        client: Arc<Client>,
        request: Request<Incoming>,
    ) -> Result<Response<ResponseBody>, Infallible> {
        client.requests.fetch_add(1, Ordering::Relaxed);
        let (path, path_and_query) = paths_of(&request);
        let (head, body) = request.into_parts();
        let mut record = self.record(&client, &head, path_and_query);
        record.posted = hit::posted_body(&head, body).await;
        if !record.authority.is_empty() && host_part(&record.authority) != client.host {
            let hit = OpenHit::new(Arc::clone(&self.log), record);
            let reply = Reply::without_body(StatusCode::MISDIRECTED_REQUEST, HeaderMap::new());
            return Ok(finish(reply, &Answer::status(421), hit));
        }
        let host = self.names.host(&client.host).unwrap_or_else(|| Arc::new(Host::new(&client.host)));
        let answer = self.sequences.current(&client.host, &path, host.answer_to(&path));
        let posted = record.posted.clone();
        let mut hit = OpenHit::new(Arc::clone(&self.log), record);
        if !answer.delay.is_zero() {
            sleep(answer.delay).await;
        }
        let action = match &answer.content {
            Content::Silence => std::future::pending().await,
            Content::Raw(bytes) => {
                hit.with(|hit| hit.status = status_in(bytes));
                let write = if answer.is_cut { Takeover::WriteAndBreak } else { Takeover::Write };
                write(bytes.clone(), answer.pace)
            }
            Content::Reset => Takeover::Reset,
            Content::Close => Takeover::Close,
            Content::Forwarded(to) => {
                let reply = forward::forwarded(*to, &head, posted.as_deref()).await;
                return Ok(finish(reply, &answer, hit));
            }
            Content::Body { .. } | Content::Segments(_) | Content::Moved(_) | Content::Sequence { .. } => {
                let reply = Reply::new(&answer, &head);
                hit.with(|hit| hit.robots_body = hit::robots_body(&path, &answer));
                return Ok(finish(reply, &answer, hit));
            }
        };
        client.tampering.set(Plan { action, hit });
        Ok(Response::new(ResponseBody::unrecorded()))
    }

    fn record(&self, client: &Client, head: &http::request::Parts, path: String) -> Hit {
        let by_header = || head.headers.get(http::header::HOST).and_then(|value| value.to_str().ok());
        let authority = head.uri.authority().map(http::uri::Authority::as_str).or_else(by_header);
        Hit {
            id: self.log.number_hit(),
            connection: client.id,
            started_us: self.log.now_us(),
            ended_us: 0,
            wall_us: wall_us(),
            peer: client.peer,
            server: client.server,
            host: client.host.clone(),
            authority: authority.unwrap_or_default().to_ascii_lowercase(),
            http_version: format!("{:?}", head.version),
            method: head.method.to_string(),
            path,
            request: RequestHeaders::of(head),
            status: None,
            response: ResponseHeaders::default(),
            body_bytes: 0,
            complete: false,
            posted: None,
            robots_body: None,
        }
    }
}

fn finish(reply: Reply, answer: &Answer, mut hit: OpenHit) -> Response<ResponseBody> {
    hit.with(|hit| {
        hit.status = Some(reply.status.as_u16());
        hit.response = ResponseHeaders::of(&reply.headers);
    });
    reply.into_response(answer, hit)
}

/// The name in an authority, without its port.
fn host_part(authority: &str) -> &str {
    authority.rsplit_once(':').map_or(authority, |(host, _port)| host)
}

/// The status in raw bytes, if they contain one.
fn status_in(bytes: &[u8]) -> Option<u16> {
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split(' ').nth(1)?.trim().parse().ok()
}

/// Closes, resets or stalls a connection in the middle of its handshake.
async fn fail_handshake(mut start: StartHandshake<TcpStream>, handshake: Handshake) {
    match handshake {
        Handshake::Reset => reset_on_close(&start.io),
        Handshake::Complete | Handshake::Close => {}
        Handshake::OldVersion => {
            // a fatal alert, protocol_version (RFC 8446 §6.2), in a record of TLS 1.0; a client that has disconnected needs none
            start.io.write_all(&[0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x46]).await.ok();
        }
        Handshake::Stall => {
            let mut ignored = [0; 1024];
            while let Ok(1..) = start.io.read(&mut ignored).await {}
        }
    }
}

fn failed(error: impl fmt::Display) -> HandshakeOutcome {
    HandshakeOutcome::Failed(error.to_string())
}

fn tls(leaves: &Arc<Leaves>, alpn: &[&[u8]]) -> anyhow::Result<Arc<ServerConfig>> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(leaves) as Arc<dyn ResolvesServerCert>);
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.to_vec()).collect();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Picks the certificate of a handshake.
struct Leaves {
    names: Arc<Names>,
    authority: Arc<Authority>,
}

impl ResolvesServerCert for Leaves {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name()?.to_ascii_lowercase();
        let host = self.names.host(&name)?;
        self.authority.leaf(&name, host.certificate)
    }
}

impl fmt::Debug for Leaves {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Leaves")
    }
}
