//! Passes a request on to a program, as a TLS proxy in front of it does.

use std::net::SocketAddr;

use anyhow::Context;
use http::{HeaderMap, Request, StatusCode, header, request, uri::PathAndQuery};
use http_body_util::{BodyExt, Full};
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::respond::Reply;

/// The response of the program; a 502 if it gives none.
pub(crate) async fn forwarded(to: SocketAddr, head: &request::Parts, posted: Option<&str>) -> Reply {
    let failed = |_| Reply::without_body(StatusCode::BAD_GATEWAY, HeaderMap::new());
    exchange(to, head, posted).await.unwrap_or_else(failed)
}

async fn exchange(to: SocketAddr, head: &request::Parts, posted: Option<&str>) -> anyhow::Result<Reply> {
    let stream = TcpStream::connect(to).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = request(head, posted)?;
    // the connection ends with its sender
    let exchanged = async move {
        let (head, body) = sender.send_request(request).await?.into_parts();
        let mut headers = head.headers;
        headers.remove(header::TRANSFER_ENCODING);
        headers.remove(header::CONNECTION);
        anyhow::Ok(Reply::with_body(head.status, headers, body.collect().await?.to_bytes()))
    };
    tokio::join!(exchanged, connection).0
}

fn request(head: &request::Parts, posted: Option<&str>) -> anyhow::Result<Request<Full<Bytes>>> {
    let path = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut request = Request::builder().method(&head.method).uri(path);
    let headers = request.headers_mut().context("the headers of a valid request")?;
    headers.extend(head.headers.clone());
    headers.remove(header::CONTENT_LENGTH);
    headers.remove(header::TRANSFER_ENCODING);
    if let Some(authority) = head.uri.authority() {
        headers.insert(header::HOST, authority.as_str().parse()?);
    }
    Ok(request.body(Full::new(Bytes::from(posted.unwrap_or_default().to_owned())))?)
}
