//! Many clients that ask, each again as soon as it is answered.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection::{Connection, Question, RequestError};
use super::target::Target;

/// When enough has been asked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Until {
    Time(Duration),
    /// So many requests, of all clients together.
    Count(usize),
}

/// What became of it.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) took: Duration,
    pub(super) latencies: Vec<Duration>,
    /// Of all answers.
    pub(super) bytes: u64,
}

/// `question` makes the n-th request of a client.
pub(super) async fn ask<F>(
    target: &Target,
    clients: usize,
    until: Until,
    question: F,
) -> Result<Asked, RequestError>
where
    F: Fn(usize, usize) -> Question + Clone + Send + 'static,
{
    let mut connections = Vec::with_capacity(clients);
    for _ in 0..clients {
        connections.push(Connection::open(target).await?);
    }

    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for (client, connection) in connections.into_iter().enumerate() {
        let question = question.clone();
        let share = match until {
            Until::Time(_) => usize::MAX,
            Until::Count(count) => count / clients + usize::from(client < count % clients),
        };

        let ends = match until {
            Until::Time(lasts) => Some(began + lasts),
            Until::Count(_) => None,
        };

        tasks
            .spawn(async move { one(connection, share, ends, move |n| question(client, n)).await });
    }

    let mut all = Asked::default();
    while let Some(asked) = tasks.join_next().await {
        let asked = asked.expect("a client does not panic")?;
        all.latencies.extend(asked.latencies);
        all.bytes += asked.bytes;
    }

    all.took = began.elapsed();

    Ok(all)
}

async fn one(
    mut connection: Connection,
    share: usize,
    ends: Option<Instant>,
    question: impl Fn(usize) -> Question,
) -> Result<Asked, RequestError> {
    let mut asked = Asked::default();
    for n in 0..share {
        let question = question(n);
        let sent = Instant::now();
        if ends.is_some_and(|ends| sent >= ends) {
            break;
        }
        asked.bytes += connection.ask(question).await? as u64;
        asked.latencies.push(sent.elapsed());
    }
    Ok(asked)
}
