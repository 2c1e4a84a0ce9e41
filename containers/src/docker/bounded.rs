//! Requests whose answers are cut off at some length: whatever listens where Docker should may never come to an end.

use std::mem;

use bollard::errors::Error as Reply;
use bollard::{API_DEFAULT_VERSION, BollardRequest, Docker};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// The longest answer that is read, in bytes: lists of thousands of images and logs of builds have a few MiB.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// A client for the daemon at this address, with a connection for each request.
pub(super) fn client(address: &str, limit_seconds: u64) -> Result<Docker, Reply> {
    let socket = address.strip_prefix("unix://").map(str::to_owned);
    let host = match &socket {
        Some(_) => "http://localhost".to_owned(),
        None => address.replacen("tcp://", "http://", 1),
    };
    let ask = move |request| ask(socket.clone(), request);
    Docker::connect_with_custom_transport(ask, Some(host), limit_seconds, API_DEFAULT_VERSION)
}

async fn ask(
    socket: Option<String>,
    mut request: BollardRequest,
) -> Result<Response<Incoming>, Reply> {
    tracing::trace!("{} {}", request.method(), request.uri());
    let host = HeaderValue::from_static("localhost");
    request.headers_mut().insert(HOST, host);
    // A server is asked for a path alone, as clients do.
    let path = request.uri().path_and_query().cloned();
    let whole = mem::replace(request.uri_mut(), path.map_or_else(Uri::default, Uri::from));
    if let Some(socket) = socket {
        return exchange(UnixStream::connect(socket).await?, request).await;
    }
    let host = whole.host().unwrap_or_default().trim_matches(['[', ']']);
    let stream = TcpStream::connect((host, whole.port_u16().unwrap_or(80))).await?;
    exchange(stream, request).await
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    request: BollardRequest,
) -> Result<Response<Incoming>, Reply> {
    let (answer, question) = tokio::io::split(stream);
    let stream = TokioIo::new(tokio::io::join(answer.take(ANSWER_BYTES_MAX), question));
    let (mut sender, connection) = http1::handshake(stream).await?;
    // It ends with the answer, which tells how.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?)
}
