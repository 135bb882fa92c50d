//! Connections to ports of pods, for port forwarding.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::node::blocking;

/// How long a port of a pod may take to accept.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections at a time: each takes a descriptor of the whole process.
const MAX_CONNECTIONS: usize = 4096;

/// Makes connections to ports of pods, and bounds how many there are.
#[derive(Clone)]
pub(crate) struct ForwardedPorts {
    permits: Arc<Semaphore>,
}

/// A connection to a port of a pod.
pub(crate) struct ForwardedPort {
    stream: TcpStream,
    _permit: OwnedSemaphorePermit,
}

impl ForwardedPorts {
    pub(crate) fn new() -> ForwardedPorts {
        ForwardedPorts {
            permits: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        }
    }

    /// Connects to a port on the loopback of a network namespace; `None`: the host's.
    ///
    /// # Cancellation
    /// A connection that the port has not accepted yet is given up. No thread waits for it.
    pub(crate) async fn connect(
        &self,
        network: Option<PathBuf>,
        port: u16,
    ) -> io::Result<ForwardedPort> {
        let permit = self.permits.clone().try_acquire_owned().map_err(|_| {
            io::Error::other(format!(
                "{MAX_CONNECTIONS} connections are forwarded on this node already"
            ))
        })?;

        let socket = blocking(move || open_socket(network)).await?;
        let connecting = socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        let stream = match tokio::time::timeout(ACCEPT_TIMEOUT, connecting).await {
            Ok(connected) => connected?,
            Err(_) => return Err(io::Error::from(io::ErrorKind::TimedOut)),
        };

        Ok(ForwardedPort {
            stream,
            _permit: permit,
        })
    }
}

/// Opens a socket on a thread that enters the network namespace and ends. A socket stays in the
/// namespace it was opened in.
fn open_socket(network: Option<PathBuf>) -> io::Result<TcpSocket> {
    let Some(pin) = network else {
        return TcpSocket::new_v4();
    };
    let open_inside = move || {
        let pin = fs::File::open(pin)?;
        move_into_link_name_space(pin.as_fd(), Some(LinkNameSpaceType::Network))?;
        TcpSocket::new_v4()
    };

    std::thread::spawn(open_inside)
        .join()
        .expect("nothing in there panics")
}

impl AsyncRead for ForwardedPort {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ForwardedPort {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listener whose queue is full accepts nothing more: connections wait. More of them than the
    /// runtime has threads that may block must not keep such a thread from other work.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn ports_that_do_not_accept_hold_up_nothing_else() {
        let listener = TcpSocket::new_v4().unwrap();
        listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listener.listen(1).unwrap();
        let port = listener.local_addr().unwrap().port();

        let ports = ForwardedPorts::new();
        let waiting: Vec<_> = (0..600)
            .map(|_| {
                let ports = ports.clone();
                tokio::spawn(async move { ports.connect(None, port).await.map(drop) })
            })
            .collect();
        // Some fit into the queue of the listener, and end.
        while ports.permits.available_permits() > MAX_CONNECTIONS - 550 {
            tokio::task::yield_now().await;
        }

        // Refused at once, although all the others still wait.
        let refused = TcpSocket::new_v4().unwrap();
        refused.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let closed = refused.local_addr().unwrap().port();
        let error = ports.connect(None, closed).await.map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        assert!(waiting.iter().any(|connecting| !connecting.is_finished()));

        // Those who go take their connections along.
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        while ports.permits.available_permits() < MAX_CONNECTIONS {
            tokio::task::yield_now().await;
        }
    }
}
