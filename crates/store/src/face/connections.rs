//! Connections as they come: accepted, secured, and handed to the HTTP server.
//!
//! Handshakes go on side by side, so that a client that is slow or silent delays no other. There is
//! a bound on their number and on the time of each. When too many are under way the oldest gives
//! way: a client in earnest is done long before as many others have come after it.

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
/// How many handshakes may be under way.
const MOST_HANDSHAKES: usize = 256;
/// How long accepting rests after a failure: too many open files, say.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Accepts connections until the other end of `ready` is gone. Each one is secured and then sent
/// there.
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

        under_way.push_back(handshakes.spawn(hand_over(secure(stream), ready.clone())));
    }
}

async fn hand_over<C>(
    secured: impl Future<Output = io::Result<C>>,
    ready: mpsc::Sender<io::Result<C>>,
) {
    match timeout(HANDSHAKE_WITHIN, secured).await {
        // If the server is about to end, so does the connection.
        Ok(Ok(connection)) => ready.send(Ok(connection)).await.unwrap_or_default(),
        Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed on the etcd address"),
        Err(_) => tracing::debug!("TLS handshake took too long on the etcd address"),
    }
}
