//! The job queue of the bridge's thread.
//!
//! Replacing the host port rules costs the same for one pod as for many, and takes long on a busy
//! machine. So adjacent jobs of the same type are done together; the order between types is kept,
//! because a port released by one pod may be requested by the next.

use tokio::sync::{mpsc, oneshot};

use super::worker::Worker;
use crate::{Attachment, Error, Pod};

/// Receives the result.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Error>>;

pub(super) enum Job {
    Attach(Pod, Answer<Attachment>),
    Detach(String, Answer<()>),
    /// Any other operation, which sends its own result.
    Deed(Box<dyn FnOnce(&mut Worker) + Send>),
}

/// Runs jobs until all senders are dropped.
pub(super) fn serve(worker: &mut Worker, incoming: &mut mpsc::Receiver<Job>) {
    let mut next = incoming.blocking_recv();
    while let Some(job) = next {
        next = match job {
            Job::Attach(pod, answer) => attach(worker, (pod, answer), incoming),
            Job::Detach(sandbox, answer) => detach(worker, (sandbox, answer), incoming),
            Job::Deed(deed) => {
                deed(worker);
                None
            }
        };

        if next.is_none() {
            next = incoming.blocking_recv();
        }
    }
}

/// Attaches this pod and the adjacent queued ones; returns the first job of another type.
fn attach(
    worker: &mut Worker,
    first: (Pod, Answer<Attachment>),
    incoming: &mut mpsc::Receiver<Job>,
) -> Option<Job> {
    let mut together = vec![first];
    let other = loop {
        match incoming.try_recv() {
            Ok(Job::Attach(pod, answer)) => together.push((pod, answer)),
            other => break other.ok(),
        }
    };

    let pods: Vec<&Pod> = together.iter().map(|(pod, _)| pod).collect();
    let done = worker.attach_all(&pods);

    // A caller that no longer waits will detach the pod.
    together
        .into_iter()
        .zip(done)
        .for_each(|((_, answer), done)| drop(answer.send(done)));

    other
}

/// Detaches this sandbox and the adjacent queued ones; returns the first job of another type.
fn detach(
    worker: &mut Worker,
    first: (String, Answer<()>),
    incoming: &mut mpsc::Receiver<Job>,
) -> Option<Job> {
    let mut together = vec![first];
    let other = loop {
        match incoming.try_recv() {
            Ok(Job::Detach(sandbox, answer)) => together.push((sandbox, answer)),
            other => break other.ok(),
        }
    };

    let sandboxes: Vec<&str> = together
        .iter()
        .map(|(sandbox, _)| sandbox.as_str())
        .collect();
    let done = worker.detach_all(&sandboxes);
    together
        .into_iter()
        .zip(done)
        .for_each(|((_, answer), done)| drop(answer.send(done)));

    other
}
