//! Retention, space reclamation, leases and backups.

use super::machine::{Machine, ManualClock, brief, now, poll};
use bytes::Bytes;
use coracle_store::{
    KeyRange, LeaseId, Op, Put, Revision, Store, StoreError, Txn, WatchRequest,
    embedded::{
        self, BackupError, Coalesce, Config, OpenError,
        files::{Files, SimulatedDisk},
    },
};
use std::{pin::pin, sync::Arc, time::Duration};

struct Setup {
    disk: SimulatedDisk,
    clock: Arc<ManualClock>,
    config: Config,
}

impl Setup {
    fn new(config: Config) -> Self {
        Setup {
            disk: SimulatedDisk::default(),
            clock: Arc::default(),
            config,
        }
    }

    fn start(&self) -> Machine {
        Machine::start(&self.disk, &self.clock, self.config.clone()).unwrap()
    }
}

#[test]
fn the_window_is_kept_across_restarts_with_previous_values() {
    let world = Setup::new(Config {
        retained_revisions: 3,
        ..Config::default()
    });
    let mut machine = world.start();
    let first = machine.put("a", "1").unwrap();

    for number in 2..20 {
        machine.put("a", &number.to_string()).unwrap();
    }

    let before: Vec<_> = machine.events(first).unwrap().iter().map(brief).collect();
    drop(machine);
    world.clock.advance(Duration::from_secs(4 * 60));
    let mut machine = world.start();
    machine.settle();
    let after: Vec<_> = machine.events(first).unwrap().iter().map(brief).collect();
    assert_eq!(after, before);

    world.clock.advance(Duration::from_secs(2 * 60));
    machine.settle();
    assert!(machine.compacted() > first, "older than five minutes");
    assert!(matches!(
        machine.events(first),
        Err(StoreError::Compacted { .. })
    ));

    assert!(
        machine
            .events(Revision::new(machine.store.revision().get() - 2))
            .is_ok(),
        "the newest three stay"
    );
}

#[test]
fn files_stay_within_twice_the_live_data_and_the_window() {
    let config = Config {
        segment_bytes: 16 << 10,
        part_bytes: 16 << 10,
        retained_revisions: 200,
        retention: Duration::from_secs(2),
        ..Config::default()
    };
    let world = Setup::new(config);
    let mut machine = world.start();

    let value = "v".repeat(500);

    let mut worst = 0.0_f64;
    for number in 0..20_000_u64 {
        machine
            .put(
                &format!("key{:03}", number * 7919 % 300),
                &format!("{number}{value}"),
            )
            .unwrap();

        if number % 100 == 0 {
            world.clock.advance(Duration::from_secs(1));
        }

        if number % 50 == 0 && number > 2000 {
            machine.driver.turn();
            let live = 300 * 570;
            let window = 300 * 570; // 200 to 300 revisions at a hundred a second
            let slack = 3 * (16 << 10);
            let used = world.disk.used() as f64;
            worst = worst.max((used - f64::from(slack)) / f64::from(live + window));
        }
    }

    assert!(worst < 2.0, "{worst} times of live data and window");

    let memory = machine.store.memory();
    assert!(memory.history_bytes < 2_200_000, "{memory:?}");
}

#[test]
fn unchanged_parts_are_not_rewritten() {
    let config = Config {
        segment_bytes: 4096,
        part_bytes: 4096,
        retained_revisions: 5,
        ..Config::default()
    };

    let world = Setup::new(Config {
        retention: Duration::ZERO,
        ..config
    });

    let mut machine = world.start();
    for number in 0..100 {
        machine
            .put(&format!("cold/{number:03}"), &"c".repeat(300))
            .unwrap();
    }

    world.clock.advance(Duration::from_secs(10));
    machine.defragment().unwrap();

    let parts = |disk: &SimulatedDisk| -> Vec<String> {
        disk.listing()
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| name.ends_with(".part"))
            .collect()
    };
    let before = parts(&world.disk);

    for number in 0..500 {
        machine
            .put("hot", &format!("{number}{}", "h".repeat(300)))
            .unwrap();
        world.clock.advance(Duration::from_secs(1));
        machine.settle();
    }

    machine.defragment().unwrap();
    let after = parts(&world.disk);
    let kept = before.iter().filter(|name| after.contains(name)).count();
    assert!(
        before.len() >= 5 && kept >= before.len() - 2,
        "{before:?} {after:?}"
    );
}

#[test]
fn the_hash_survives_compaction_defragmentation_and_restart() {
    let world = Setup::new(Config {
        segment_bytes: 500,
        part_bytes: 400,
        ..Config::default()
    });

    let mut machine = world.start();
    for number in 0..100 {
        machine
            .put(&format!("key{}", number % 13), &format!("value {number}"))
            .unwrap();
    }

    machine.delete("key3").unwrap();
    let hash = now(machine.store.hash(None)).unwrap();
    machine.compact(Revision::new(60)).unwrap();
    machine.defragment().unwrap();
    assert_eq!(now(machine.store.hash(None)).unwrap().hash, hash.hash);

    drop(machine);
    let machine = world.start();
    assert_eq!(
        now(machine.store.hash(Some(hash.revision))).unwrap().hash,
        hash.hash
    );
}

#[test]
fn leases_and_their_keys_survive_a_restart_with_their_full_ttl() {
    let world = Setup::new(Config {
        segment_bytes: 200,
        part_bytes: 200,
        ..Config::default()
    });
    let mut machine = world.start();

    let lease = LeaseId::from_wire(7).unwrap();
    grant(&mut machine, lease, Duration::from_secs(60));
    let put = Op::Put(Put::new("event", "v").lease(Some(lease)));
    machine
        .txn(Txn {
            then: vec![put],
            ..Txn::default()
        })
        .unwrap();

    for number in 0..50 {
        machine.put("other", &number.to_string()).unwrap();
    }

    machine.compact(machine.store.revision()).unwrap();
    machine.defragment().unwrap();
    drop(machine);
    world.clock.advance(Duration::from_secs(50));

    let mut machine = world.start();
    let status = now(machine.store.lease_status(lease)).unwrap();
    assert_eq!(
        (status.remaining, status.keys),
        (Duration::from_secs(60), vec![Bytes::from("event")])
    );

    assert_eq!(
        machine.driver.turn(),
        Some(Duration::from_secs(60)),
        "the writer sleeps until the lease ends"
    );

    world.clock.advance(Duration::from_secs(60));
    machine.driver.turn();
    assert!(!machine.read(None).unwrap().contains_key("event"));

    drop(machine);
    assert_eq!(now(world.start().store.leases()).unwrap(), vec![]);
}

fn grant(machine: &mut Machine, id: LeaseId, ttl: Duration) {
    let mut granted = pin!(machine.store.grant_lease(ttl, Some(id)));
    assert!(poll(granted.as_mut()).is_none());
    machine.driver.turn();
    poll(granted.as_mut()).unwrap().unwrap();
}

#[test]
fn an_idle_store_has_no_work_once_its_history_is_compacted() {
    let config = Config::default();
    let retention = config.retention;
    let world = Setup::new(config);
    let mut machine = world.start();
    machine.put("a", "1").unwrap();
    machine.settle();
    assert_eq!(machine.driver.turn(), Some(retention));

    world.clock.advance(retention);
    machine.settle();
    assert_eq!(machine.driver.turn(), None);
}

#[test]
fn coalesced_writes_wait_for_others_and_are_durable_when_acknowledged() {
    let prefix = Bytes::from("/leases/");
    let coalesce = Some(Coalesce {
        prefix,
        delay: Duration::from_secs(2),
    });

    let world = Setup::new(Config {
        coalesce,
        ..Config::default()
    });
    let mut machine = world.start();
    machine.put("other", "1").unwrap();

    let syncs = world.disk.syncs();
    let Machine { store, driver, .. } = &mut machine;
    let renew = |node: &str| Box::pin(store.put(Put::new(format!("/leases/{node}"), "renewed")));
    let (mut one, mut two, mut three) = (renew("one"), renew("two"), renew("three"));
    assert!(poll(one.as_mut()).is_none() && poll(two.as_mut()).is_none());

    assert_eq!(driver.turn(), Some(Duration::from_secs(2)));
    assert!(
        poll(one.as_mut()).is_none(),
        "not durable, so not acknowledged"
    );

    world.clock.advance(Duration::from_secs(2));
    driver.turn();
    assert!(poll(one.as_mut()).is_some() && poll(two.as_mut()).is_some());
    assert_eq!(world.disk.syncs() - syncs, 1);
    assert!(poll(three.as_mut()).is_none());

    driver.turn();
    let mut other = Box::pin(store.put(Put::new("other", "2")));
    assert!(poll(other.as_mut()).is_none());

    driver.turn();
    assert!(
        poll(three.as_mut()).is_some() && poll(other.as_mut()).is_some(),
        "another write takes them along"
    );

    assert_eq!(world.disk.syncs() - syncs, 2);
}

#[test]
fn a_backup_is_of_one_revision_while_the_store_is_written() {
    let world = Setup::new(Config {
        segment_bytes: 2000,
        part_bytes: 2000,
        retained_revisions: 1,
        retention: Duration::ZERO,
        ..Config::default()
    });

    let mut machine = world.start();
    for number in 0..2000 {
        machine
            .put(&format!("key{number:04}"), &"v".repeat(400))
            .unwrap();
    }

    let state = machine.read(None).unwrap();
    let mut backup = machine.store.backup();

    let mut bytes = Vec::new();
    while let Some(piece) = backup.next_piece().unwrap() {
        bytes.extend_from_slice(&piece);
        for number in 0..300 {
            machine
                .put(&format!("key{:04}", number * 6), "changed")
                .unwrap();
            world.clock.advance(Duration::from_secs(1));
        }
        machine.settle();
    }

    let revision = backup.revision();
    drop(backup);
    let other = Setup::new(Config::default());
    let files: Arc<dyn Files> = Arc::new(other.disk.files());
    let report = embedded::restore("b", &bytes, &files, None, &*other.clock).unwrap();
    assert_eq!((report.keys, report.backup_revision), (2000, revision));
    assert_eq!(other.start().read(None).unwrap(), state);

    machine.settle();
    assert!(
        machine.compacted() > revision,
        "the backup holds nothing back once it is done"
    );
}

#[test]
fn a_restored_store_is_above_every_revision_ever_returned() {
    let world = Setup::new(Config::default());
    let mut machine = world.start();
    let lease = LeaseId::from_wire(7).unwrap();
    grant(&mut machine, lease, Duration::from_secs(60));
    let seen = machine.put("a", "1").unwrap();
    let bytes = backup(&machine);

    let lost = machine.put("a", "2").unwrap();
    for above in [None, Some(lost)] {
        let other = Setup::new(Config::default());
        let files: Arc<dyn Files> = Arc::new(other.disk.files());
        let report = embedded::restore("b", &bytes, &files, above, &*other.clock).unwrap();
        let mut restored = other.start();
        assert_eq!(restored.store.revision(), report.revision);
        assert!(report.revision > lost);

        for old in [seen, lost] {
            assert!(matches!(
                restored.read(Some(old)),
                Err(StoreError::Compacted { .. })
            ));
            assert!(matches!(
                restored.events(old),
                Err(StoreError::Compacted { .. })
            ));
        }

        assert_eq!(restored.read(None).unwrap()["a"], "1");
        assert_eq!(now(restored.store.leases()).unwrap(), vec![lease]);

        let next = restored.put("a", "3").unwrap();
        assert_eq!(next, report.revision.next());
        assert_eq!(
            restored.events(next).unwrap()[0]
                .previous
                .as_ref()
                .unwrap()
                .mod_revision,
            seen
        );

        drop(restored);
        assert_eq!(other.start().store.revision(), next);
    }
}

#[test]
fn a_damaged_backup_and_a_full_directory_are_refused() {
    let world = Setup::new(Config::default());
    let mut machine = world.start();
    machine.put("a", "1").unwrap();
    let bytes = backup(&machine);
    let files: Arc<dyn Files> = Arc::new(SimulatedDisk::default().files());

    let restore = |bytes: &[u8], files: &Arc<dyn Files>| {
        embedded::restore("backup", bytes, files, None, &*world.clock)
    };
    for cut in [0, 10, bytes.len() - 1] {
        let refused = restore(&bytes[..cut], &files).unwrap_err();
        assert!(matches!(refused, BackupError::Damaged { .. }), "{refused}");
    }

    restore(&bytes, &files).unwrap();
    assert!(matches!(
        restore(&bytes, &files),
        Err(BackupError::NotEmpty { .. })
    ));
}

#[test]
fn a_restore_that_fails_for_space_leaves_nothing_and_can_be_tried_again() {
    let world = Setup::new(Config::default());
    let mut machine = world.start();
    for number in 0..50 {
        machine
            .put(&format!("k{number}"), &"x".repeat(1000))
            .unwrap();
    }

    let bytes = backup(&machine);
    let disk = SimulatedDisk::default();
    let files: Arc<dyn Files> = Arc::new(disk.files());

    let restore = || embedded::restore("backup", &bytes, &files, None, &*world.clock);
    for capacity in [0, 100, 10_000, 50_000] {
        disk.set_capacity(Some(capacity));
        let refused = restore().unwrap_err();
        assert!(
            matches!(refused, BackupError::Open(OpenError::DiskFull { .. })),
            "{capacity}: {refused}"
        );

        let left: Vec<_> = files
            .list()
            .unwrap()
            .into_iter()
            .filter(|name| name != "LOCK")
            .collect();
        assert_eq!(left, Vec::<String>::new(), "{capacity}");
    }

    disk.set_capacity(None);

    // A process that is killed in between leaves its files.
    files.create("RESTORE.unfinished").unwrap();
    files.create("00000001.part").unwrap();
    assert_eq!(restore().unwrap().keys, 50);

    let again = restore().unwrap_err();
    assert!(matches!(again, BackupError::NotEmpty { .. }), "{again}");
}

#[test]
fn compacting_a_new_store_to_revision_0_is_allowed() {
    let world = Setup::new(Config::default());
    let mut machine = world.start();
    machine.compact(Revision::ZERO).unwrap();
    machine.compact(Revision::FIRST).unwrap();
    assert!(matches!(
        machine.compact(Revision::ZERO),
        Err(StoreError::Compacted { .. })
    ));
}

fn backup(machine: &Machine) -> Vec<u8> {
    let mut backup = machine.store.backup();
    let mut bytes = Vec::new();
    while let Some(piece) = backup.next_piece().unwrap() {
        bytes.extend_from_slice(&piece);
    }
    bytes
}

#[test]
fn a_range_that_needs_the_disk_reads_settled_and_moved_versions() {
    let world = Setup::new(Config {
        segment_bytes: 600,
        part_bytes: 500,
        recent_bytes: 0,
        ..Config::default()
    });

    let mut machine = world.start();
    for number in 0..60 {
        machine
            .put(&format!("key{}", number % 6), &format!("{number}"))
            .unwrap();
    }

    let base = Revision::new(30);
    let before: Vec<_> = machine.events(base).unwrap().iter().map(brief).collect();
    let states: Vec<_> = (30..=61)
        .map(|at| machine.read(Some(Revision::new(at))).unwrap())
        .collect();
    machine.compact(base).unwrap();
    machine.defragment().unwrap();

    let check = |machine: &Machine| {
        let events: Vec<_> = machine.events(base).unwrap().iter().map(brief).collect();
        assert_eq!(events, before);

        for (at, state) in (30..=61).zip(&states) {
            assert_eq!(
                &machine.read(Some(Revision::new(at))).unwrap(),
                state,
                "at {at}"
            );
        }
    };
    check(&machine);

    drop(machine);
    check(&world.start());
}

#[test]
fn a_watch_of_another_range_is_not_woken() {
    let world = Setup::new(Config::default());
    let mut machine = world.start();
    let request = WatchRequest::new(KeyRange::prefix("/pods/"));
    let mut watch = now(machine.store.watch(request)).unwrap();
    let mut next = Box::pin(watch.next());
    assert!(poll(next.as_mut()).is_none());
    machine.put("/nodes/a", "1").unwrap();
    assert!(poll(next.as_mut()).is_none());
    machine.put("/pods/a", "1").unwrap();
    assert!(poll(next.as_mut()).is_some());
}
