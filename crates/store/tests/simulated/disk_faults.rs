//! Full, read-only, failing and slow disks: writes fail or are slow, reads continue, and everything
//! recovers without a restart.

use super::machine::{Machine, ManualClock, brief, now, poll};
use coracle_store::{
    KeyRange, Op, Put, Revision, Store, StoreError, Txn, Unavailable, WatchRequest,
    embedded::{Config, Embedded, OpenError, SystemClock, files::SimulatedDisk},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

fn machine(disk: &SimulatedDisk) -> Machine {
    Machine::start(disk, &Arc::new(ManualClock::default()), Config::default()).unwrap()
}

#[test]
fn concurrent_writes_share_one_sync() {
    let disk = SimulatedDisk::default();
    let mut machine = machine(&disk);
    machine.put("first", "makes the segment").unwrap();
    let before = disk.syncs();

    let put = |n: u32| Op::Put(Put::new(format!("key{n}"), "v"));
    let txns = (0..64)
        .map(|n| Txn {
            then: vec![put(n)],
            ..Txn::default()
        })
        .collect();
    let answers = machine.together(txns);
    assert!(answers.iter().all(Result::is_ok));

    assert_eq!(disk.syncs() - before, 1);
}

#[test]
fn most_writes_do_not_extend_the_file_and_preallocation_needs_no_free_space() {
    let disk = SimulatedDisk::default();
    let mut machine = machine(&disk);
    machine.put("first", "makes the segment").unwrap();
    let with_runway = disk.used();

    for n in 0..100 {
        machine.put(&format!("key{n}"), &"v".repeat(500)).unwrap();
    }

    assert_eq!(disk.used(), with_runway);

    // After the preallocation, each write needs only its own bytes.
    disk.set_capacity(Some(with_runway + 100_000));
    let big = "v".repeat(50_000);
    let taken = (0..100)
        .take_while(|_| machine.put("big", &big).is_ok())
        .count();
    assert!(
        (100 * 500 + taken * big.len()) as u64 > with_runway,
        "only {taken} were taken"
    );
}

#[test]
fn a_reader_does_not_wait_for_a_whole_batch_to_become_visible() {
    const BATCH: u64 = 2000;

    let disk = SimulatedDisk::default();
    let Machine { store, mut driver } = machine(&disk);
    let mut batch = || {
        let before = store.revision().get();
        let mut puts: Vec<_> = (0..BATCH)
            .map(|n| Box::pin(store.put(Put::new(format!("key{n}"), "v"))))
            .collect();
        assert!(puts.iter_mut().all(|put| poll(put.as_mut()).is_none()));

        std::thread::scope(|scope| {
            let turn = scope.spawn(|| driver.turn());
            std::iter::from_fn(|| (!turn.is_finished()).then(|| store.revision().get()))
                .any(|revision| revision > before && revision < before + BATCH)
        })
    };

    // The reader has to run just then, which the scheduler does not guarantee.
    assert!(
        (0..100).any(|_| batch()),
        "nothing between two batches was ever seen"
    );
}

#[test]
fn a_full_disk_fails_writes_serves_reads_and_recovers() {
    let disk = SimulatedDisk::default();
    let mut machine = machine(&disk);
    let known = machine.put("a", "1").unwrap();
    disk.set_capacity(Some(disk.used() + 10));

    for _ in 0..3 {
        match machine.put("a", "too much for the disk") {
            Err(StoreError::Unavailable(refused @ Unavailable::DiskFull { .. })) => {
                assert!(refused.to_string().contains("free space"), "{refused}");
            }
            other => panic!("expected a full disk, got {other:?}"),
        }
        assert_eq!(machine.read(None).unwrap()["a"], "1");
        assert_eq!(machine.store.revision(), known);
    }

    disk.set_capacity(None);
    assert_eq!(machine.put("a", "2").unwrap(), known.next());
}

#[test]
fn a_store_opens_on_a_full_disk_and_serves_reads() {
    let disk = SimulatedDisk::default();
    machine(&disk).put("a", "1").unwrap();
    disk.set_capacity(Some(disk.used()));
    let mut machine = machine(&disk);
    assert_eq!(machine.read(None).unwrap()["a"], "1");
    assert!(matches!(
        machine.put("a", "2"),
        Err(StoreError::Unavailable(Unavailable::DiskFull { .. }))
    ));

    disk.set_capacity(None);
    machine.put("a", "2").unwrap();
    assert_eq!(machine.read(None).unwrap()["a"], "2");
}

#[test]
fn a_disk_that_becomes_read_only_fails_writes_and_recovers() {
    let disk = SimulatedDisk::default();
    let mut machine = machine(&disk);
    machine.put("a", "1").unwrap();
    disk.set_read_only(true);
    assert!(matches!(
        machine.put("a", "2"),
        Err(StoreError::Unavailable(Unavailable::ReadOnly { .. }))
    ));
    assert_eq!(machine.read(None).unwrap()["a"], "1");
    disk.set_read_only(false);
    machine.put("a", "3").unwrap();
}

#[test]
fn a_new_store_on_a_full_or_read_only_disk_is_a_clear_error() {
    let open = |disk: &SimulatedDisk| {
        let clock = Arc::new(ManualClock::default());
        Machine::start(disk, &clock, Config::default())
            .err()
            .expect("refused")
    };

    let disk = SimulatedDisk::default();
    disk.set_capacity(Some(0));
    let full = open(&disk);
    assert!(matches!(full, OpenError::DiskFull { .. }), "{full}");

    let disk = SimulatedDisk::default();
    disk.set_read_only(true);
    let read_only = open(&disk);
    assert!(
        matches!(read_only, OpenError::ReadOnly { .. }),
        "{read_only}"
    );

    assert!(
        read_only.to_string().contains("remount it read-write"),
        "{read_only}"
    );
}

#[test]
fn a_store_in_use_is_a_clear_error() {
    let disk = SimulatedDisk::default();
    let _machine = machine(&disk);
    let again = Machine::start(&disk, &Arc::new(ManualClock::default()), Config::default())
        .err()
        .unwrap();
    assert!(matches!(again, OpenError::InUse { .. }), "{again}");
}

#[test]
fn what_a_failed_sync_left_is_never_acknowledged_nor_trusted() {
    let disk = SimulatedDisk::default();
    let mut before = machine(&disk);
    let known = before.put("a", "1").unwrap();
    disk.fail_syncs(1);
    assert!(matches!(
        before.put("a", "2"),
        Err(StoreError::Unavailable(Unavailable::DiskFailed { .. }))
    ));

    assert_eq!(
        before.read(None).unwrap()["a"],
        "1",
        "a reader saw what is not durable"
    );

    assert_eq!(before.events(known.next()).unwrap(), vec![]);

    // The disk works again: the failed write's revision is used by the next one.
    assert_eq!(before.put("b", "3").unwrap(), known.next());

    drop(before);
    disk.cut_power(&mut |_| 0);
    let after = machine(&disk);
    let events: Vec<_> = after.events(known).unwrap().iter().map(brief).collect();
    assert_eq!(
        events,
        ["2: a=Some(\"1\") was None", "3: b=Some(\"3\") was None"]
    );
}

#[test]
fn what_a_failed_sync_left_is_made_durable_before_a_restarted_process_shows_it() {
    let disk = SimulatedDisk::default();
    let mut before = machine(&disk);
    before.put("a", "1").unwrap();
    disk.fail_syncs(1);
    before.put("a", "2").unwrap_err();
    drop(before);
    // The process restarts: the kernel still shows the bytes that are not on the disk.
    let shown = machine(&disk).read(None).unwrap();
    disk.cut_power(&mut |_| 2);
    assert_eq!(machine(&disk).read(None).unwrap(), shown);
}

#[test]
fn a_cancelled_write_does_not_happen() {
    let disk = SimulatedDisk::default();
    let mut machine = machine(&disk);
    let put = Put::new("a", "1");
    {
        let mut waiting = Box::pin(machine.store.put(put));
        assert!(poll(waiting.as_mut()).is_none());
    }
    machine.driver.turn();
    assert_eq!(machine.store.revision(), Revision::FIRST);
}

#[test]
fn a_closed_store_refuses_writes_and_ends_watches() {
    let disk = SimulatedDisk::default();
    let Machine { store, driver, .. } = machine(&disk);
    let mut watch = now(store.watch(WatchRequest::new(KeyRange::all()))).unwrap();
    drop(driver);
    let refused = now(store.put(Put::new("a", "1")));
    assert!(matches!(
        refused,
        Err(StoreError::Unavailable(Unavailable::Closed))
    ));

    assert!(matches!(
        now(watch.next()),
        Err(StoreError::Unavailable(Unavailable::Closed))
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "the test measures how long a read really takes"
)]
async fn a_slow_disk_slows_writes_and_nothing_else() {
    let disk = SimulatedDisk::default();
    let files = Arc::new(disk.files());
    let store = Arc::new(
        Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).unwrap(),
    );
    store.put(Put::new("a", "1")).await.unwrap();

    let delay = Duration::from_secs(2);
    disk.set_sync_delay(delay);
    let start = Instant::now();
    let writer = tokio::spawn({
        let store = store.clone();
        async move { store.put(Put::new("a", "2")).await }
    });

    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(
        &store.get("a".into()).await.unwrap().unwrap().value[..],
        b"1"
    );

    assert!(!writer.is_finished(), "a read waited for the disk");

    writer.await.unwrap().unwrap();
    assert!(
        start.elapsed() >= delay,
        "the write was acknowledged before it was durable"
    );
}
