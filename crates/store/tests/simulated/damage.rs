//! Damaged files are rejected with the file's name and what to do; a torn end of the log is no
//! damage.

use super::machine::{Machine, ManualClock, now};
use coracle_store::{
    KeyRange, RangeRequest, Revision, Store, StoreError,
    embedded::{
        self, Config, OpenError,
        files::{Files, SimulatedDisk},
    },
};
use std::sync::Arc;

fn config() -> Config {
    Config {
        segment_bytes: 1000,
        part_bytes: 1000,
        retained_revisions: 20,
        ..Config::default()
    }
}

fn start(disk: &SimulatedDisk) -> Result<Machine, OpenError> {
    Machine::start(disk, &Arc::new(ManualClock::default()), config())
}

/// A disk with a store of some parts and some segments.
fn filled() -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    let mut machine = start(&disk).unwrap();
    for number in 0..40 {
        machine
            .put(&format!("key{number:02}"), &"v".repeat(100))
            .unwrap();
    }

    let middle = Revision::new(25);
    machine.compact(middle).unwrap();
    machine.defragment().unwrap();
    drop(machine);
    drop(start(&disk).unwrap());

    disk
}

/// Files by name, and their size without the preallocation.
fn files(disk: &SimulatedDisk, ending: &str) -> Vec<(String, usize)> {
    let ours = disk
        .listing()
        .into_iter()
        .filter(|(name, _)| name.ends_with(ending));

    ours.map(|(name, size)| {
        let mut bytes = vec![0; size];
        disk.files()
            .open(&name)
            .unwrap()
            .read_at(0, &mut bytes)
            .unwrap();
        let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        (name, last + 1)
    })
    .collect()
}

fn assert_damaged(disk: &SimulatedDisk, name: &str) {
    let files: Arc<dyn Files> = Arc::new(disk.files());
    for error in [start(disk).err(), embedded::check(&files).err()] {
        match error {
            Some(OpenError::Corrupt { file, .. }) => assert_eq!(file, name),
            other => panic!("{name}: expected damage, got {other:?}"),
        }
    }
}

#[test]
fn an_intact_store_passes_the_check() {
    let disk = filled();
    let files: Arc<dyn Files> = Arc::new(disk.files());
    let report = embedded::check(&files).unwrap();
    assert_eq!(
        (report.keys, report.revision, report.compacted),
        (40, Revision::new(41), Revision::new(25))
    );
    assert_eq!(report.torn_bytes, 0);
}

#[test]
fn a_store_on_a_read_only_disk_can_be_checked() {
    let disk = filled();
    disk.set_read_only(true);
    let files: Arc<dyn Files> = Arc::new(disk.files());
    assert_eq!(embedded::check(&files).unwrap().keys, 40);
}

#[test]
fn a_changed_bit_anywhere_is_found() {
    let disk = filled();
    let mut logs = files(&disk, ".log");

    // The last batch was written again into a segment of its own. Damage to it cannot be detected,
    // and its first copy is not used any more.
    let last = logs.pop().unwrap();
    let (before_last, size) = logs.pop().unwrap();

    let matters =
        |name: &str, offset: usize| name != last.0 && (name != before_last || offset < size / 2);
    for (name, size) in files(&disk, "") {
        for offset in (0..size)
            .step_by(61)
            .filter(|offset| matters(&name, *offset))
        {
            disk.flip_bit(&name, offset);
            assert_damaged(&disk, &name);
            disk.flip_bit(&name, offset);
        }
    }

    start(&disk).unwrap();
}

#[test]
fn a_truncated_file_is_found() {
    for (ending, which) in [(".part", 0), (".log", 0), ("MANIFEST", 0)] {
        let disk = filled();
        let (name, size) = files(&disk, ending)[which].clone();
        disk.truncate(&name, size - 7);
        assert_damaged(&disk, &name);
    }
}

#[test]
fn a_missing_file_is_found() {
    let disk = filled();
    let logs = files(&disk, ".log");
    assert!(logs.len() >= 3, "{logs:?}");
    let name = &logs[1].0;
    disk.files().remove(name).unwrap();
    assert_damaged(&disk, name);
    let disk = filled();
    disk.files().remove("MANIFEST").unwrap();
    assert!(matches!(start(&disk), Err(OpenError::Corrupt { .. })));
}

#[test]
fn the_error_says_what_where_and_what_to_do() {
    let disk = filled();
    let (name, _) = files(&disk, ".part")[0].clone();
    disk.flip_bit(&name, 200);

    let text = start(&disk).err().unwrap().to_string();
    for part in [
        name.as_str(),
        "the simulated disk",
        "damaged at byte",
        "Restore a backup",
    ] {
        assert!(text.contains(part), "{part:?} is missing in {text:?}");
    }
}

#[test]
fn a_damaged_batch_in_the_last_segment_is_distinguished_from_a_torn_one() {
    let disk = SimulatedDisk::default();
    let mut machine = start(&disk).unwrap();
    machine.put("a", "1").unwrap();
    machine.put("b", "2").unwrap();
    drop(machine);

    let (name, size) = files(&disk, ".log").pop().unwrap();
    disk.flip_bit(&name, 90);
    assert_damaged(&disk, &name);
    disk.flip_bit(&name, 90);
    disk.truncate(&name, size - 1);

    let machine = start(&disk).unwrap();
    assert_eq!(
        machine.read(None).unwrap().len(),
        1,
        "the torn write was the last one"
    );
}

#[test]
fn a_damaged_old_value_is_an_error_and_not_a_wrong_value() {
    let disk = SimulatedDisk::default();
    let config = Config {
        recent_bytes: 0,
        ..Config::default()
    };
    let mut machine = Machine::start(&disk, &Arc::new(ManualClock::default()), config).unwrap();
    let old = machine.put("a", "old value").unwrap();
    machine.put("a", "new value").unwrap();

    let (name, _) = files(&disk, ".log").pop().unwrap();
    disk.flip_bit(&name, 133);
    let request = RangeRequest::new(KeyRange::all()).at(old);
    assert!(matches!(
        now(machine.store.range(request)),
        Err(StoreError::Corrupt { .. })
    ));

    assert_eq!(machine.read(None).unwrap()["a"], "new value");
}
