//! What the bridge's thread is asked for, and in which turns it does it.
//!
//! A change of the rules for ports of the host costs the same for one pod as for many, and on a
//! busy machine it takes long. So of what waits, neighbours of the same kind are done together; the
//! order between kinds stays, as a port that one pod gives back may be the next one's.

use tokio::sync::{mpsc, oneshot};

use super::worker::Worker;
use crate::{Attachment, Error, Pod};

/// Where whoever asked waits.
pub(super) type Answer<T> = oneshot::Sender<Result<T, Error>>;

pub(super) enum Job {
    Attach(Pod, Answer<Attachment>),
    Detach(String, Answer<()>),
    /// Anything else, which answers for itself.
    Deed(Box<dyn FnOnce(&mut Worker) + Send>),
}

/// Does what comes, until nobody can ask any more.
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

/// Attaches this pod and those that wait next to it; answers the first job of another kind.
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

    // Whoever does not wait any more asks for the pod to be detached.
    together
        .into_iter()
        .zip(done)
        .for_each(|((_, answer), done)| drop(answer.send(done)));

    other
}

/// Detaches this sandbox and those that wait next to it; answers the first job of another kind.
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
