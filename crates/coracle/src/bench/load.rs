//! Closed-loop load: each client sends its next request when the last one is answered.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection::{Call, Connection, RequestError};
use super::target::Target;

/// When the load ends.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Time(Duration),
    /// Number of requests of all clients together.
    Count(usize),
}

/// The measurements.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) took: Duration,
    pub(super) latencies: Vec<Duration>,
    /// Total length of all responses.
    pub(super) bytes: u64,
}

/// Runs the load. `call` returns the n-th request of a client.
pub(super) async fn run<F>(
    target: &Target,
    clients: usize,
    until: Until,
    call: F,
) -> Result<Measured, RequestError>
where
    F: Fn(usize, usize) -> Call + Clone + Send + 'static,
{
    let mut connections = Vec::with_capacity(clients);
    for _ in 0..clients {
        connections.push(Connection::open(target).await?);
    }

    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for (client, connection) in connections.into_iter().enumerate() {
        let call = call.clone();
        let share = match until {
            Until::Time(_) => usize::MAX,
            Until::Count(count) => count / clients + usize::from(client < count % clients),
        };

        let ends = match until {
            Until::Time(lasts) => Some(began + lasts),
            Until::Count(_) => None,
        };

        tasks.spawn(async move { one(connection, share, ends, move |n| call(client, n)).await });
    }

    let mut all = Measured::default();
    while let Some(measured) = tasks.join_next().await {
        let measured = measured.expect("a client does not panic")?;
        all.latencies.extend(measured.latencies);
        all.bytes += measured.bytes;
    }

    all.took = began.elapsed();

    Ok(all)
}

async fn one(
    mut connection: Connection,
    share: usize,
    ends: Option<Instant>,
    call: impl Fn(usize) -> Call,
) -> Result<Measured, RequestError> {
    let mut measured = Measured::default();
    for n in 0..share {
        let call = call(n);
        let sent = Instant::now();
        if ends.is_some_and(|ends| sent >= ends) {
            break;
        }
        measured.bytes += connection.send(call).await? as u64;
        measured.latencies.push(sent.elapsed());
    }
    Ok(measured)
}
