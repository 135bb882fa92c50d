//! A store in a simulated machine on one thread, and a model of its expected contents.

use coracle_store::{
    Delete, Event, EventKind, KeyRange, Op, Put, RangeRequest, Revision, Store, StoreError, Txn,
    TxnAnswer, WatchItem, WatchRequest,
    embedded::{Clock, Config, Driver, Embedded, OpenError, files::SimulatedDisk},
};
use std::{
    collections::BTreeMap,
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

/// A clock that is advanced by the test.
#[derive(Default)]
pub(crate) struct ManualClock(AtomicU64);

impl ManualClock {
    pub(crate) fn advance(&self, time: Duration) {
        self.0
            .fetch_add(u64::try_from(time.as_millis()).unwrap(), Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn unix(&self) -> Duration {
        self.elapsed() + Duration::from_secs(1_700_000_000)
    }
}

/// A store whose writer is run by the test.
pub(crate) struct Machine {
    pub(crate) store: Embedded,
    pub(crate) driver: Driver,
}

impl Machine {
    pub(crate) fn start(
        disk: &SimulatedDisk,
        clock: &Arc<ManualClock>,
        config: Config,
    ) -> Result<Self, OpenError> {
        let (store, driver) = Embedded::open_driven(config, Arc::new(disk.files()), clock.clone())?;
        Ok(Machine { store, driver })
    }

    /// Runs transactions that are all queued when the writer runs.
    pub(crate) fn together(&mut self, txns: Vec<Txn>) -> Vec<Result<TxnAnswer, StoreError>> {
        let store = &self.store;
        let mut waiting: Vec<_> = txns
            .into_iter()
            .map(|txn| Box::pin(store.txn(txn)))
            .collect();

        for future in &mut waiting {
            assert!(
                poll(future.as_mut()).is_none(),
                "nothing is answered before the writer's turn"
            );
        }

        self.driver.turn();

        waiting
            .iter_mut()
            .map(|future| poll(future.as_mut()).expect("answered after the turn"))
            .collect()
    }

    pub(crate) fn txn(&mut self, txn: Txn) -> Result<TxnAnswer, StoreError> {
        self.together(vec![txn]).pop().unwrap()
    }

    pub(crate) fn put(&mut self, key: &str, value: &str) -> Result<Revision, StoreError> {
        let put = Op::Put(Put::new(key.to_owned(), value.to_owned()));
        self.txn(Txn {
            then: vec![put],
            ..Txn::default()
        })
        .map(|answer| answer.revision)
    }

    pub(crate) fn delete(&mut self, key: &str) -> Result<Revision, StoreError> {
        let delete = Op::Delete(Delete::new(KeyRange::single(key.to_owned())));
        self.txn(Txn {
            then: vec![delete],
            ..Txn::default()
        })
        .map(|answer| answer.revision)
    }

    pub(crate) fn compact(&mut self, revision: Revision) -> Result<(), StoreError> {
        let mut asked = pin!(self.store.compact(revision));
        assert!(poll(asked.as_mut()).is_none());
        self.driver.turn();
        poll(asked.as_mut()).expect("answered after the turn")
    }

    /// Runs all background work of the writer.
    pub(crate) fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.driver.turn() != Some(Duration::ZERO) {
                return;
            }
        }
        panic!("the background work does not end");
    }

    pub(crate) fn defragment(&mut self) -> Result<(), StoreError> {
        let mut asked = pin!(self.store.defragment());
        assert!(poll(asked.as_mut()).is_none());
        for _ in 0..10_000 {
            self.driver.turn();
            if let Some(answer) = poll(asked.as_mut()) {
                return answer;
            }
        }
        panic!("defragmentation does not end");
    }

    pub(crate) fn read(&self, at: Option<Revision>) -> Result<State, StoreError> {
        let request = RangeRequest {
            at,
            ..RangeRequest::new(KeyRange::all())
        };
        let answer = now(self.store.range(request))?;
        Ok(answer
            .kvs
            .iter()
            .map(|kv| (text(&kv.key), text(&kv.value)))
            .collect())
    }

    pub(crate) fn compacted(&self) -> Revision {
        now(self.store.status()).unwrap().compacted
    }

    /// All events from a revision to the newest, without waiting for more.
    pub(crate) fn events(&self, from: Revision) -> Result<Vec<Event>, StoreError> {
        let request = WatchRequest::new(KeyRange::all())
            .from(from)
            .with_previous();
        let mut watch = now(self.store.watch(request))?;

        let mut all = Vec::new();
        loop {
            let mut next = Box::pin(watch.next());
            match poll(next.as_mut()) {
                Some(Ok(WatchItem::Events(events))) => all.extend(events),
                Some(Ok(WatchItem::Progress(_))) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(all),
            }
        }
    }
}

pub(crate) type State = BTreeMap<String, String>;

/// The complete history: the writes of each revision.
#[derive(Default, Clone)]
pub(crate) struct Model {
    pub(crate) history: BTreeMap<u64, Vec<(String, Option<String>)>>,
}

impl Model {
    pub(crate) fn at(&self, revision: Revision) -> State {
        let mut state = State::new();
        for (key, value) in self
            .history
            .range(..=revision.get())
            .flat_map(|(_, writes)| writes)
        {
            match value {
                Some(value) => state.insert(key.clone(), value.clone()),
                None => state.remove(key),
            };
        }

        state
    }

    /// The events of the revisions from `from` on, in the form of [`brief`].
    pub(crate) fn events(&self, from: Revision) -> Vec<String> {
        let mut state = self.at(from.previous());
        let mut events = Vec::new();
        for (revision, writes) in self.history.range(from.get()..) {
            for (key, value) in writes {
                let previous = match value {
                    Some(value) => state.insert(key.clone(), value.clone()),
                    None => state.remove(key),
                };
                events.push(format!("{revision}: {key}={value:?} was {previous:?}"));
            }
        }

        events
    }
}

/// An event in the form of the model.
pub(crate) fn brief(event: &Event) -> String {
    let value = (event.kind == EventKind::Put).then(|| text(&event.kv.value));
    let previous = event.previous.as_ref().map(|kv| text(&kv.value));
    format!(
        "{}: {}={value:?} was {previous:?}",
        event.kv.mod_revision,
        text(&event.kv.key)
    )
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The result of a future that must not wait.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    poll(Box::pin(future).as_mut()).expect("nothing to wait for")
}

/// Polls a few times, because tasks yield now and then.
pub(crate) fn poll<T>(
    mut future: std::pin::Pin<&mut (impl Future<Output = T> + ?Sized)>,
) -> Option<T> {
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..8 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return Some(value);
        }
    }
    None
}
