//! Where the face listens: a unix socket that only its owner may open, or a port of this machine. A
//! port that others can reach is refused unless they have to show a certificate: whoever can write
//! to the store owns the cluster.

use super::authority::Hostless;
use super::connections::accept;
use super::tls::{FaceTls, TlsError};
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
    /// Port 0 takes a free one.
    Tcp(SocketAddr),
}

/// Why the face cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum FaceError {
    #[error("listening on {place}")]
    Listen { place: String, source: io::Error },
    #[error(
        "{address} can be reached by others: demand client certificates, or use a loopback address"
    )]
    Exposed { address: SocketAddr },
    #[error("setting up TLS")]
    Tls(#[from] TlsError),
}

/// A listener with its address.
pub(super) enum Bound {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener, SocketAddr),
}

pub(super) fn bind(listen: &Listen, tls: Option<&FaceTls>) -> Result<Bound, FaceError> {
    match listen {
        Listen::Unix(path) => {
            let listener = bind_unix(path).map_err(|source| FaceError::Listen {
                place: path.display().to_string(),
                source,
            })?;
            Ok(Bound::Unix(listener, path.clone()))
        }
        Listen::Tcp(address) => {
            let guarded = tls.is_some_and(|tls| tls.clients.is_some());
            if !address.ip().is_loopback() && !guarded {
                return Err(FaceError::Exposed { address: *address });
            }

            let (listener, address) = bind_tcp(*address).map_err(|source| FaceError::Listen {
                place: address.to_string(),
                source,
            })?;

            Ok(Bound::Tcp(listener, address))
        }
    }
}

/// How many connections may wait to be accepted, as the standard library has it.
const BACKLOG: u32 = 128;

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    // A socket that a process left behind when it was killed; anything else of that name is not
    // ours to remove.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let socket = UnixSocket::new_stream()?;
    // Before the socket has its name, so that no other user can connect in between.
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

    /// Serves until `stopped`, with TLS on a port if there is any.
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
                let served = serve(next, |stream| async { Ok(stream) }, router, stopped).await;
                // Somebody may have taken it away already; the next to listen there would remove it
                // too.
                std::fs::remove_file(path).unwrap_or_default();
                served
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

/// A connection that sends what it has at once.
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
        .map(|connection: io::Result<C>| connection.map(Hostless::new));
    // The server drops `incoming` when it stops, which ends the accepting.
    let serving = router.serve_with_incoming_shutdown(incoming, stopped);
    tokio::join!(serving, accept(next, secure, ready)).0
}
