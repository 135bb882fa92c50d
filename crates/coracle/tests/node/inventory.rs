//! Resources of a cluster on its machine: processes, mounts, cgroups, interfaces, packet filter
//! rules, files.

use std::fs;
use std::path::{Path, PathBuf};

use ring::digest::{SHA256, digest};

use crate::machine::{Machine, eventually};

impl Machine {
    /// All resources, one per line. Two equal inventories prove that nothing was left or lost.
    pub(crate) fn inventory(&self) -> Vec<String> {
        let (name, run_dir) = self.instance();
        let processes = self.processes();
        let mut all: Vec<String> = processes
            .iter()
            .map(|(pid, words)| format!("process {pid} {words}"))
            .collect();

        let data_dir = self.data_dir();
        let mounted = mounts(&[&run_dir, &data_dir]);
        all.extend(mounted.iter().map(|place| format!("mount {place}")));
        all.extend(cgroups(&name));

        let links = self.types("ip -o link");
        all.extend(
            links
                .lines()
                .filter_map(|line| Some(format!("link {}", line.split(": ").nth(1)?))),
        );

        all.extend(
            self.types("nft list ruleset")
                .lines()
                .map(|line| format!("rule {}", line.trim())),
        );

        all.extend(
            self.types("ip route")
                .lines()
                .map(|line| format!("route {}", line.trim())),
        );

        for folder in [
            run_dir,
            data_dir.join("kubelet"),
            data_dir.join("runtime"),
            data_dir.join("images/containers"),
        ] {
            files(&folder, &mounted, &mut all);
        }

        all.sort();

        all
    }

    /// All processes in the cgroups of the cluster, but for its server: supervisors, and what runs
    /// in pods.
    pub(crate) fn processes(&self) -> Vec<(u32, String)> {
        let (name, server) = (self.instance().0, self.server_pid());
        let all = fs::read_dir("/proc").unwrap().flatten();
        let found = all.filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let groups = fs::read_to_string(entry.path().join("cgroup")).ok()?;
            let words = fs::read_to_string(entry.path().join("cmdline")).ok()?;
            (groups.contains(&name) && Some(pid) != server).then(|| (pid, words.replace('\0', " ")))
        });
        found.collect()
    }

    /// Waits until the inventory equals `before`.
    pub(crate) fn is_again(&self, before: &[String]) {
        eventually("something was left, or is missing", || {
            let now = self.inventory();
            let lost = before
                .iter()
                .filter(|line| !now.contains(line))
                .map(|line| format!("- {line}"));

            let left = now
                .iter()
                .filter(|line| !before.contains(line))
                .map(|line| format!("+ {line}"));

            let changes: Vec<String> = lost.chain(left).collect();
            if changes.is_empty() && now.len() == before.len() {
                Ok(())
            } else {
                Err(changes)
            }
        });
    }

    /// Checks that nothing of the cluster is left.
    pub(crate) fn has_nothing(&self) {
        let own = [
            "link lo",
            "link up0",
            "route default via 192.0.2.1 dev up0",
            "route 192.0.2.0/24 dev up0",
        ];

        eventually("something was left", || {
            let left = self
                .inventory()
                .into_iter()
                .filter(|line| !own.iter().any(|own| line.starts_with(own)));
            let left: Vec<String> = left.collect();
            if left.is_empty() { Ok(()) } else { Err(left) }
        });

        assert!(!self.data_dir().exists(), "its data directory is left");
        assert!(!self.instance().1.exists(), "its files in /run are left");
    }

    /// The instance name and the run directory of the cluster.
    pub(crate) fn instance(&self) -> (String, PathBuf) {
        let folder = self.folder().canonicalize().unwrap().join("data");
        let id = sha256(folder.as_os_str().as_encoded_bytes())[..8].to_owned();
        (format!("coracle-{id}"), Path::new("/run/coracle").join(id))
    }
}

/// In hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes)
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn mounts(folders: &[&Path]) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let places = table.lines().filter_map(|line| line.split(' ').nth(4));
    let ours = places.filter(|place| {
        folders
            .iter()
            .any(|folder| Path::new(place).starts_with(folder))
    });
    ours.map(str::to_owned).collect()
}

/// The groups of the cluster, in all hierarchies of the host.
fn cgroups(name: &str) -> Vec<String> {
    let root = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(root)
        .unwrap()
        .flatten()
        .map(|entry| entry.path());

    let mut found = Vec::new();
    for hierarchy in hierarchies
        .chain([root.to_path_buf()])
        .filter(|path| !path.is_symlink())
    {
        for path in [hierarchy.join(name), hierarchy.join("unified").join(name)]
            .iter()
            .filter(|path| path.is_dir())
        {
            folders(path, &mut found);
        }
    }

    found
}

fn folders(folder: &Path, found: &mut Vec<String>) {
    found.push(format!("cgroup {}", folder.display()));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folders(&entry.path(), found);
        }
    }
}

/// Files and folders below one, but for what is mounted there or in a pod's empty folder, which is
/// containers' own; names in volumes that begin with two dots change with each renewal.
fn files(folder: &Path, mounted: &[String], found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if !entry.file_name().to_string_lossy().starts_with("..") {
            found.push(format!("file {}", path.display()));
            let is_own = folder.ends_with("volumes/kubernetes.io~empty-dir")
                || mounted.iter().any(|place| Path::new(place) == path);
            if !is_own && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                files(&path, mounted, found);
            }
        }
    }
}
