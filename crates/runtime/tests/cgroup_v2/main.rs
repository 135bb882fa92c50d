//! Pods in cgroups v2: on this host with its available controllers, and in User Mode Linux
//! (`linux.uml`) with all controllers.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test starts itself elsewhere, and tells itself so by the environment"
)]

#[path = "../common/mod.rs"]
mod common;
mod inside;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output, Stdio};

/// The available controllers, for the child process.
const CONTROLLERS: &str = "CORACLE_TEST_VERSION_2";

/// No-op as a test: run by the tests below in another environment.
#[tokio::test(flavor = "multi_thread")]
async fn run_in_child_process() {
    if let Ok(expected) = std::env::var(CONTROLLERS) {
        inside::look(&expected).await;
        println!("{}", inside::DONE);
    }
}

/// Runs in a mount namespace without cgroup v1.
const WITHOUT_VERSION_1: &str = "\
    for place in $(awk '{ for (i = 7; i < NF; i++) if ($i == \"-\" && $(i + 1) == \"cgroup\") print $5 }' \
        /proc/self/mountinfo); do umount \"$place\" || exit; done; exec \"$@\"";

#[test]
fn pods_run_with_what_this_host_has_of_version_2() {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let Some(unified) = mounts.lines().find(|line| line.contains(" - cgroup2 ")) else {
        return println!("left out: version 2 is not mounted");
    };
    let root = unified.split(' ').nth(4).unwrap();

    let controllers = fs::read_to_string(format!("{root}/cgroup.controllers")).unwrap();
    let elsewhere = Command::new("unshare")
        .args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            WITHOUT_VERSION_1,
            "sh",
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "run_in_child_process", "--nocapture"])
        .env(CONTROLLERS, controllers.trim())
        .output()
        .expect("the package util-linux is installed");
    check(&elsewhere);
}

/// The init script of a UML machine on this host's root, which shuts down after the test.
fn first_process(place: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!(
        "#!/bin/sh\n\
         mount -t proc proc /proc && mount -t sysfs sysfs /sys && mount -t cgroup2 cgroup2 /sys/fs/cgroup\n\
         mkdir -p /dev/shm && mount -t tmpfs shm /dev/shm && mount -t tmpfs tmp {place}/tmp\n\
         export TMPDIR={place}/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin {CONTROLLERS}='cpu io memory pids'\n\
         for module in $(find /usr/lib/uml/modules -name overlay.ko); do /bin/busybox insmod $module; done\n\
         {} --exact run_in_child_process --nocapture\n\
         /bin/busybox poweroff -f\n",
        program.display()
    )
}

/// What the UML kernel prints on processors with AMX, which it does not support.
const TOO_MUCH_STATE: &str = "ptrace set fp regs failed";

#[test]
fn pods_run_with_all_of_version_2() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    fs::create_dir(folder.path().join("tmp")).unwrap();
    let first = folder.path().join("first");
    fs::write(&first, first_process(place)).unwrap();
    fs::set_permissions(&first, fs::Permissions::from_mode(0o755)).unwrap();

    let machine = Command::new("linux.uml")
        .args([
            "mem=1G",
            "rootfstype=hostfs",
            "rw",
            "quiet",
            "con=null",
            "ssl=null",
            "con0=null,fd:1",
        ])
        .arg(format!("init={}", first.display()))
        .arg(format!("uml_dir={place}"))
        .arg("umid=machine")
        .env("TMPDIR", place)
        .stdin(Stdio::null())
        .output()
        .expect("the package user-mode-linux is installed");

    let said = [&machine.stdout[..], &machine.stderr].concat();
    if String::from_utf8_lossy(&said).contains(TOO_MUCH_STATE) {
        return println!(
            "left out: this processor's registers are more than a kernel 6.1 can keep as a process"
        );
    }

    check(&machine);
}

/// Checks that the test has run and passed.
fn check(elsewhere: &Output) {
    let said = String::from_utf8_lossy(&elsewhere.stdout).replace('\r', "");
    let passed = said.contains(inside::DONE) && said.contains("test result: ok. 1 passed");
    assert!(
        passed,
        "{said}\n{}",
        String::from_utf8_lossy(&elsewhere.stderr)
    );
}
