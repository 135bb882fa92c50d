//! The writer's queue: requests wait here until the next batch takes them.

use crate::{LeaseId, Revision, StoreError, Txn, TxnAnswer, Unavailable};
use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard},
    time::Duration,
};
use tokio::sync::{Notify, oneshot};

/// A request to the writer.
pub(crate) enum Request {
    Txn(Txn, Reply<TxnAnswer>),
    GrantLease {
        id: LeaseId,
        ttl: Duration,
        reply: Reply<()>,
    },
    EndLease {
        id: LeaseId,
        reply: Option<Reply<Revision>>,
    },
    Compact {
        revision: Revision,
        reply: Reply<()>,
    },
    /// Reclaim all the space that can be reclaimed.
    Defragment(Reply<()>),
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    /// Wakes a writer that runs as a thread…
    thread: Condvar,
    /// …and one that runs as a task.
    task: Notify,
}

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Request>,
    closed: bool,
    /// The writer sleeps until this many requests wait; 0 while it is awake. Waking costs a system
    /// call, so it is done only when needed.
    wanted: usize,
}

/// The maximum size of a batch, which bounds how long a reply waits.
const BATCH: usize = 4096;

impl Queue {
    pub(crate) async fn send<T>(
        &self,
        request: impl FnOnce(Reply<T>) -> Request,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.push(request(reply))?;
        answer
            .await
            .unwrap_or(Err(StoreError::Unavailable(Unavailable::Closed)))
    }

    fn push(&self, request: Request) -> Result<(), StoreError> {
        let mut waiting = self.waiting();
        if waiting.closed {
            return Err(Unavailable::Closed.into());
        }

        waiting.requests.push_back(request);
        let wake = waiting.wanted > 0 && waiting.requests.len() >= waiting.wanted;
        if wake {
            waiting.wanted = 0;
        }

        drop(waiting);

        if wake {
            self.wake();
        }

        Ok(())
    }

    pub(crate) fn take(&self) -> Vec<Request> {
        let mut waiting = self.waiting();
        let count = waiting.requests.len().min(BATCH);
        waiting.requests.drain(..count).collect()
    }

    pub(crate) fn close(&self) {
        self.waiting().closed = true;
        self.wake();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.waiting().closed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting().requests.len()
    }

    /// Fails the requests that still wait: the writer has ended.
    pub(crate) fn abandon(&self) {
        let mut waiting = self.waiting();
        waiting.closed = true;
        waiting.requests.clear();
    }

    /// Waits until there are `wanted` requests, the queue is closed, or `most` has passed.
    pub(crate) fn wait(&self, wanted: usize, most: Option<Duration>) {
        let mut waiting = self.waiting();
        waiting.wanted = wanted;

        let idle = |waiting: &mut Waiting| waiting.requests.len() < wanted && !waiting.closed;
        let mut waiting = match most {
            Some(most) => {
                self.thread
                    .wait_timeout_while(waiting, most, idle)
                    .expect(UNPOISONED)
                    .0
            }
            None => self.thread.wait_while(waiting, idle).expect(UNPOISONED),
        };
        waiting.wanted = 0;
    }

    /// Waits for a request, or until the queue is closed, for a writer that runs as a task.
    pub(crate) async fn wait_as_task(&self, most: Option<Duration>) {
        let woken = self.task.notified();

        {
            let mut waiting = self.waiting();
            if !waiting.requests.is_empty() || waiting.closed {
                return;
            }
            waiting.wanted = 1;
        }

        match most {
            Some(most) => {
                tokio::select! { biased; () = woken => {}, () = tokio::time::sleep(most) => {} }
            }
            None => woken.await,
        }
    }

    fn wake(&self) {
        self.thread.notify_one();
        self.task.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().expect(UNPOISONED)
    }
}

const UNPOISONED: &str = "nothing panics while it holds the queue";
