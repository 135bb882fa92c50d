//! Where the face listens: a unix socket that only its owner may open, or a port of this machine. A port that others
//! can reach is refused unless they have to show a certificate: whoever can write to the store owns the cluster.

use super::authority::Hostless;
use std::{
    fmt, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
};
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::{StreamExt, wrappers::UnixListenerStream};
use tonic::transport::{
    Certificate, Identity, ServerTlsConfig,
    server::{Router, TcpIncoming},
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    Unix(PathBuf),
    /// Port 0 takes a free one.
    Tcp(SocketAddr),
}

/// PEM texts.
#[derive(Clone)]
pub struct FaceTls {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
    /// Who signs the certificates that clients have to show; without it they show none.
    pub clients: Option<Vec<u8>>,
}

/// Why the face cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum FaceError {
    #[error("listening on {place}")]
    Listen { place: String, source: io::Error },
    #[error("{address} can be reached by others: demand client certificates, or use a loopback address")]
    Exposed { address: SocketAddr },
    #[error("setting up TLS")]
    Tls(#[source] tonic::transport::Error),
}

/// A listener with its address.
pub(super) enum Bound {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener, SocketAddr),
}

impl FaceTls {
    pub(super) fn settings(&self) -> ServerTlsConfig {
        let settings = ServerTlsConfig::new().identity(Identity::from_pem(&self.certificate, &self.key));
        match &self.clients {
            Some(clients) => settings.client_ca_root(Certificate::from_pem(clients)),
            None => settings,
        }
    }
}

impl fmt::Debug for FaceTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaceTls")
            .field("demands_certificates", &self.clients.is_some())
            .finish_non_exhaustive()
    }
}

pub(super) fn bind(listen: &Listen, tls: Option<&FaceTls>) -> Result<Bound, FaceError> {
    match listen {
        Listen::Unix(path) => {
            let listener = bind_unix(path)
                .map_err(|source| FaceError::Listen { place: path.display().to_string(), source })?;
            Ok(Bound::Unix(listener, path.clone()))
        }
        Listen::Tcp(address) => {
            let guarded = tls.is_some_and(|tls| tls.clients.is_some());
            if !address.ip().is_loopback() && !guarded {
                return Err(FaceError::Exposed { address: *address });
            }
            let (listener, address) = bind_tcp(*address)
                .map_err(|source| FaceError::Listen { place: address.to_string(), source })?;
            Ok(Bound::Tcp(listener, address))
        }
    }
}

fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    // A socket that a process left behind when it was killed; anything else of that name is not ours to remove.
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
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

    pub(super) async fn serve(
        self,
        router: Router,
        stopped: impl Future<Output = ()>,
    ) -> Result<(), tonic::transport::Error> {
        match self {
            Bound::Unix(listener, path) => {
                let incoming =
                    UnixListenerStream::new(listener).map(|connection| connection.map(Hostless::new));
                let served = router.serve_with_incoming_shutdown(incoming, stopped).await;
                // Somebody may have taken it away already; the next to listen there would remove it too.
                std::fs::remove_file(path).unwrap_or_default();
                served
            }
            Bound::Tcp(listener, _) => {
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                let incoming = incoming.map(|connection| connection.map(Hostless::new));
                router.serve_with_incoming_shutdown(incoming, stopped).await
            }
        }
    }
}
