//! Many watches of the same ConfigMaps, and the events they receive.

use std::time::Duration;

use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection::{Call, Connection, RequestError};
use super::load::{self, Until};
use super::objects::config_map;
use super::target::Target;

/// Number of writers: many, so that they are not the bottleneck.
const WRITERS: usize = 32;

/// The measurements.
pub(super) struct Watched {
    /// From the first write until all watches have received all events.
    pub(super) took: Duration,
    pub(super) deliveries: u64,
    pub(super) bytes: u64,
}

pub(super) async fn watch(
    target: &Target,
    maps: &str,
    watchers: usize,
    events: usize,
    size: usize,
) -> Result<Watched, RequestError> {
    let (begun, mut all_begun) = mpsc::channel(watchers);
    let mut tasks = JoinSet::new();
    for _ in 0..watchers {
        let (target, begun) = (target.clone(), begun.clone());
        let call = Call::get(format!("{maps}?watch=1&timeoutSeconds=600"));
        tasks.spawn(async move { one(&target, call, events, begun).await });
    }

    for _ in 0..watchers {
        all_begun
            .recv()
            .await
            .expect("every watcher says that it has begun");
    }

    let began = Instant::now();
    let path = maps.to_string();
    let write = move |client: usize, n: usize| {
        Call::post(
            path.clone(),
            config_map(&format!("watched-{client}-{n}"), size),
        )
    };
    load::run(target, WRITERS, Until::Count(events), write).await?;

    let mut watched = Watched {
        took: Duration::ZERO,
        deliveries: 0,
        bytes: 0,
    };

    while let Some(done) = tasks.join_next().await {
        let (lines, bytes) = done.expect("a watcher does not panic")?;
        watched.deliveries += lines;
        watched.bytes += bytes;
    }

    watched.took = began.elapsed();

    Ok(watched)
}

/// Reads until this many events have arrived; each is a line.
async fn one(
    target: &Target,
    call: Call,
    events: usize,
    begun: mpsc::Sender<()>,
) -> Result<(u64, u64), RequestError> {
    let mut connection = Connection::open(target).await?;
    let mut body = connection.begin(call).await?.into_body();
    begun
        .send(())
        .await
        .expect("the receiver waits for all watches");

    let (mut lines, mut bytes) = (0, 0);
    while lines < events as u64 {
        let Some(frame) = body.frame().await else {
            break;
        };
        let Ok(data) = frame?.into_data() else {
            continue;
        };
        bytes += data.len() as u64;
        lines += ends_of_lines(&data);
    }

    Ok((lines, bytes))
}

/// Counted in pieces of fewer than 256 bytes, whose sums fit into a byte: so that many bytes are
/// compared at a time.
fn ends_of_lines(data: &[u8]) -> u64 {
    let ends = |piece: &[u8]| {
        piece
            .iter()
            .map(|byte| u8::from(*byte == b'\n'))
            .sum::<u8>()
    };
    data.chunks(240).map(|piece| u64::from(ends(piece))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_a_line_counts() {
        for lines in [0, 1, 255, 256, 1000] {
            assert_eq!(ends_of_lines("\n".repeat(lines).as_bytes()), lines as u64);
            assert_eq!(
                ends_of_lines("a line\n".repeat(lines).as_bytes()),
                lines as u64
            );
        }
    }
}
