//! Where the etcd server listens: a unix socket that only its owner may open, or a TCP port. A
//! non-loopback address is refused unless client certificates are required, or the configuration
//! opens it to all: write access to the store is full control of the cluster.

use super::EtcdServerConfig;
use super::authority::AuthorityFilter;
use super::connections::accept;
use super::tls::TlsError;
use std::{
    io,
    net::SocketAddr,
    os::unix::fs::FileTypeExt,
    path::{Path, PathBuf},
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixSocket},
    sync::mpsc,
};
use tokio_rustls::TlsAcceptor;
use tokio_stream::{StreamExt, wrappers::ReceiverStream};
use tonic::transport::server::Router;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    Unix(PathBuf),
    /// Port 0 picks a free one.
    Tcp(SocketAddr),
}

/// Why the etcd server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EtcdServerError {
    #[error("cannot listen on {address}")]
    Listen { address: String, source: io::Error },
    #[error(
        "{address} is not a loopback address: require client certificates, or use a loopback address"
    )]
    Exposed { address: SocketAddr },
    #[error("cannot set up TLS")]
    Tls(#[from] TlsError),
}

/// A listener with its address.
pub(super) enum Bound {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener, SocketAddr),
}

pub(super) fn bind(config: &EtcdServerConfig) -> Result<Bound, EtcdServerError> {
    match &config.listen {
        Listen::Unix(path) => {
            let listener = bind_unix(path).map_err(|source| EtcdServerError::Listen {
                address: path.display().to_string(),
                source,
            })?;
            Ok(Bound::Unix(listener, path.clone()))
        }
        Listen::Tcp(address) => {
            let guarded = config.tls.as_ref().is_some_and(|tls| tls.clients.is_some());
            if !address.ip().is_loopback() && !guarded && !config.is_open {
                return Err(EtcdServerError::Exposed { address: *address });
            }

            let (listener, address) =
                bind_tcp(*address).map_err(|source| EtcdServerError::Listen {
                    address: address.to_string(),
                    source,
                })?;

            Ok(Bound::Tcp(listener, address))
        }
    }
}

/// Listen backlog, the same as the standard library's.
const BACKLOG: u32 = 128;

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    // A socket that a killed process left behind. Any other file at this path is not removed.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let socket = UnixSocket::new_stream()?;
    // Before `bind` creates the file, so that no other user can connect in between.
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(0o600))?;
    socket.bind(path)?;
    socket.listen(BACKLOG)
}

fn bind_tcp(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok((TcpListener::from_std(listener)?, address))
}

impl Bound {
    pub(super) fn url(&self, tls: bool) -> String {
        match self {
            Bound::Unix(_, path) => format!("unix://{}", path.display()),
            Bound::Tcp(_, address) if tls => format!("https://{address}"),
            Bound::Tcp(_, address) => format!("http://{address}"),
        }
    }

    /// Serves until `stopped`; a TCP port uses TLS if it is configured.
    pub(super) async fn serve(
        self,
        tls: Option<TlsAcceptor>,
        router: Router,
        stopped: impl Future<Output = ()>,
    ) -> Result<(), tonic::transport::Error> {
        match (self, tls) {
            (Bound::Unix(listener, path), _) => {
                let next = |context: &mut Context<'_>| {
                    listener.poll_accept(context).map_ok(|(stream, _)| stream)
                };
                let state = serve(next, |stream| async { Ok(stream) }, router, stopped).await;
                // An error is ignored: the file may be gone already, and the next start removes it
                // too.
                std::fs::remove_file(path).unwrap_or_default();
                state
            }
            (Bound::Tcp(listener, _), None) => {
                let next = |context: &mut Context<'_>| {
                    listener.poll_accept(context).map_ok(|(stream, _)| stream)
                };
                serve(next, at_once, router, stopped).await
            }
            (Bound::Tcp(listener, _), Some(tls)) => {
                let next = |context: &mut Context<'_>| {
                    listener.poll_accept(context).map_ok(|(stream, _)| stream)
                };
                let secure = move |stream| {
                    let tls = tls.clone();
                    async move { tls.accept(at_once(stream).await?).await }
                };
                serve(next, secure, router, stopped).await
            }
        }
    }
}

/// Sets `TCP_NODELAY`.
async fn at_once(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_nodelay(true).map(|()| stream)
}

async fn serve<S, C, F>(
    next: impl FnMut(&mut Context<'_>) -> Poll<io::Result<S>>,
    secure: impl Fn(S) -> F,
    router: Router,
    stopped: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error>
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<C>> + Send + 'static,
{
    let (ready, incoming) = mpsc::channel(1);
    let incoming = ReceiverStream::new(incoming)
        .map(|connection: io::Result<C>| connection.map(AuthorityFilter::new));
    // The server drops `incoming` when it stops, which ends the accept loop.
    let serving = router.serve_with_incoming_shutdown(incoming, stopped);
    tokio::join!(serving, accept(next, secure, ready)).0
}
