//! Pods without limits use all memory and PIDs: the server, other pods and `kubectl exec` keep
//! working. The machine is inside a cgroup, as a node in a container is, so that the host of the
//! tests is not affected.

use std::fs;
use std::path::{Path, PathBuf};

use coracle_cgroup::{Hierarchies, Limits};
use serde_json::json;

use crate::machine::{Machine, eventually};
use crate::pods::echo;

const MEMORY: i64 = 900 << 20;
const PIDS: i64 = 2000;

#[test]
fn pods_that_take_all_processes_and_all_memory_harm_only_themselves() {
    let machine = Machine::bounded(&Limits {
        memory: Some(MEMORY),
        pids: Some(PIDS),
        ..Limits::default()
    });
    machine.import_tools();

    machine.start();
    let server = machine.server_pid();
    machine.apply(&[echo("neighbour", &[])]);
    machine.until("get pod neighbour -o jsonpath={.status.phase}", |phase| {
        phase == "Running"
    });

    let mut hog = echo("hog", &["memory", "8Gi"]);
    hog["spec"]["restartPolicy"] = json!("Never");
    machine.apply(&[echo("bomb", &["processes"]), hog]);
    let ended = "get pod hog -o jsonpath={.status.phase}|{.status.containerStatuses[0].state.terminated.reason}";
    machine.until(ended, |found| found == "Failed|OOMKilled");
    let bomb = machine.kubectl("get pod bomb -o jsonpath={.metadata.uid}");
    eventually("the bomb has all processes that it may have", || {
        has_met_its_limit(&bomb)
    });

    for _ in 0..5 {
        machine.kubectl("exec neighbour -- /echo exit 0");
    }

    machine.apply(&[echo("newcomer", &[])]);
    machine.until("get pod newcomer -o jsonpath={.status.phase}", |phase| {
        phase == "Running"
    });
    assert!(machine.kubectl("get node").contains(" Ready "));

    machine.kubectl("delete pod bomb hog --wait=true");
    assert_eq!(machine.server_pid(), server);
    assert!(machine.server_runs());

    machine.kubectl("exec neighbour -- /echo exit 0");
}

/// Whether a pod has nearly as many processes as it may have. It starts one as soon as another
/// ends.
fn has_met_its_limit(uid: &str) -> Result<(), String> {
    let hierarchies = Hierarchies::detect().unwrap();
    let roots = hierarchies.group("/").folders();
    let folder = roots
        .iter()
        .find_map(|root| find(root, &format!("pod{uid}"), "pids.max"));
    let folder = folder.ok_or("the pod has no cgroup")?;

    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let (most, now) = (read("pids.max"), read("pids.current"));
    let count = |text: &str| {
        text.trim()
            .parse::<u32>()
            .map_err(|_| format!("{most} {now}"))
    };

    let (most, now) = (count(&most)?, count(&now)?);
    if now * 10 >= most * 9 {
        Ok(())
    } else {
        Err(format!("{now} of {most}"))
    }
}

/// The folder of a pod below a hierarchy, where it has a file of that name.
fn find(root: &Path, name: &str, file: &str) -> Option<PathBuf> {
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        let below = fs::read_dir(folder).into_iter().flatten().flatten();
        for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            if entry.file_name() == *name {
                return Some(entry.path()).filter(|folder| folder.join(file).exists());
            }
            open.push(entry.path());
        }
    }
    None
}
