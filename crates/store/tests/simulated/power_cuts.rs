//! Power cuts at all kinds of moments, on the simulated disk: writes that were not synced are kept,
//! torn or lost. No acknowledged write is lost, no revision goes back, no event is lost or
//! repeated, and a failed write happened completely or not at all.

use super::machine::{Machine, ManualClock, Model, State, brief, text};
use coracle_store::{
    Delete, Event, EventKind, KeyRange, Op, Put, Revision, StoreError, Txn, Unavailable,
    embedded::{Config, files::SimulatedDisk},
};
use fastrand::Rng;
use std::{sync::Arc, time::Duration};

#[test]
fn power_cuts_lose_nothing_acknowledged() {
    for seed in 0..seeds(300) {
        Scenario::new(seed).play(8);
    }
}

#[test]
fn a_long_history_of_power_cuts_loses_nothing_acknowledged() {
    for seed in 0..seeds(4) {
        Scenario::new(1_000_000 + seed).play(60);
    }
}

/// How many scenarios are run; `STORE_SEEDS` is a factor for longer runs.
fn seeds(count: u64) -> u64 {
    #[expect(clippy::disallowed_methods, reason = "a test's own switch")]
    let factor = std::env::var("STORE_SEEDS")
        .ok()
        .and_then(|factor| factor.parse::<u64>().ok());
    count * factor.unwrap_or(1)
}

/// The life of one machine, and what its clients know.
struct Scenario {
    seed: u64,
    rng: Rng,
    disk: SimulatedDisk,
    clock: Arc<ManualClock>,
    config: Config,
    model: Model,
    /// The newest revision that any client knows.
    known: Revision,
    /// The writes that failed since the last start, each with unknown outcome.
    doubtful: Vec<Vec<(String, Option<String>)>>,
    /// The next revision of a watcher that resumes after every restart.
    watcher_from: Revision,
    values: u64,
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let config = Config {
            retention: Duration::from_secs(rng.u64(0..20)),
            retained_revisions: *rng.choice([5, 50, 100_000]).as_ref().unwrap(),
            segment_bytes: rng.u64(200..4000),
            part_bytes: rng.u64(100..2000),
            recent_bytes: rng.usize(0..2000),
            ..Config::default()
        };

        Scenario {
            seed,
            rng,
            disk: SimulatedDisk::default(),
            clock: Arc::default(),
            config,
            model: Model::default(),
            known: Revision::ZERO,
            doubtful: Vec::new(),
            watcher_from: Revision::FIRST.next(),
            values: 0,
        }
    }

    fn play(&mut self, lives: usize) {
        for _ in 0..lives {
            self.live();
        }
        let machine =
            Machine::start(&self.disk, &self.clock, self.config.clone()).expect("a last start");
        self.check(&machine);
    }

    fn live(&mut self) {
        if self.rng.u8(..4) == 0 {
            // Even a start may be interrupted; the next one must work.
            self.disk.switch_off_after(self.rng.u32(0..12));
            if Machine::start(&self.disk, &self.clock, self.config.clone()).is_err() {
                self.cut();
            } else {
                self.disk.kill_process();
            }
            self.disk.switch_off_after(u32::MAX);
        }

        let mut machine = match Machine::start(&self.disk, &self.clock, self.config.clone()) {
            Ok(machine) => machine,
            Err(error) => panic!("seed {}: {error}; {:?}", self.seed, self.disk.listing()),
        };
        self.check(&machine);

        self.watch(&machine);
        self.disk.switch_off_after(self.rng.u32(0..150));

        for _ in 0..self.rng.u32(1..25) {
            self.inject_fault(false);
            self.batch(&mut machine);
            self.clock
                .advance(Duration::from_millis(self.rng.u64(0..3000)));
            if self.rng.u8(..3) == 0 {
                machine.driver.turn();
            }
            self.watch(&machine);
        }

        self.inject_fault(true);
        drop(machine);

        if self.rng.u8(..4) == 0 {
            self.disk.kill_process()
        } else {
            self.cut()
        }

        self.disk.switch_off_after(u32::MAX);
    }

    /// Now and then the disk fails while the machine keeps running.
    fn inject_fault(&mut self, over: bool) {
        let full = !over && self.rng.u8(..12) == 0;
        self.disk
            .set_capacity(full.then(|| self.disk.used() + self.rng.u64(0..300)));
        self.disk
            .fail_syncs(u32::from(!over && self.rng.u8(..12) == 0));
    }

    fn cut(&mut self) {
        let rng = &mut self.rng;
        self.disk.cut_power(&mut |below| rng.usize(..below));
    }

    fn batch(&mut self, machine: &mut Machine) {
        if self.rng.u8(..10) == 0 && self.known > machine.compacted() {
            let target = self.rng.u64(machine.compacted().get()..=self.known.get());
            match machine.compact(Revision::new(target)) {
                Ok(()) | Err(StoreError::Compacted { .. } | StoreError::Unavailable(_)) => {}
                Err(other) => panic!("seed {}: {other}", self.seed),
            }
        }

        let writes: Vec<_> = (0..self.rng.usize(1..5)).map(|_| self.writes()).collect();
        let txns = writes.iter().map(|writes| txn(writes)).collect();
        for (answer, writes) in machine.together(txns).into_iter().zip(writes) {
            match answer {
                Ok(answer) => self.acknowledged(answer.revision, &writes),
                Err(StoreError::Unavailable(Unavailable::Closed)) => panic!("closed"),
                Err(StoreError::Unavailable(_)) => self.doubtful.push(writes),
                Err(other) => panic!("seed {}: {other}", self.seed),
            }
        }
    }

    /// Puts of some keys, or deletions.
    fn writes(&mut self) -> Vec<(String, Option<String>)> {
        let mut keys: Vec<u8> = (0..10).collect();
        self.rng.shuffle(&mut keys);
        keys.truncate(self.rng.usize(1..4));

        keys.into_iter()
            .map(|key| {
                self.values += 1;
                let value = format!("{}-{}", self.values, "x".repeat(self.rng.usize(0..200)));
                (
                    format!("key{key}"),
                    Some(value).filter(|_| self.rng.u8(..4) > 0),
                )
            })
            .collect()
    }

    fn acknowledged(&mut self, revision: Revision, writes: &[(String, Option<String>)]) {
        let real = real(writes, &self.model.at(self.known));
        if real.is_empty() {
            assert_eq!(revision, self.known.max(Revision::FIRST));
        } else {
            assert_eq!(
                revision,
                self.known.max(Revision::FIRST).next(),
                "seed {}",
                self.seed
            );
            self.model.history.insert(revision.get(), real);
        }

        self.known = revision;
    }

    /// After a start: everything acknowledged is there; everything else had an unknown outcome, and
    /// is known now.
    fn check(&mut self, machine: &Machine) {
        let seed = self.seed;
        let revision = machine.store.revision();
        assert!(
            revision >= self.known,
            "seed {seed}: revision {revision} after {}",
            self.known
        );

        let oldest = machine.compacted().max(Revision::new(1));
        let newer = machine
            .events(self.known.next())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for events in newer.chunk_by(|one, next| one.kv.mod_revision == next.kv.mod_revision) {
            let happened: Vec<_> = events.iter().map(write).collect();
            let revision = events[0].kv.mod_revision;
            let before = self.model.at(revision.previous());
            let author = self
                .doubtful
                .iter()
                .position(|writes| real(writes, &before) == happened);

            let author = author
                .unwrap_or_else(|| panic!("seed {seed}: no client wrote exactly {happened:?}"));
            self.doubtful.swap_remove(author);
            self.model.history.insert(revision.get(), happened);
        }

        self.doubtful.clear();
        self.known = revision;
        assert_eq!(
            machine.read(None).unwrap(),
            self.model.at(revision),
            "seed {seed}"
        );

        let events: Vec<_> = machine.events(oldest).unwrap().iter().map(brief).collect();
        assert_eq!(
            events,
            self.model.events(oldest),
            "seed {seed}: from {oldest}"
        );

        let past = Revision::new(self.rng.u64(oldest.get()..=revision.get()));
        assert_eq!(
            machine.read(Some(past)).unwrap(),
            self.model.at(past),
            "seed {seed}: at {past}"
        );
    }

    /// The watcher sees every event once, wherever it was interrupted, or gets a compaction error.
    fn watch(&mut self, machine: &Machine) {
        let next = machine.store.revision().next();
        match machine.events(self.watcher_from) {
            Ok(events) => {
                let events: Vec<_> = events.iter().map(brief).collect();
                assert_eq!(
                    events,
                    self.model.events(self.watcher_from),
                    "seed {}",
                    self.seed
                );

                assert!(next >= self.watcher_from, "seed {}", self.seed);

                self.watcher_from = next;
            }
            Err(StoreError::Compacted { compacted, .. }) => {
                assert!(compacted > self.watcher_from, "seed {}", self.seed);
                self.watcher_from = next;
            }
            // The machine was switched off while an old value was read.
            Err(StoreError::Corrupt { what, .. }) if what.contains("switched off") => {}
            Err(other) => panic!("seed {}: {other}", self.seed),
        }
    }
}

/// The writes that have an effect: deleting a missing key is no write.
fn real(writes: &[(String, Option<String>)], before: &State) -> Vec<(String, Option<String>)> {
    let changes =
        |(key, value): &&(String, Option<String>)| value.is_some() || before.contains_key(key);
    writes.iter().filter(changes).cloned().collect()
}

fn write(event: &Event) -> (String, Option<String>) {
    (
        text(&event.kv.key),
        (event.kind == EventKind::Put).then(|| text(&event.kv.value)),
    )
}

fn txn(writes: &[(String, Option<String>)]) -> Txn {
    let op = |(key, value): &(String, Option<String>)| match value {
        Some(value) => Op::Put(Put::new(key.clone(), value.clone())),
        None => Op::Delete(Delete::new(KeyRange::single(key.clone()))),
    };
    Txn {
        then: writes.iter().map(op).collect(),
        ..Txn::default()
    }
}
