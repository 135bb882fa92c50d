//! Translates a CRI container config into the specification for the supervisor. Every decision
//! about a container is made here.
//!
//! [`assemble`] combines the results of the sibling modules. Except for reading the image's user
//! database ([`users`]), the host's devices ([`devices`]) and its mounts ([`sharing`]), nothing
//! here touches the host.

pub(crate) mod capabilities;
pub(crate) mod devices;
mod environment;
mod mounts;
mod resources;
mod seccomp;
mod sharing;
pub(crate) mod signals;
pub(crate) mod sysctls;
mod users;

use std::path::Path;

use coracle_cgroup::{Hierarchies, Placement};
use coracle_cri::v1::{
    ContainerConfig, LinuxContainerSecurityContext, NamespaceMode, NamespaceOption,
    PodSandboxConfig,
};
use coracle_supervisor::protocol::{
    ContainerSpec, Join, Namespaces, OomCounter, Pid, Process, Propagation, ResourceLimit,
};

pub(crate) use mounts::{clean_path, has_mount_at, mount_points};
pub(crate) use resources::{limits, unsupported_limits};

use crate::config::{OpenFiles, text};
use crate::error::Error;
use crate::namespaces::Pins;
use crate::ports::ImageConfig;

/// The inputs of a container's specification.
pub(crate) struct SpecInputs<'a> {
    pub(crate) id: &'a str,
    pub(crate) config: &'a ContainerConfig,
    pub(crate) sandbox: &'a PodSandboxConfig,
    pub(crate) image: &'a ImageConfig,
    /// Where the root filesystem is mounted.
    pub(crate) rootfs: &'a Path,
    /// The folder with the pod's pins and its shared memory.
    pub(crate) pod_folder: &'a Path,
    /// The folder with its files in `/etc`.
    pub(crate) pod_files: &'a Path,
    pub(crate) group: &'a coracle_cgroup::Group,
    pub(crate) hierarchies: &'a Hierarchies,
    pub(crate) log: Option<&'a Path>,
    pub(crate) exit_file: &'a Path,
    pub(crate) open_files: Option<OpenFiles>,
}

pub(crate) fn assemble(from: &SpecInputs<'_>) -> Result<ContainerSpec, Error> {
    let security = security(from.config);
    let namespaces = namespaces(from, &security)?;
    let privileged = security.privileged;
    let process = process(from, &security)?;

    Ok(ContainerSpec {
        id: from.id.to_owned(),
        process,
        rootfs: text(from.rootfs),
        readonly_root: security.readonly_rootfs,
        propagation: mounts::root_propagation(&from.config.mounts),
        namespaces,
        join: join(from.group),
        mounts: mounts::list(from, &security)?,
        devices: devices::nodes(from.config, privileged)?,
        masked: if privileged {
            Vec::new()
        } else {
            security.masked_paths.clone()
        },
        readonly: if privileged {
            Vec::new()
        } else {
            security.readonly_paths.clone()
        },
        stdin: from.config.stdin,
        log: from.log.map(text),
        exit_file: text(from.exit_file),
        oom: from.group.oom_file().map(|file| OomCounter {
            file: text(&file.path),
            key: file.key.to_owned(),
        }),
    })
}

pub(crate) fn security(config: &ContainerConfig) -> LinuxContainerSecurityContext {
    config
        .linux
        .as_ref()
        .and_then(|linux| linux.security_context.clone())
        .unwrap_or_default()
}

/// The namespace options of a pod.
pub(crate) fn pod_namespaces(config: &PodSandboxConfig) -> NamespaceOption {
    let security = config
        .linux
        .as_ref()
        .and_then(|linux| linux.security_context.as_ref());
    security
        .and_then(|security| security.namespace_options.clone())
        .unwrap_or_default()
}

/// How processes join a cgroup, for the supervisor.
pub(crate) fn join(group: &coracle_cgroup::Group) -> Join {
    match group.placement() {
        Placement::Tasks(files) => Join::V1 {
            tasks: files.iter().map(|file| text(file)).collect(),
        },
        Placement::Folder(folder) => Join::V2 {
            folder: text(&folder),
        },
    }
}

fn namespaces(
    from: &SpecInputs<'_>,
    security: &LinuxContainerSecurityContext,
) -> Result<Namespaces, Error> {
    let (pod, own) = (
        pod_namespaces(from.sandbox),
        security.namespace_options.clone().unwrap_or_default(),
    );

    if own
        .userns_options
        .as_ref()
        .is_some_and(|user| user.mode() == NamespaceMode::Pod)
    {
        return Err(Error::Unsupported("a user namespace"));
    }

    let pins = Pins(from.pod_folder);
    let host_network = pod.network() == NamespaceMode::Node;
    let pid = match own.pid() {
        NamespaceMode::Container => Pid::Own {},
        NamespaceMode::Node => Pid::Host {},
        NamespaceMode::Pod => Pid::Pod {},
        NamespaceMode::Target => Pid::Container {
            id: own.target_id.clone(),
        },
    };

    Ok(Namespaces {
        network: (!host_network).then(|| text(&pins.network())),
        ipc: (pod.ipc() != NamespaceMode::Node).then(|| text(&pins.ipc())),
        // A pod in the host's network has the host's name.
        uts: (!host_network).then(|| text(&pins.uts())),
        pid,
    })
}

/// The hostname of the pod; by default that of the host.
fn host_name(sandbox: &PodSandboxConfig) -> String {
    match sandbox.hostname.as_str() {
        "" => rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        own => own.to_owned(),
    }
}

fn process(
    from: &SpecInputs<'_>,
    security: &LinuxContainerSecurityContext,
) -> Result<Process, Error> {
    let user = users::resolve(from.rootfs, security, &from.image.user)?;
    let (ambient, permitted) = (
        capabilities::ambient(security)?,
        capabilities::permitted(security)?,
    );

    let resources = from
        .config
        .linux
        .as_ref()
        .and_then(|linux| linux.resources.as_ref());

    let cwd = [
        from.config.working_dir.as_str(),
        &from.image.working_dir,
        "/",
    ];

    Ok(Process {
        args: environment::command(from.config, from.image)?,
        env: environment::variables(from.config, from.image, &user, &host_name(from.sandbox)),
        cwd: cwd
            .iter()
            .find(|cwd| !cwd.is_empty())
            .copied()
            .unwrap_or("/")
            .to_owned(),
        uid: user.uid,
        gid: user.gid,
        groups: user.groups,
        capabilities: coracle_supervisor::protocol::Capabilities {
            bounding: permitted | ambient,
            permitted: permitted | ambient,
            inheritable: ambient,
            ambient,
        },
        no_new_privileges: security.no_new_privs,
        seccomp: seccomp::filter(security, permitted)?,
        // Never inherited: the supervisor's own score protects it from the OOM killer.
        oom_score_adj: Some(resources.map_or(0, |resources| {
            i32::try_from(resources.oom_score_adj).unwrap_or(0)
        })),
        limits: from.open_files.map(open_files_limit).into_iter().collect(),
        terminal: from.config.tty,
    })
}

fn open_files_limit(limit: OpenFiles) -> ResourceLimit {
    ResourceLimit {
        resource: libc::RLIMIT_NOFILE,
        soft: limit.soft,
        hard: limit.hard,
    }
}

/// The propagation mode of a mount.
fn propagation(mount: &coracle_cri::v1::Mount) -> Propagation {
    use coracle_cri::v1::MountPropagation::{
        PropagationBidirectional, PropagationHostToContainer, PropagationPrivate,
    };
    match mount.propagation() {
        PropagationPrivate => Propagation::Private {},
        PropagationHostToContainer => Propagation::Slave {},
        PropagationBidirectional => Propagation::Shared {},
    }
}
