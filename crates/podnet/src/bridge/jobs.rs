//! The job queue of the bridge's thread.
//!
//! Replacing the host port rules costs the same for one pod as for many, and takes long on a busy
//! machine. So adjacent jobs of the same type are done together; the order between types is kept,
//! because a port released by one pod may be requested by the next.

use std::time::Duration;

use coracle_netlink::nftables::Watch;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::worker::Worker;
use crate::{Attachment, Error, Pod};

/// Receives the result.
pub(super) type Reply<T> = oneshot::Sender<Result<T, Error>>;

pub(super) enum Job {
    Attach(Pod, Reply<Attachment>),
    Detach(String, Reply<()>),
    /// Any other operation, which sends its own result.
    Run(Box<dyn FnOnce(&mut Worker) + Send>),
}

/// Runs jobs until all senders are dropped, and restores the rules when another process deletes
/// them. This thread does nothing else: a job may block it.
pub(super) async fn serve(
    worker: &mut Worker,
    watch: Option<&Watch>,
    incoming: &mut mpsc::Receiver<Job>,
) {
    let mut next = None;
    let mut retry = None;
    loop {
        let job = match next.take() {
            Some(job) => job,
            None => tokio::select! {
                biased;
                job = incoming.recv() => match job {
                    Some(job) => job,
                    None => return,
                },
                () = rules_deleted(watch), if retry.is_none() => {
                    retry = restore(worker);
                    continue;
                }
                () = until(retry) => {
                    retry = restore(worker);
                    continue;
                }
            },
        };

        next = match job {
            Job::Attach(pod, reply) => attach(worker, (pod, reply), incoming),
            Job::Detach(sandbox, reply) => detach(worker, (sandbox, reply), incoming),
            Job::Run(operation) => {
                operation(worker);
                None
            }
        };
    }
}

/// After a failure.
const RETRY: Duration = Duration::from_secs(5);

/// Restores the rules; returns when to retry.
fn restore(worker: &Worker) -> Option<Instant> {
    let error = worker.restore_rules().err()?;
    let error: &dyn std::error::Error = &error;
    tracing::error!(error, "cannot restore the host port rules; retrying");
    Some(Instant::now() + RETRY)
}

async fn rules_deleted(watch: Option<&Watch>) {
    match watch {
        Some(watch) => watch.table_deleted().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Attaches this pod and the adjacent queued ones; returns the first job of another type.
fn attach(
    worker: &mut Worker,
    first: (Pod, Reply<Attachment>),
    incoming: &mut mpsc::Receiver<Job>,
) -> Option<Job> {
    let mut batch = vec![first];
    let other = loop {
        match incoming.try_recv() {
            Ok(Job::Attach(pod, reply)) => batch.push((pod, reply)),
            other => break other.ok(),
        }
    };

    let pods: Vec<&Pod> = batch.iter().map(|(pod, _)| pod).collect();
    let done = worker.attach_all(&pods);

    // A caller that no longer waits will detach the pod.
    batch
        .into_iter()
        .zip(done)
        .for_each(|((_, reply), done)| drop(reply.send(done)));

    other
}

/// Detaches this sandbox and the adjacent queued ones; returns the first job of another type.
fn detach(
    worker: &mut Worker,
    first: (String, Reply<()>),
    incoming: &mut mpsc::Receiver<Job>,
) -> Option<Job> {
    let mut batch = vec![first];
    let other = loop {
        match incoming.try_recv() {
            Ok(Job::Detach(sandbox, reply)) => batch.push((sandbox, reply)),
            other => break other.ok(),
        }
    };

    let sandboxes: Vec<&str> = batch.iter().map(|(sandbox, _)| sandbox.as_str()).collect();
    let done = worker.detach_all(&sandboxes);
    batch
        .into_iter()
        .zip(done)
        .for_each(|((_, reply), done)| drop(reply.send(done)));

    other
}
