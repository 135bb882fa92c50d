//! A cgroup that limits a whole test machine. Inside, it is the root of the hierarchy, as in a
//! container.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use coracle_cgroup::{Group, Hierarchies, Limits, Placement};

use crate::machine::eventually;

pub(crate) struct MachineCgroup {
    group: Group,
    /// Holds the mount namespace in which the group is the root.
    holder: Child,
}

impl MachineCgroup {
    pub(crate) fn new(name: &str, limits: &Limits) -> MachineCgroup {
        let group = Hierarchies::detect().unwrap().group(&format!("/{name}"));
        group.create().unwrap();
        group.child("server").create().unwrap();
        assert!(
            group.limit_as_possible(limits).unwrap().is_empty(),
            "the host cannot limit {limits:?}"
        );

        let hierarchies = Hierarchies::detect().unwrap();
        let binds = hierarchies.mounts().into_iter().map(|mount| {
            let mount = mount.display();
            format!("mount --bind {mount}/{name} {mount} && ")
        });

        let script = binds.collect::<String>() + "echo bound && exec sleep infinity";
        let holder = Command::new("unshare")
            .args(["--mount", "sh", "-c", &script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut cgroup = MachineCgroup { group, holder };
        cgroup.wait();

        cgroup
    }

    /// Waits until everything is mounted: the word that the script says then has a line for itself.
    fn wait(&mut self) {
        use std::io::{BufRead as _, BufReader};
        let mut line = String::new();
        let said = self.holder.stdout.as_mut().unwrap();
        BufReader::new(said).read_line(&mut line).unwrap();
        assert_eq!(line, "bound\n");
    }

    /// Where commands find the mounts of the machine.
    pub(crate) fn mounts(&self) -> String {
        format!("/proc/{}/ns/mnt", self.holder.id())
    }

    /// What a process writes itself into that is to count.
    pub(crate) fn tasks(&self) -> Vec<PathBuf> {
        match self.group.child("server").placement() {
            Placement::Tasks(files) => files,
            Placement::Folder(folder) => vec![folder.join("cgroup.procs")],
        }
    }
}

impl Drop for MachineCgroup {
    fn drop(&mut self) {
        self.holder.kill().unwrap();
        self.holder.wait().unwrap();

        if std::thread::panicking() {
            drop(self.group.remove());
            return;
        }

        // A process that just ended stays in its cgroup until the kernel has reaped it.
        eventually("the cgroup of the machine goes", || self.group.remove());
        assert!(
            self.group
                .folders()
                .iter()
                .all(|folder| fs::metadata(folder).is_err())
        );
    }
}
