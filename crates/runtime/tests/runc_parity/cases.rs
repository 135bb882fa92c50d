//! The test cases: container settings as CRI config for our runtime and as OCI config for runc.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use coracle_cri::v1::*;
use rustix::mount::{MountFlags, MountPropagationFlags};
use serde_json::{Value, json};

use crate::runc::{USUAL, add_option, set_capabilities};

/// One container, configured for both runtimes.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) configure: Configure,
}

type Configure = Box<dyn Fn(&mut PodSandboxConfig, &mut ContainerConfig, &mut Value) + Send + Sync>;

pub(crate) fn all(folder: &Path) -> Vec<Case> {
    let volumes = folder.join("volumes");
    let case = |name, configure: Configure| Case { name, configure };
    vec![
        case("plain", Box::new(|_, _, _| ())),
        case(
            "confined",
            Box::new(|_, config, theirs| confined(config, theirs)),
        ),
        case("own-network", Box::new(own_network)),
        case(
            "privileged",
            Box::new(|_, config, theirs| privileged(config, theirs)),
        ),
        case("hosts", Box::new(hosts)),
        case(
            "shared-pids",
            Box::new(|pod, config, _| shared_pids(pod, config)),
        ),
        case(
            "capabilities",
            Box::new(|_, config, theirs| capabilities(config, theirs)),
        ),
        case(
            "no-capabilities",
            Box::new(|_, config, theirs| no_capabilities(config, theirs)),
        ),
        case(
            "unconfined",
            Box::new(|_, config, theirs| unconfined(config, theirs)),
        ),
        case(
            "volumes",
            Box::new(move |_, config, theirs| mounts(&volumes, config, theirs)),
        ),
        case(
            "groups",
            Box::new(|_, config, theirs| groups(config, theirs)),
        ),
        case(
            "devices",
            Box::new(|_, config, theirs| devices(config, theirs)),
        ),
        case("sysctls", Box::new(sysctls)),
        case(
            "limits",
            Box::new(|_, config, theirs| limits(config, theirs)),
        ),
    ]
}

fn security(config: &mut ContainerConfig) -> &mut LinuxContainerSecurityContext {
    config
        .linux
        .get_or_insert_default()
        .security_context
        .get_or_insert_default()
}

fn options(pod: &mut PodSandboxConfig) -> &mut NamespaceOption {
    let security = pod
        .linux
        .get_or_insert_default()
        .security_context
        .get_or_insert_default();
    security.namespace_options.get_or_insert_default()
}

/// A hardened container: another user, a read-only root, no new privileges.
fn confined(config: &mut ContainerConfig, theirs: &mut Value) {
    config.working_dir = "/tmp".to_owned();
    let security = security(config);
    security.readonly_rootfs = true;
    security.no_new_privs = true;
    security.run_as_username = "web".to_owned();
    security.capabilities = Some(Capability {
        drop_capabilities: vec!["NET_RAW".to_owned()],
        ..Default::default()
    });

    theirs["root"]["readonly"] = true.into();
    theirs["process"]["noNewPrivileges"] = true.into();
    theirs["process"]["cwd"] = "/tmp".into();

    theirs["process"]["user"] = json!({ "uid": 33, "gid": 34, "additionalGids": [34, 50] });
    theirs["process"]["env"][2] = "HOME=/srv".into();
    set_capabilities(
        theirs,
        &USUAL
            .into_iter()
            .filter(|name| *name != "NET_RAW")
            .collect::<Vec<_>>(),
    );

    for file in ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"] {
        add_option(theirs, file, "ro");
    }
}

fn own_network(pod: &mut PodSandboxConfig, config: &mut ContainerConfig, theirs: &mut Value) {
    options(pod).set_network(NamespaceMode::Pod);
    security(config)
        .namespace_options
        .get_or_insert_default()
        .set_network(NamespaceMode::Pod);
    theirs["hostname"] = pod.hostname.clone().into();
    let namespaces = theirs["linux"]["namespaces"].as_array_mut().unwrap();
    namespaces.extend([json!({ "type": "network" }), json!({ "type": "uts" })]);
}

fn privileged(config: &mut ContainerConfig, theirs: &mut Value) {
    security(config).privileged = true;
    let all: Vec<&str> = ALL
        .into_iter()
        .enumerate()
        .filter(|(bit, _)| has(*bit))
        .map(|(_, name)| name)
        .collect();
    set_capabilities(theirs, &all);

    let linux = theirs["linux"].as_object_mut().unwrap();
    for key in ["seccomp", "maskedPaths", "readonlyPaths"] {
        linux.remove(key);
    }

    linux["resources"]["devices"] = json!([{ "allow": true, "access": "rwm" }]);

    let nodes: Vec<Value> = host_devices(Path::new("/dev"))
        .iter()
        .map(|path| device(path, path))
        .collect();
    theirs["linux"]["devices"] = nodes.into();

    for target in ["/sys", "/sys/fs/cgroup"] {
        add_option(theirs, target, "rw");
    }
}

/// Whether this process has a capability, and can grant it.
fn has(bit: usize) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let set = status
        .lines()
        .find_map(|line| line.strip_prefix("CapPrm:"))
        .unwrap();
    u64::from_str_radix(set.trim(), 16).unwrap() & (1 << bit) != 0
}

/// The host's processes, its queues and its memory.
fn hosts(pod: &mut PodSandboxConfig, config: &mut ContainerConfig, theirs: &mut Value) {
    let own = security(config).namespace_options.get_or_insert_default();
    for options in [options(pod), own] {
        options.set_pid(NamespaceMode::Node);
        options.set_ipc(NamespaceMode::Node);
    }

    theirs["linux"]["namespaces"] = json!([{ "type": "mount" }]);
    let mounts = theirs["mounts"].as_array_mut().unwrap();
    let shm = mounts
        .iter_mut()
        .find(|mount| mount["destination"] == "/dev/shm")
        .unwrap();
    *shm = json!({ "destination": "/dev/shm", "type": "bind", "source": "/dev/shm", "options": ["bind", "rprivate"] });
}

/// A PID namespace that all containers of the pod are in.
fn shared_pids(pod: &mut PodSandboxConfig, config: &mut ContainerConfig) {
    let own = security(config).namespace_options.get_or_insert_default();
    for options in [options(pod), own] {
        options.set_pid(NamespaceMode::Pod);
    }
}

fn capabilities(config: &mut ContainerConfig, theirs: &mut Value) {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    security(config).capabilities = Some(Capability {
        add_capabilities: texts(&["NET_ADMIN", "SYS_PTRACE"]),
        drop_capabilities: texts(&["CHOWN", "KILL"]),
        ..Default::default()
    });

    let kept = USUAL
        .into_iter()
        .filter(|name| !["CHOWN", "KILL"].contains(name));
    set_capabilities(
        theirs,
        &kept.chain(["NET_ADMIN", "SYS_PTRACE"]).collect::<Vec<_>>(),
    );
}

fn no_capabilities(config: &mut ContainerConfig, theirs: &mut Value) {
    security(config).capabilities = Some(Capability {
        drop_capabilities: vec!["ALL".to_owned()],
        ..Default::default()
    });
    set_capabilities(theirs, &[]);
}

fn unconfined(config: &mut ContainerConfig, theirs: &mut Value) {
    security(config).seccomp = Some(SecurityProfile {
        profile_type: security_profile::ProfileType::Unconfined.into(),
        ..Default::default()
    });
    theirs["linux"].as_object_mut().unwrap().remove("seccomp");
}

/// Folders of the host, read-only or not, with what is mounted in them, and seen in one direction
/// or both.
fn mounts(folder: &Path, config: &mut ContainerConfig, theirs: &mut Value) {
    let source = |name: &str| -> PathBuf {
        let source = folder.join(name);
        fs::create_dir_all(&source).unwrap();

        // A mount of its own that others may follow, with another one in it.
        rustix::mount::mount_bind(&source, &source).unwrap();
        rustix::mount::mount_change(&source, MountPropagationFlags::SHARED).unwrap();

        fs::create_dir_all(source.join("inner")).unwrap();
        rustix::mount::mount(
            "inner",
            source.join("inner"),
            "tmpfs",
            MountFlags::empty(),
            None,
        )
        .unwrap();

        fs::write(source.join(name), "").unwrap();

        source
    };

    use MountPropagation::{
        PropagationBidirectional, PropagationHostToContainer, PropagationPrivate,
    };

    let volumes = [
        ("written", false, PropagationPrivate),
        ("read", true, PropagationPrivate),
        ("follows", false, PropagationHostToContainer),
        ("shared", false, PropagationBidirectional),
    ];

    for (name, readonly, propagation) in volumes {
        let (host, target) = (source(name), format!("/data/{name}"));
        config.mounts.push(Mount {
            container_path: target.clone(),
            host_path: host.to_string_lossy().into_owned(),
            readonly,
            propagation: propagation.into(),
            ..Default::default()
        });

        let mode = match propagation {
            PropagationPrivate => "rprivate",
            PropagationHostToContainer => "rslave",
            PropagationBidirectional => "rshared",
        };
        let options = ["rbind", mode, if readonly { "ro" } else { "rw" }];

        let mounts = theirs["mounts"].as_array_mut().unwrap();
        mounts.push(
            json!({ "destination": target, "type": "bind", "source": host, "options": options }),
        );
    }

    theirs["linux"]["rootfsPropagation"] = "rshared".into();
}

fn groups(config: &mut ContainerConfig, theirs: &mut Value) {
    let security = security(config);
    security.run_as_user = Some(Int64Value { value: 33 });
    security.run_as_group = Some(Int64Value { value: 1000 });
    security.supplemental_groups = vec![2000, 34];
    security.set_supplemental_groups_policy(SupplementalGroupsPolicy::Strict);
    theirs["process"]["user"] =
        json!({ "uid": 33, "gid": 1000, "additionalGids": [1000, 2000, 34] });
    theirs["process"]["env"][2] = "HOME=/srv".into();
}

fn devices(config: &mut ContainerConfig, theirs: &mut Value) {
    config.devices = vec![Device {
        container_path: "/dev/extra".to_owned(),
        host_path: "/dev/zero".to_owned(),
        permissions: "r".to_owned(),
    }];
    theirs["linux"]["devices"] = json!([device(Path::new("/dev/zero"), Path::new("/dev/extra"))]);
    let rules = theirs["linux"]["resources"]["devices"]
        .as_array_mut()
        .unwrap();
    rules.push(json!({ "allow": true, "type": "c", "major": 1, "minor": 5, "access": "r" }));
}

fn sysctls(pod: &mut PodSandboxConfig, config: &mut ContainerConfig, theirs: &mut Value) {
    own_network(pod, config, theirs);
    let wanted = [
        ("kernel.msgmax", "65536"),
        ("kernel.shm_rmid_forced", "1"),
        ("net.ipv4.ip_unprivileged_port_start", "77"),
        ("net.ipv4.tcp_syncookies", "0"),
    ];
    let sysctls = wanted.map(|(name, value)| (name.to_owned(), value.to_owned()));
    pod.linux.as_mut().unwrap().sysctls = sysctls.clone().into();
    theirs["linux"]["sysctl"] = json!(std::collections::BTreeMap::from(sysctls));
}

fn limits(config: &mut ContainerConfig, theirs: &mut Value) {
    let resources = config
        .linux
        .get_or_insert_default()
        .resources
        .get_or_insert_default();
    resources.memory_limit_in_bytes = 64 << 20;

    resources.memory_swap_limit_in_bytes = 64 << 20;
    resources.cpu_shares = 256;
    (resources.cpu_period, resources.cpu_quota) = (100_000, 50_000);
    resources.cpuset_cpus = "0".to_owned();
    resources.oom_score_adj = 500;
    theirs["process"]["oomScoreAdj"] = 500.into();
    let limits = &mut theirs["linux"]["resources"];
    limits["memory"] = json!({ "limit": 64 << 20, "swap": 64 << 20 });
    limits["cpu"] = json!({ "shares": 256, "period": 100_000, "quota": 50_000, "cpus": "0" });
}

/// A device of the host, as a bundle says it.
fn device(source: &Path, target: &Path) -> Value {
    let about = fs::metadata(source).unwrap();
    let kind = if about.file_type().is_block_device() {
        "b"
    } else {
        "c"
    };
    json!({
        "path": target, "type": kind,
        "major": rustix::fs::major(about.rdev()), "minor": rustix::fs::minor(about.rdev()),
        "fileMode": about.mode() & 0o777, "uid": about.uid(), "gid": about.gid(),
    })
}

/// All devices of the host but terminals, as upstream finds them for privileged containers.
fn host_devices(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let skipped = [
            "pts",
            "shm",
            "fd",
            "mqueue",
            ".lxc",
            ".lxd-mounts",
            ".udev",
            "console",
        ];

        if skipped.iter().any(|skipped| entry.file_name() == *skipped) {
            continue;
        }

        if kind.is_dir() {
            found.extend(host_devices(&path));
        } else if kind.is_char_device() || kind.is_block_device() {
            found.push(path);
        }
    }

    found
}

/// The kernel's capabilities, by their number.
const ALL: [&str; 41] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
];
