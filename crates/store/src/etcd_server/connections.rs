//! Accepts connections, runs TLS handshakes and hands connections to the HTTP server.
//!
//! Handshakes run concurrently, so that a slow client delays no other. Their number and the
//! duration of each are bounded. When the limit is reached, the oldest handshake is dropped: a
//! working client finishes long before that many others have connected after it.

use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::{sleep, timeout},
};

/// How long a handshake may take.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How many handshakes may run at once.
const MOST_HANDSHAKES: usize = 256;
/// Delay before accepting again after a failure, for example too many open files.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Accepts connections until the receiver of `ready` is dropped. Each one passes `secure` and is
/// then sent to `ready`.
pub(super) async fn accept<S, C, F>(
    mut next: impl FnMut(&mut Context<'_>) -> Poll<io::Result<S>>,
    secure: impl Fn(S) -> F,
    ready: mpsc::Sender<io::Result<C>>,
) where
    C: Send + 'static,
    F: Future<Output = io::Result<C>> + Send + 'static,
{
    let mut handshakes = JoinSet::new();
    let mut under_way: VecDeque<AbortHandle> = VecDeque::new();
    let mut failing = false;

    loop {
        let accepted = tokio::select! {
            biased;
            () = ready.closed() => return,
            Some(_) = handshakes.join_next() => continue,
            accepted = poll_fn(&mut next) => accepted,
        };

        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "cannot accept connections on the etcd address; retrying");
                }
                failing = true;
                sleep(AFTER_FAILURE).await;
                continue;
            }
        };

        failing = false;

        under_way.retain(|handshake| !handshake.is_finished());

        if under_way.len() >= MOST_HANDSHAKES
            && let Some(oldest) = under_way.pop_front()
        {
            oldest.abort();
        }

        under_way.push_back(handshakes.spawn(secure_and_send(secure(stream), ready.clone())));
    }
}

async fn secure_and_send<C>(
    secured: impl Future<Output = io::Result<C>>,
    ready: mpsc::Sender<io::Result<C>>,
) {
    match timeout(HANDSHAKE_WITHIN, secured).await {
        // A send error means that the server is stopping; the connection is dropped.
        Ok(Ok(connection)) => ready.send(Ok(connection)).await.unwrap_or_default(),
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed on the etcd address"),
        Err(_) => tracing::debug!("TLS handshake timed out on the etcd address"),
    }
}
