//! A group: a path that is a directory in every hierarchy.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::iter;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::devices::{self, DeviceRule};
use crate::hierarchies::{Hierarchies, Version};
use crate::limits::{Limits, Setting, controller_of, is_unlimited};
use crate::usage::{self, CpuUsage, MemoryUsage, Usage};
use crate::{Error, sys};

/// The delays between checks whether killed processes have ended: usually they end immediately. But
/// a process with the lowest CPU weight on a busy machine may need seconds even to exit.
fn check_delays() -> impl Iterator<Item = Duration> {
    let (soon, later) = (Duration::from_millis(2), Duration::from_millis(50));
    iter::repeat_n(soon, 50).chain(iter::repeat_n(later, 600))
}

/// Controllers that a pod or container can use, on version 2.
const CONTROLLERS: &str = "cpu cpuset memory pids hugetlb io";

/// A group of processes. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    hierarchies: Hierarchies,
    path: String,
}

/// How a process joins a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// By writing its pid into each of these files.
    Tasks(Vec<PathBuf>),
    /// By being cloned into this directory.
    Folder(PathBuf),
}

/// A file that counts OOM kills in a line `KEY COUNT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OomFile {
    pub path: PathBuf,
    pub key: &'static str,
}

impl Group {
    pub(crate) fn new(hierarchies: Hierarchies, path: &str) -> Self {
        Self {
            hierarchies,
            path: path.to_owned(),
        }
    }

    /// The group below this one.
    pub fn child(&self, name: &str) -> Self {
        Self {
            path: format!("{}/{name}", self.path),
            ..self.clone()
        }
    }

    /// The path from the root of the hierarchies, with a leading slash.
    pub fn path(&self) -> String {
        format!("/{}", self.path)
    }

    pub fn exists(&self) -> bool {
        self.folders().iter().all(|folder| folder.is_dir())
    }

    /// Creates the group and its ancestors.
    pub fn create(&self) -> Result<(), Error> {
        for mount in self.hierarchies.mounts() {
            if !self.hierarchies.needs_parent_values(mount) {
                let folder = mount.join(&self.path);
                fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
                continue;
            }

            if let Hierarchies::V1 { .. } = self.hierarchies {
                let folder = mount.join(&self.path);
                fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
                for file in ["cpuset.cpus", "cpuset.mems"] {
                    inherit(mount, &folder, file)?;
                }
                continue;
            }

            let mut folder = mount.to_owned();
            for name in self.path.split('/').filter(|name| !name.is_empty()) {
                let above = folder.clone();
                folder.push(name);
                match fs::create_dir(&folder) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    other => other.map_err(Error::io("create", &folder))?,
                }
                enable_controllers(&above)?;
            }
        }

        Ok(())
    }

    /// Writes the given limits. Those that the host does not support are skipped.
    pub fn limit(&self, limits: &Limits) -> Result<(), Error> {
        self.limit_as_possible(limits).map(drop)
    }

    /// Writes the given limits and returns those that the host does not support: a missing
    /// controller, or a single missing file of one.
    pub fn limit_as_possible(&self, limits: &Limits) -> Result<BTreeSet<String>, Error> {
        let settings = match self.hierarchies.version() {
            Version::V1 => limits.v1(),
            Version::V2 => limits.v2(),
        };

        let mut missing = BTreeSet::new();
        let mut refused = Vec::new();
        for setting in settings {
            match self.set(&setting) {
                Err(error) if error.is_invalid() => refused.push(setting),
                set => missing.extend(set?),
            }
        }

        // The order of writes depends on the old values: memory must not exceed memory plus swap,
        // nor a quota that of the parent.
        for setting in refused {
            missing.extend(self.set(&setting)?);
        }

        Ok(missing)
    }

    /// Writes one limit. Returns what the host does not support.
    fn set(&self, setting: &Setting) -> Result<Option<String>, Error> {
        let Setting { file, value } = setting;
        let controller = controller_of(file);
        let folder = self.folder(controller);

        let written = folder.as_ref().map_or(Ok(false), |folder| {
            write_if_there(&folder.join(file), value)
        })?;
        if written || is_unlimited(value) {
            return Ok(None);
        }

        let has_controller = folder.is_some_and(|folder| self.has_controller(&folder, controller));
        Ok(Some(if has_controller {
            file.clone()
        } else {
            controller.to_owned()
        }))
    }

    fn has_controller(&self, folder: &Path, controller: &str) -> bool {
        match &self.hierarchies {
            Hierarchies::V1 { controllers } => controllers.contains_key(controller),
            Hierarchies::V2 { .. } => usage::read(&folder.join("cgroup.controllers"))
                .split_whitespace()
                .any(|one| one == controller),
        }
    }

    /// Denies all devices except those that a rule allows.
    pub fn allow_devices(&self, rules: &[DeviceRule]) -> Result<(), Error> {
        match &self.hierarchies {
            Hierarchies::V1 { .. } => {
                let Some(folder) = self.folder("devices") else {
                    return Ok(());
                };
                write(&folder.join("devices.deny"), "a")?;
                let path = folder.join("devices.allow");
                let mut file = fs::File::options()
                    .write(true)
                    .open(&path)
                    .map_err(Error::io("open", &path))?;

                // The kernel accepts one rule per write.
                rules.iter().try_for_each(|rule| {
                    file.write_all(rule.v1().as_bytes())
                        .map_err(Error::io("write", &path))
                })
            }
            Hierarchies::V2 { root } => {
                let path = root.join(&self.path);
                let failed = |source: io::Error| Error::DeviceRules {
                    path: path.clone(),
                    source,
                };
                let program = sys::load_device_program(&devices::program(rules)).map_err(failed)?;
                let folder = fs::File::open(&path).map_err(failed)?;
                sys::attach_device_program(folder.as_fd(), &program).map_err(failed)
            }
        }
    }

    pub fn placement(&self) -> Placement {
        match &self.hierarchies {
            Hierarchies::V1 { .. } => Placement::Tasks(
                self.folders()
                    .into_iter()
                    .map(|folder| folder.join("tasks"))
                    .collect(),
            ),
            Hierarchies::V2 { root } => Placement::Folder(root.join(&self.path)),
        }
    }

    pub fn oom_file(&self) -> Option<OomFile> {
        let file = match &self.hierarchies {
            Hierarchies::V1 { .. } => "memory.oom_control",
            Hierarchies::V2 { .. } => "memory.events",
        };
        Some(OomFile {
            path: self.folder("memory")?.join(file),
            key: "oom_kill",
        })
    }

    /// The number of OOM kills in this group.
    pub fn oom_kills(&self) -> u64 {
        self.oom_file()
            .map_or(0, |file| usage::count(&usage::read(&file.path), file.key))
    }

    pub fn usage(&self) -> Usage {
        let pids = self
            .folder("pids")
            .map_or(0, |folder| usage::number(&folder.join("pids.current")));
        match &self.hierarchies {
            Hierarchies::V1 { .. } => Usage {
                cpu: CpuUsage {
                    nanoseconds: self
                        .folder("cpuacct")
                        .map_or(0, |folder| usage::number(&folder.join("cpuacct.usage"))),
                },
                memory: self
                    .folder("memory")
                    .map_or(MemoryUsage::default(), |folder| usage::v1_memory(&folder)),
                pids,
            },
            Hierarchies::V2 { root } => {
                let folder = root.join(&self.path);
                Usage {
                    cpu: usage::v2_cpu(&folder),
                    memory: usage::v2_memory(&folder),
                    pids,
                }
            }
        }
    }

    /// The processes in this group itself.
    pub fn processes(&self) -> Vec<i32> {
        let Some(folder) = self.folders().into_iter().find(|folder| folder.is_dir()) else {
            return Vec::new();
        };
        usage::read(&folder.join("cgroup.procs"))
            .lines()
            .filter_map(|line| line.parse().ok())
            .collect()
    }

    /// Kills every process in this group and waits until they have ended. Blocks for up to half a
    /// minute.
    pub fn kill(&self) -> Result<(), Error> {
        for pause in check_delays() {
            let processes = self.processes();
            if processes.is_empty() {
                return Ok(());
            }
            self.kill_once(&processes);
            thread::sleep(pause);
        }
        Err(Error::DoesNotEnd(PathBuf::from(self.path())))
    }

    fn kill_once(&self, processes: &[i32]) {
        if let Hierarchies::V2 { root } = &self.hierarchies
            && fs::write(root.join(&self.path).join("cgroup.kill"), "1").is_ok()
        {
            return;
        }
        for process in processes {
            if let Some(pid) = Pid::from_raw(*process) {
                // It may have ended meanwhile; the caller checks again.
                kill_process(pid, Signal::KILL).unwrap_or_default();
            }
        }
    }

    /// Removes the group and its descendants. It is no error if it does not exist, but if it has
    /// processes.
    pub fn remove(&self) -> Result<(), Error> {
        self.folders()
            .iter()
            .try_for_each(|folder| remove_tree(folder))
    }

    /// The group's directory in the hierarchy of a controller.
    fn folder(&self, controller: &str) -> Option<PathBuf> {
        self.mount_and_folder(controller).map(|(_, folder)| folder)
    }

    /// The mount of a controller, and the group's directory there.
    pub(crate) fn mount_and_folder(&self, controller: &str) -> Option<(&Path, PathBuf)> {
        let mount = match &self.hierarchies {
            Hierarchies::V1 { controllers } => controllers.get(controller)?,
            Hierarchies::V2 { root } => root,
        };
        Some((mount, mount.join(&self.path)))
    }

    pub(crate) fn hierarchies(&self) -> &Hierarchies {
        &self.hierarchies
    }

    /// The group's directory in every hierarchy.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.hierarchies
            .mounts()
            .into_iter()
            .map(|mount| mount.join(&self.path))
            .collect()
    }
}

/// A new group of version 1 has no CPUs and memory nodes, and no process can join it until it has:
/// copy the parent's. The groups between the mount and it are initialized first.
fn inherit(mount: &Path, folder: &Path, file: &str) -> Result<(), Error> {
    let mut above: Vec<&Path> = folder
        .ancestors()
        .take_while(|above| above.starts_with(mount))
        .collect();
    above.reverse();

    let mut inherited = String::new();
    for folder in above {
        let here = folder.join(file);
        let own = usage::read(&here).trim().to_owned();
        if own.is_empty() {
            write_if_there(&here, &inherited)?;
        } else {
            inherited = own;
        }
    }

    Ok(())
}

/// Enables all available controllers for the child groups.
fn enable_controllers(folder: &Path) -> Result<(), Error> {
    let there = usage::read(&folder.join("cgroup.controllers"));
    let control = folder.join("cgroup.subtree_control");
    let enabled = usage::read(&control);
    let wanted = CONTROLLERS.split(' ').filter(|one| {
        there.split_whitespace().any(|name| name == *one)
            && !enabled.split_whitespace().any(|name| name == *one)
    });
    wanted
        .map(|controller| format!("+{controller}"))
        .try_for_each(|text| write(&control, &text))
}

fn write(file: &Path, value: &str) -> Result<(), Error> {
    fs::write(file, value).map_err(Error::io("write", file))
}

/// Writes a file that the host may not have. Returns whether it has.
fn write_if_there(file: &Path, value: &str) -> Result<bool, Error> {
    match fs::write(file, value) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        // A missing file would have to be created, which cgroups deny.
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !file.exists() => Ok(false),
        other => other.map(|()| true).map_err(Error::io("write", file)),
    }
}

/// Removes groups, the deepest first. A container that may create groups can nest them to any
/// depth.
fn remove_tree(folder: &Path) -> Result<(), Error> {
    let mut way = vec![folder.to_owned()];
    while let Some(here) = way.pop() {
        match first_below(&here)? {
            Some(below) => way.extend([here, below]),
            None => remove_empty(&here)?,
        }
    }
    Ok(())
}

/// A group directly below another, if there is one.
fn first_below(folder: &Path) -> Result<Option<PathBuf>, Error> {
    let below = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Error::io("read", folder))?,
    };
    let mut folders = below
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    Ok(folders.next().map(|entry| entry.path()))
}

fn remove_empty(folder: &Path) -> Result<(), Error> {
    for pause in check_delays() {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // The last process is reaped, but the kernel has not released it yet.
            Err(error) if error.kind() == ErrorKind::ResourceBusy => thread::sleep(pause),
            other => return other.map_err(Error::io("remove", folder)),
        }
    }
    Err(Error::DoesNotEnd(folder.to_owned()))
}
