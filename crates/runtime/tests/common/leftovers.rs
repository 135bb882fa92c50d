//! Cleans up after failed tests: supervisors, containers, mounts and cgroups outlive a process by
//! design.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coracle_cgroup::Hierarchies;

use super::kill;

/// Kills and removes everything of a node on drop. Must be dropped after the runtime, which would
/// replace supervisors, and before the folder.
pub(crate) struct Leftovers {
    instance: String,
    place: PathBuf,
}

impl Leftovers {
    pub(crate) fn of(instance: &str, place: &Path) -> Self {
        Self {
            instance: instance.to_owned(),
            place: place.to_owned(),
        }
    }
}

impl Drop for Leftovers {
    /// Nothing in here panics: the test may be panicking already.
    fn drop(&mut self) {
        let Ok(hierarchies) = Hierarchies::detect() else {
            return;
        };

        let group = hierarchies.group(&self.instance);
        for _ in 0..1000 {
            let mut alive: Vec<i32> = group
                .folders()
                .iter()
                .flat_map(|folder| processes_below(folder))
                .collect();
            alive.extend(started_for(&self.place));

            if alive.is_empty() {
                break;
            }

            alive.into_iter().for_each(kill);
            std::thread::sleep(Duration::from_millis(5));
        }

        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mounted = mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(4))
            .map(Path::new);

        let ours: Vec<&Path> = mounted
            .filter(|point| point.starts_with(&self.place))
            .collect();
        for point in ours.iter().rev() {
            rustix::mount::unmount(*point, rustix::mount::UnmountFlags::DETACH).unwrap_or_default();
        }

        if let Err(error) = group.remove() {
            eprintln!("{}: {error}", self.instance);
        }
    }
}

fn processes_below(folder: &Path) -> Vec<i32> {
    let here = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<i32> = here
        .lines()
        .filter_map(|line| line.parse().ok())
        .filter(|pid| *pid > 0)
        .collect();

    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(processes_below(&entry.path()));
        }
    }

    found
}

/// Processes with a folder in their arguments: supervisors, and those of other runtimes.
fn started_for(place: &Path) -> Vec<i32> {
    let place = place.to_string_lossy().into_owned();
    let names = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name());

    let pids = names.filter_map(|name| name.to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        fs::read_to_string(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|command| command.contains(&place))
    })
    .collect()
}
