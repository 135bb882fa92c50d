//! Groups on this host, in the version that has its controllers, and in version 2 if it is mounted
//! beside it.
#![expect(clippy::unwrap_used, reason = "tests panic on failure")]

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use coracle_cgroup::{Group, Hierarchies, Limits, Placement, Version};

/// A group of a test, removed at its end.
struct TestGroup {
    group: Group,
    folder: PathBuf,
}

impl TestGroup {
    fn new(hierarchies: &Hierarchies, test: &str) -> Self {
        let group = hierarchies.group(&format!(
            "/coracle-test-groups-{}-{test}",
            std::process::id()
        ));
        group.create().unwrap();
        let folder = group.folders().remove(0);
        Self { group, folder }
    }
}

impl Deref for TestGroup {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}

impl Drop for TestGroup {
    fn drop(&mut self) {
        for group in [self.group.child("below"), self.group.clone()] {
            group
                .kill()
                .and_then(|()| group.remove())
                .unwrap_or_else(|error| eprintln!("{error}"));
        }
    }
}

/// The hierarchy of version 2, with or without controllers; `None` if it is not mounted.
fn unified() -> Option<Hierarchies> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    Some(Hierarchies::V2 {
        root: PathBuf::from(line.split(' ').nth(4).unwrap()),
    })
}

#[test]
fn memory_limits_can_be_raised_and_lowered() {
    let group = TestGroup::new(&Hierarchies::detect().unwrap(), "memory");
    for (memory, both) in [
        (32 << 20, 40 << 20),
        (64 << 20, 80 << 20),
        (16 << 20, 16 << 20),
    ] {
        let limits = Limits {
            memory: Some(memory),
            memory_and_swap: Some(both),
            ..Limits::default()
        };
        group.limit(&limits).unwrap();
        assert_eq!(group.usage().memory.limit, u64::try_from(memory).ok());
    }
}

#[test]
fn what_the_host_cannot_limit_is_named() {
    let hierarchies = Hierarchies::detect().unwrap();
    let group = TestGroup::new(&hierarchies, "missing");
    let limits = Limits {
        memory: Some(64 << 20),
        hugepages: [("3MB".to_owned(), 3 << 20)].into(),
        ..Limits::default()
    };

    // No host has pages of this size: the file is missing, and on some hosts the controller too.
    let file = match hierarchies.version() {
        Version::V1 => "hugetlb.3MB.limit_in_bytes",
        Version::V2 => "hugetlb.3MB.max",
    };

    let missing: Vec<String> = group
        .limit_as_possible(&limits)
        .unwrap()
        .into_iter()
        .collect();
    assert!(missing == ["hugetlb"] || missing == [file], "{missing:?}");

    assert_eq!(
        group.usage().memory.limit,
        Some(64 << 20),
        "the rest is limited"
    );

    // If nothing is to be limited, nothing is missing.
    let unlimited = Limits {
        pids: Some(-1),
        memory: Some(-1),
        cpu_quota: Some(-1),
        ..Limits::default()
    };
    assert_eq!(group.limit_as_possible(&unlimited).unwrap().len(), 0);

    let nothing = Hierarchies::V1 {
        controllers: Arc::default(),
    }
    .group("/nowhere");

    let missing: Vec<String> = nothing
        .limit_as_possible(&limits)
        .unwrap()
        .into_iter()
        .collect();
    assert_eq!(missing, ["hugetlb", "memory"]);
}

#[test]
fn a_group_of_version_two_enables_the_available_controllers() {
    let Some(hierarchies) = unified() else {
        return println!("skipped: version 2 is not mounted");
    };
    let group = TestGroup::new(&hierarchies, "hands-down");
    let below = group.child("below");
    below.create().unwrap();

    below.create().unwrap();
    let words = |folder: &Path, file: &str| -> Vec<String> {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        text.split_whitespace().map(str::to_owned).collect()
    };

    let useful = ["cpu", "cpuset", "memory", "pids", "hugetlb", "io"];
    let there: Vec<String> = words(&group.folder, "cgroup.controllers")
        .into_iter()
        .filter(|controller| useful.contains(&controller.as_str()))
        .collect();
    assert_eq!(words(&group.folder, "cgroup.subtree_control"), there);

    assert_eq!(words(&below.folders()[0], "cgroup.controllers"), there);

    // Each available controller keeps its limits, and each missing one is reported.
    let limits = Limits {
        cpu_quota: Some(50_000),
        memory: Some(64 << 20),
        pids: Some(100),
        hugepages: [("2MB".to_owned(), 4 << 20)].into(),
        ..Limits::default()
    };
    let missing = below.limit_as_possible(&limits).unwrap();

    let wanted = [
        ("cpu", "cpu.max", "50000 100000"),
        ("memory", "memory.max", "67108864"),
        ("pids", "pids.max", "100"),
        ("hugetlb", "hugetlb.2MB.max", "4194304"),
    ];

    for (controller, file, value) in wanted {
        if there.iter().any(|one| one == controller) {
            assert_eq!(
                fs::read_to_string(below.folders()[0].join(file))
                    .unwrap()
                    .trim(),
                value
            );

            assert!(
                !missing.contains(controller) && !missing.contains(file),
                "{missing:?}"
            );
        } else {
            assert!(missing.contains(controller), "{controller} of {missing:?}");
        }
    }
}

#[test]
fn all_processes_of_a_group_of_version_two_are_killed() {
    let Some(hierarchies) = unified() else {
        return println!("skipped: version 2 is not mounted");
    };
    let group = TestGroup::new(&hierarchies, "kill");
    let below = group.child("below");
    below.create().unwrap();

    let Placement::Folder(folder) = below.placement() else {
        panic!("version 2 has one folder")
    };
    let mut family = family_in(&folder);

    while below.processes().len() < 11 {
        std::thread::sleep(Duration::from_millis(1));
    }

    assert!(below.usage().cpu.nanoseconds > 0);

    below.kill().unwrap();
    assert_eq!(below.processes(), []);
    assert_eq!(family.wait().unwrap().code(), None);

    group.remove().unwrap();
    assert!(!group.exists() && !below.exists());

    group.remove().unwrap();
}

/// A process in a group, with ten children.
fn family_in(folder: &Path) -> Child {
    let script = "echo $$ > \"$1/cgroup.procs\" && for child in 1 2 3 4 5 6 7 8 9 10; do sleep 1000 & done; wait";
    let words = ["-c", script, "sh"].map(str::to_owned);
    Command::new("sh")
        .args(words)
        .arg(folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}
