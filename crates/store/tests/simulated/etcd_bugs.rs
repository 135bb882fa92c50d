//! Bugs that etcd had, by issue number; we must not have them.

use super::machine::{Machine, ManualClock, brief, now, poll};
use coracle_store::{
    Compare, KeyRange, Op, Put, Relation, Revision, Store, StoreError, Target, Txn, WatchItem,
    WatchRequest,
    embedded::{
        self, Config,
        files::{Files, SimulatedDisk},
    },
};
use std::sync::Arc;

fn start(disk: &SimulatedDisk) -> Machine {
    let config = Config {
        segment_bytes: 600,
        part_bytes: 500,
        ..Config::default()
    };
    Machine::start(disk, &Arc::new(ManualClock::default()), config)
        .expect("starts after whatever happened")
}

/// Runs `scene` repeatedly on a machine that is switched off one disk operation later each time,
/// and `after` on the restarted machine. The scene returns what was acknowledged.
fn at_every_moment<T>(scene: impl Fn(&mut Machine) -> T, after: impl Fn(&mut Machine, T)) {
    for loss in [0, 1, 2] {
        for operations in 0..150 {
            let disk = SimulatedDisk::default();
            let mut machine = start(&disk);
            disk.switch_off_after(operations);
            let acknowledged = scene(&mut machine);
            drop(machine);
            disk.cut_power(&mut |below| loss.min(below - 1));
            after(&mut start(&disk), acknowledged);
        }
    }
}

/// 13766: after a crash under load, data and revision were inconsistent: some writes were applied
/// twice or skipped.
#[test]
fn etcd_13766_a_crash_leaves_data_and_revision_of_one_moment() {
    let increment = |machine: &mut Machine, seen: u64| {
        let compare = Compare {
            range: KeyRange::single("count"),
            relation: Relation::Equal,
            with: Target::Version(seen),
        };

        let puts = ["count", "copy"].map(|key| Op::Put(Put::new(key, (seen + 1).to_string())));
        let answer = machine.txn(Txn {
            compare: vec![compare],
            then: puts.into(),
            otherwise: Vec::new(),
        });

        answer.is_ok_and(|answer| answer.succeeded)
    };

    at_every_moment(
        |machine| (0..25).take_while(|seen| increment(machine, *seen)).count() as u64,
        |machine, counted| {
            let count = now(machine.store.get("count".into())).unwrap();
            let copy = now(machine.store.get("copy".into())).unwrap();
            let version = count.as_ref().map_or(0, |kv| kv.version);
            assert!(
                version == counted || version == counted + 1,
                "{version} after {counted}"
            );

            assert_eq!(machine.store.revision(), Revision::new(1 + version));
            assert_eq!(
                copy.map(|kv| kv.value),
                count.map(|kv| kv.value),
                "a transaction is whole"
            );
        },
    );
}

/// 14370: a single member acknowledged a write before it was durable, and lost it in a crash.
#[test]
fn etcd_14370_an_acknowledged_write_survives_a_crash() {
    at_every_moment(
        |machine| {
            (0..25)
                .filter(|n| machine.put(&format!("key{n}"), "v").is_ok())
                .collect::<Vec<_>>()
        },
        |machine, acknowledged| {
            let state = machine.read(None).unwrap();
            for number in acknowledged {
                assert!(
                    state.contains_key(&format!("key{number}")),
                    "key{number} is lost"
                );
            }
        },
    );
}

/// 15271: after a member was restored from another's snapshot, watches went back in time.
#[test]
fn etcd_15271_a_watch_never_goes_back_in_time_over_a_restore() {
    let mut machine = start(&SimulatedDisk::default());
    machine.put("a", "1").unwrap();
    let mut backup = machine.store.backup();

    let mut bytes = Vec::new();
    while let Some(piece) = backup.next_piece().unwrap() {
        bytes.extend_from_slice(&piece);
    }

    drop(backup);
    let seen = machine.put("a", "2").unwrap();
    let disk = SimulatedDisk::default();
    let files: Arc<dyn Files> = Arc::new(disk.files());
    embedded::restore(
        "backup",
        &bytes,
        &files,
        Some(seen),
        &ManualClock::default(),
    )
    .unwrap();

    let mut restored = start(&disk);
    let resumed = restored.events(seen.next());
    assert!(
        matches!(resumed, Ok(events) if events.is_empty()) || restored.compacted() > seen.next()
    );

    let next = restored.put("a", "3").unwrap();
    assert!(next > seen.next());
    assert!(
        matches!(restored.events(seen), Err(StoreError::Compacted { .. })),
        "the gap is reported"
    );
}

/// 17529: with many slow watches, events were delayed for minutes and then dropped silently.
#[test]
fn etcd_17529_many_slow_watches_get_every_event_or_an_error() {
    let mut machine = start(&SimulatedDisk::default());
    let first = machine.put("key0", "0").unwrap();
    let request = WatchRequest::new(KeyRange::all())
        .from(first)
        .with_previous();
    let mut watches: Vec<_> = (0..300)
        .map(|_| now(machine.store.watch(request.clone())).unwrap())
        .collect();

    for number in 1..400 {
        machine
            .put(&format!("key{}", number % 9), &number.to_string())
            .unwrap();
    }

    let all: Vec<_> = machine.events(first).unwrap().iter().map(brief).collect();
    let (quick, slow) = watches.split_at_mut(150);
    for watch in quick {
        let mut seen = Vec::new();
        while let Some(Ok(WatchItem::Events(events))) = poll(Box::pin(watch.next()).as_mut()) {
            seen.extend(events.iter().map(brief));
        }
        assert_eq!(seen, all);
    }

    let compacted = machine.store.revision();
    machine.compact(compacted).unwrap();
    machine.settle();

    for watch in slow {
        assert!(
            matches!(now(watch.next()), Err(StoreError::Compacted { .. })),
            "it missed something, which is reported"
        );
    }
}

/// 17780: after a crash during compaction the revision was lower than before, if the newest change
/// was a deletion.
#[test]
fn etcd_17780_the_revision_does_not_go_down_over_a_crash_during_compaction() {
    at_every_moment(
        |machine| {
            let mut newest = Revision::FIRST;
            for number in 0..8 {
                newest = machine.put(&format!("key{number}"), "v").unwrap_or(newest);
            }

            newest = machine.delete("key7").unwrap_or(newest);

            if machine.compact(newest).is_ok() {
                machine.defragment().ok();
            }

            newest
        },
        |machine, newest| {
            assert!(
                machine.store.revision() >= newest,
                "{} after {newest}",
                machine.store.revision()
            );
            assert_eq!(machine.put("next", "v").unwrap(), machine.store.revision());
        },
    );
}

/// 18089: a watch from the compacted revision missed the deletion made at that revision.
#[test]
fn etcd_18089_a_watch_from_the_compacted_revision_sees_the_deletion_made_then() {
    let mut machine = start(&SimulatedDisk::default());
    for value in ["2", "3", "4"] {
        machine.put("k", value).unwrap();
    }

    let deleted = machine.delete("k").unwrap();
    machine.put("k", "6").unwrap();
    machine.compact(deleted).unwrap();
    machine.settle();
    let events: Vec<_> = machine.events(deleted).unwrap().iter().map(brief).collect();
    assert_eq!(
        events,
        ["5: k=None was Some(\"4\")", "6: k=Some(\"6\") was None"]
    );
}

/// 19179: the same, for the newest deletion, after a restart that finished the compaction.
#[test]
fn etcd_19179_a_watch_opened_at_the_compaction_sees_the_deletion_after_a_restart_too() {
    let disk = SimulatedDisk::default();
    let mut machine = start(&disk);
    machine.put("a", "1").unwrap();
    machine.put("b", "1").unwrap();
    machine.delete("a").unwrap();

    let deleted = machine.delete("b").unwrap();
    machine.compact(deleted).unwrap();
    machine.defragment().unwrap();
    let expected = ["5: b=None was Some(\"1\")"];
    let check = |machine: &Machine| {
        let events: Vec<_> = machine.events(deleted).unwrap().iter().map(brief).collect();
        assert_eq!(events, expected);
    };
    check(&machine);

    drop(machine);
    disk.cut_power(&mut |_| 0);
    check(&start(&disk));
}

/// 20221: a watch from a future revision got older events, and progress below its start.
#[test]
fn etcd_20221_a_watch_from_the_future_gets_neither_events_nor_progress_of_the_past() {
    let mut machine = start(&SimulatedDisk::default());
    let current = machine.put("a", "0").unwrap();
    let first = Revision::new(current.get() + 4);
    let request = WatchRequest::new(KeyRange::all()).from(first);

    let mut watch = now(machine.store.watch(request)).unwrap();
    for number in 1..4 {
        watch.request_progress();
        now(machine.store.progress()).unwrap();
        assert!(
            poll(Box::pin(watch.next()).as_mut()).is_none(),
            "nothing can be said yet"
        );

        if number < 3 {
            machine.put("a", &number.to_string()).unwrap();
        }
    }

    machine.put("a", "3").unwrap();
    assert_eq!(
        now(watch.next()).unwrap(),
        WatchItem::Progress(first.previous())
    );

    machine.put("a", "4").unwrap();

    match now(watch.next()).unwrap() {
        WatchItem::Events(events) => assert_eq!(events[0].kv.mod_revision, first),
        other => panic!("expected the first event, got {other:?}"),
    }
}
