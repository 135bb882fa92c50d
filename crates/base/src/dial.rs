//! Connections of clients: TCP, TLS over it, and one exchange over a connection of HTTP.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A TCP connection that sends small segments at once.
pub async fn tcp(address: impl ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// TLS over a connection, to a server of this name.
pub async fn tls<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    name: &str,
    config: Arc<ClientConfig>,
) -> io::Result<TlsStream<S>> {
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    TlsConnector::from(config).connect(name, stream).await
}

/// Drives a connection until an exchange over it is done. The connection may close before the
/// response is fully read.
pub async fn drive<T>(exchange: impl Future<Output = T>, connection: impl Future) -> T {
    tokio::pin!(exchange, connection);
    let mut is_open = true;
    loop {
        tokio::select! {
            biased;
            done = &mut exchange => return done,
            _ = &mut connection, if is_open => is_open = false,
        }
    }
}
