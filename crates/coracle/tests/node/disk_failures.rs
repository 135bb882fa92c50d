//! A full disk and a disk that becomes read-only under the data directory (docs/backup.md,
//! docs/troubleshooting.md).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FallocateFlags, fallocate};

use crate::machine::Machine;
use crate::pods::shell;

/// Messages of the store, each logged once.
const FAIL: &str = "store writes failing; reads continue";
const SUCCEED: &str = "store writes recovered";

#[test]
fn a_full_disk_is_logged_once_and_a_server_starts_on_it() {
    let machine = Machine::new();
    let disk = Disk::mount(&machine);
    machine.start();
    machine.kubectl("create configmap before");

    disk.fill();
    machine.is_refused_writes("first", "no space left on the disk");
    assert_eq!((machine.logged(FAIL), machine.logged(SUCCEED)), (1, 0));

    disk.make_room();
    machine.kubectl("create configmap between");
    assert_eq!((machine.logged(FAIL), machine.logged(SUCCEED)), (1, 1));

    disk.fill();
    machine.is_refused_writes("second", "no space left on the disk");
    machine.stop_server();

    machine.start();
    assert_eq!(
        machine
            .kubectl("get configmap before between -o name")
            .lines()
            .count(),
        2
    );

    machine.is_refused_writes("third", "no space left on the disk");
    disk.make_room();
    machine.kubectl("create configmap after");
    machine.stop_and_reset();
}

#[test]
fn on_a_read_only_disk_pods_end_and_the_store_is_backed_up() {
    let machine = Machine::new();
    let disk = Disk::mount(&machine);
    machine.import_tools();
    machine.start();

    machine.kubectl("create configmap before");
    machine.apply(&[shell("pod", "exec sleep 100000")]);
    machine.until("get pod pod -o jsonpath={.status.phase}", |phase| {
        phase == "Running"
    });
    machine.kubectl("-n kube-system rollout status daemonset/coracle-dns --timeout=300s");

    disk.fail();
    machine.is_refused_writes("any", "read-only");
    assert_eq!(machine.logged(FAIL), 1);
    assert_eq!(
        machine.kubectl("get configmap before -o name"),
        "configmap/before\n"
    );

    let backed_up = machine.backs_up("beside");
    let said = machine.types("coracle stop");
    assert_eq!(
        said,
        "stopped the server and 2 pods; `coracle server` starts them again\n"
    );

    assert!(machine.server_ended().success());
    assert_eq!(machine.processes(), []);
    assert_eq!(machine.backs_up("without"), backed_up);

    machine.run(
        CORACLE,
        &[
            "store",
            "check",
            "--data-dir",
            machine.data_dir().to_str().unwrap(),
        ],
    );

    machine.begin();
    assert!(
        !machine.server_ended().success(),
        "a server does not start on a read-only disk"
    );

    disk.repair(&machine.instance().1);
    machine.start();
    assert_eq!(
        machine.kubectl("get configmap before -o name"),
        "configmap/before\n"
    );

    // What the runtime knew of it may not have come to the disk.
    machine.until("exec pod -- echo again", |said| said == "again\n");
    machine.stop_and_reset();
}

const CORACLE: &str = env!("CARGO_BIN_EXE_coracle");

impl Machine {
    /// Writes are refused, however often they are tried. What is left of the last block of a full
    /// disk takes a few small ones.
    fn is_refused_writes(&self, name: &str, why: &str) {
        let large = format!("--from-literal=key={}", "x".repeat(100_000));
        let mut refused = 0;
        for number in 0..100 {
            let output =
                self.try_kubectl(&["create", "configmap", &format!("{name}-{number}"), &large]);
            if output.status.success() {
                assert_eq!(refused, 0, "refused before");
                continue;
            }

            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(error.contains(why), "{error}");

            refused += 1;

            if refused == 5 {
                return;
            }
        }

        panic!("no write was refused");
    }

    /// Backs the store up to another disk: how many keys, at which revision.
    fn backs_up(&self, name: &str) -> String {
        let (data, file) = (self.data_dir(), self.folder().join(name));
        let said = self.run(
            CORACLE,
            &[
                "store",
                "backup",
                "--data-dir",
                data.to_str().unwrap(),
                file.to_str().unwrap(),
            ],
        );

        said.split_once(" (").unwrap().0.to_owned()
    }
}

/// A small disk for the data directory of a machine, which unmounts it when it is removed.
struct Disk {
    image: PathBuf,
    at: PathBuf,
}

impl Disk {
    fn mount(machine: &Machine) -> Disk {
        let disk = Disk {
            image: machine.folder().join("disk"),
            at: machine.data_dir(),
        };
        fs::create_dir(&disk.at).unwrap();

        File::create(&disk.image)
            .unwrap()
            .set_len(512 << 20)
            .unwrap();

        run("mkfs.ext4", &["-q", "-m", "0"], &[&disk.image]);
        run("mount", &["-o", "loop"], &[&disk.image, &disk.at]);

        disk
    }

    fn fill(&self) {
        let file = File::create(self.at.join("filling")).unwrap();
        let mut length = 0;
        // Ever smaller pieces, until not one byte more fits.
        for step in [16 << 20, 1 << 20, 1 << 12] {
            while fallocate(&file, FallocateFlags::empty(), length, step).is_ok() {
                length += step;
            }
        }
    }

    fn make_room(&self) {
        fs::remove_file(self.at.join("filling")).unwrap();
    }

    /// Makes the file system read-only, as after a disk error.
    fn fail(&self) {
        run("mount", &["-o", "remount,abort"], &[&self.at]);
    }

    /// Remounts the disk and empties `run_dir`, as a repair and a reboot do.
    fn repair(&self, run_dir: &Path) {
        run("umount", &["--recursive"], &[run_dir]);
        fs::remove_dir_all(run_dir).unwrap();
        run("umount", &["--recursive"], &[&self.at]);
        // It says 1 where it has mended something.
        let status = Command::new("fsck.ext4")
            .args(["-p", "-f"])
            .arg(&self.image)
            .status()
            .unwrap();
        assert!(status.code().is_some_and(|code| code <= 1), "{status}");
        run("mount", &["-o", "loop"], &[&self.image, &self.at]);
    }
}

fn run(program: &str, arguments: &[&str], files: &[&Path]) {
    let output = Command::new(program)
        .args(arguments)
        .args(files)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
