//! Random traffic and its record.
//!
//! Clients write, swap, delete and read a few keys, one or several at once, so that they conflict.
//! Watchers are dropped now and then and resume. Every value is written once, so that a change
//! identifies its author.

use super::{Action, History, Operation, WatchRecord, Written};
use crate::{
    Compare, Delete, Event, KeyRange, KeyValue, Op, OpAnswer, Put, RangeRequest, Revision, Store,
    StoreError, Txn, WatchItem, WatchRequest,
};
use bytes::Bytes;
use fastrand::Rng;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

/// The amount of traffic.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    pub clients: usize,
    /// How long clients run.
    pub lasts: Duration,
    /// How long a client pauses between two requests.
    pub rest: Duration,
    pub watchers: usize,
    pub seed: u64,
}

const KEYS: usize = 8;
/// Half of the keys begin with this.
const SOME: &str = "traffic/a";
const ALL: &str = "traffic/";
/// Pause after a request that was not answered.
const RETRY_PAUSE: Duration = Duration::from_millis(20);
/// How long watchers may take to deliver everything in the end.
const TIMEOUT: Duration = Duration::from_secs(30);

impl Traffic {
    /// Runs the traffic on a store without other writers and returns its record. Panics if the
    /// store never becomes available again.
    pub async fn run(&self, store: Arc<dyn Store>) -> History {
        let clock = Arc::new(AtomicU64::new(0));
        let (running, until) = watch::channel(());
        let first = until_answered(|| store.current_revision()).await;
        let mut clients = JoinSet::new();
        let mut watchers = JoinSet::new();

        for number in 0..self.clients {
            let rng = Rng::with_seed(self.seed.wrapping_add(number as u64));
            let client = Client {
                number,
                writes: 0,
                rng,
                rest: self.rest,
                clock: clock.clone(),
                seen: Vec::new(),
            };
            clients.spawn(client.run(store.clone(), until.clone()));
        }

        for number in 0..self.watchers {
            let rng = Rng::with_seed(self.seed.wrapping_add(1000 + number as u64));
            let prefix = if number % 2 == 0 { ALL } else { SOME };

            let range = KeyRange::prefix(prefix);
            watchers.spawn(watch_all(
                store.clone(),
                range,
                first.next(),
                rng,
                until.clone(),
            ));
        }

        sleep(self.lasts).await;
        drop((running, until));
        let mut history = History::default();
        while let Some(operations) = clients.join_next().await {
            history
                .operations
                .extend(operations.expect("a client does not panic"));
        }

        let ended = timeout(TIMEOUT, async {
            while let Some(watch) = watchers.join_next().await {
                history
                    .watches
                    .push(watch.expect("a watcher does not panic"));
            }
        });

        ended
            .await
            .expect("every watcher gets everything in the end");
        history.events = all_changes(&*store, first.next()).await;

        history
    }
}

/// One client; it waits for each answer.
struct Client {
    number: usize,
    writes: u64,
    rng: Rng,
    rest: Duration,
    clock: Arc<AtomicU64>,
    /// The last known revisions of some keys.
    seen: Vec<(Bytes, Revision)>,
}

impl Client {
    async fn run(mut self, store: Arc<dyn Store>, until: watch::Receiver<()>) -> Vec<Operation> {
        let mut operations = Vec::new();

        // The sender is dropped when it is time to stop.
        while until.has_changed().is_ok() {
            let called = self.now();
            let action = match self.rng.u8(..20) {
                0..5 => self.put(&*store).await,
                5..11 => self.swap(&*store).await,
                11..13 => self.delete(&*store).await,
                13 => self.read(&*store, KeyRange::prefix(ALL), true).await,
                14..17 => self.read(&*store, KeyRange::prefix(SOME), false).await,
                _ => {
                    let key = self.key();
                    self.read(&*store, KeyRange::single(key), false).await
                }
            };

            match action {
                Some(action) => {
                    let unknown = matches!(
                        &action,
                        Action::Write {
                            outcome: Written::Unknown,
                            ..
                        }
                    );

                    let answered = if unknown { u64::MAX } else { self.now() };
                    operations.push(Operation {
                        called,
                        answered,
                        action,
                    });

                    sleep(if unknown { RETRY_PAUSE } else { self.rest }).await;
                }
                None => sleep(RETRY_PAUSE).await,
            }
        }

        operations
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    fn key(&mut self) -> Bytes {
        let number = self.rng.usize(..KEYS);
        let half = if number < KEYS / 2 { "a" } else { "b" };
        format!("{ALL}{half}{number}").into()
    }

    fn value(&mut self) -> Bytes {
        self.writes += 1;
        format!("{}-{}", self.number, self.writes).into()
    }

    async fn put(&mut self, store: &dyn Store) -> Option<Action> {
        let key = self.key();
        self.write(store, key, None).await
    }

    async fn swap(&mut self, store: &dyn Store) -> Option<Action> {
        let (key, seen) = match self.seen.pop() {
            Some(seen) => seen,
            None => (self.key(), Revision::ZERO),
        };
        self.write(store, key, Some(seen)).await
    }

    /// Writes a key, and half of the time others with it.
    async fn write(
        &mut self,
        store: &dyn Store,
        key: Bytes,
        condition: Option<Revision>,
    ) -> Option<Action> {
        let value = self.value();
        let mut also = BTreeMap::new();
        for _ in 0..self.rng.usize(..3).saturating_sub(self.rng.usize(..2)) {
            also.insert(self.key(), self.value());
        }

        also.remove(&key);
        let also: Vec<_> = also.into_iter().collect();

        let puts = also.iter().cloned().chain([(key.clone(), value.clone())]);
        let txn = Txn {
            compare: condition
                .map(|seen| Compare::unchanged_since(key.clone(), seen))
                .into_iter()
                .collect(),
            then: puts
                .map(|(key, value)| Op::Put(Put::new(key, value)))
                .collect(),
            otherwise: vec![Op::Range(RangeRequest::new(KeyRange::single(key.clone())))],
        };

        let outcome = match store.txn(txn).await {
            Ok(answer) if answer.succeeded => Written::At(answer.revision),
            Ok(mut answer) => match answer.answers.pop() {
                Some(OpAnswer::Range(mut found)) => Written::Refused {
                    found: found.kvs.pop(),
                    at: answer.revision,
                },
                other => panic!("unexpected answer to a range {other:?}"),
            },
            Err(error) => unknown(&error),
        };

        Some(Action::Write {
            key,
            value: Some(value),
            also,
            condition,
            outcome,
        })
    }

    async fn delete(&mut self, store: &dyn Store) -> Option<Action> {
        let key = self.key();
        let delete = Op::Delete(Delete::new(KeyRange::single(key.clone())));
        let outcome = match store
            .txn(Txn {
                then: vec![delete],
                ..Txn::default()
            })
            .await
        {
            Ok(answer) => match answer.answers[..] {
                [OpAnswer::Delete { deleted: 0, .. }] => Written::Nothing(answer.revision),
                _ => Written::At(answer.revision),
            },
            Err(error) => unknown(&error),
        };

        Some(Action::Write {
            key,
            value: None,
            also: Vec::new(),
            condition: None,
            outcome,
        })
    }

    async fn read(&mut self, store: &dyn Store, range: KeyRange, past: bool) -> Option<Action> {
        let at = if past {
            self.seen.last().map(|(_, revision)| *revision)
        } else {
            None
        };

        let request = RangeRequest {
            at,
            ..RangeRequest::new(range.clone())
        };

        let answer = store.range(request).await.ok()?;
        if at.is_none() {
            self.seen = answer
                .kvs
                .iter()
                .map(|kv: &KeyValue| (kv.key.clone(), kv.mod_revision))
                .collect();
            self.rng.shuffle(&mut self.seen);
        }

        Some(Action::Read { range, at, answer })
    }
}

/// A store may be unavailable, but must not reject a valid request.
fn unknown(error: &StoreError) -> Written {
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    Written::Unknown
}

/// Watches from `from` on until everything written before the end of `until` was delivered.
async fn watch_all(
    store: Arc<dyn Store>,
    range: KeyRange,
    from: Revision,
    mut rng: Rng,
    until: watch::Receiver<()>,
) -> WatchRecord {
    let mut record = WatchRecord {
        range: range.clone(),
        from,
        items: Vec::new(),
    };

    let mut next = from;
    let mut target = None;
    loop {
        let request = WatchRequest::new(range.clone()).from(next).with_previous();
        let Ok(mut watch) = store.watch(request).await else {
            sleep(RETRY_PAUSE).await;
            continue;
        };

        let mut life = rng.u32(1..60);
        while life > 0 {
            if until.has_changed().is_err() {
                life = u32::MAX;
                if target.is_none() {
                    // Some writes may still be in progress; their authors are waited for.
                    sleep(RETRY_PAUSE * 10).await;
                    target = Some(until_answered(|| store.current_revision()).await);
                }
            }

            if target.is_some() || rng.u8(..8) == 0 {
                watch.request_progress();
            }

            let item = match timeout(Duration::from_millis(200), watch.next()).await {
                Err(_) => continue,
                Ok(Err(_)) => break,
                Ok(Ok(item)) => item,
            };

            let through = match &item {
                WatchItem::Events(events) => {
                    events.last().map_or(next, |event| event.kv.mod_revision)
                }
                WatchItem::Progress(revision) => *revision,
            };
            next = next.max(through.next());

            let delivered = matches!(item, WatchItem::Progress(_))
                && target.is_some_and(|target| through >= target);
            record.items.push(item);

            if delivered {
                return record;
            }

            life -= 1;
        }
    }
}

/// The store's own list of all changes since `from`.
async fn all_changes(store: &dyn Store, from: Revision) -> Vec<Event> {
    let last = until_answered(|| store.current_revision()).await;
    let request = WatchRequest::new(KeyRange::prefix(ALL))
        .from(from)
        .with_previous();
    let mut watch = until_answered(|| store.watch(request.clone())).await;

    let mut events = Vec::new();
    loop {
        watch.request_progress();
        match watch.next().await.expect("the history is kept") {
            WatchItem::Events(more) => events.extend(more),
            WatchItem::Progress(revision) if revision >= last => return events,
            WatchItem::Progress(_) => {}
        }
    }
}

/// Retries until the store answers.
async fn until_answered<T, F: Future<Output = Result<T, StoreError>>>(ask: impl Fn() -> F) -> T {
    let answer = timeout(TIMEOUT, async {
        loop {
            if let Ok(answer) = ask().await {
                return answer;
            }
            sleep(RETRY_PAUSE).await;
        }
    });
    answer.await.expect("the store becomes available again")
}
