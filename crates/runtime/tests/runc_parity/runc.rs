//! Runs an OCI bundle with `runc`, configured as containerd would for the same settings.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

/// The default capabilities.
pub(crate) const USUAL: [&str; 14] = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FSETID",
    "FOWNER",
    "MKNOD",
    "NET_RAW",
    "SETGID",
    "SETUID",
    "SETFCAP",
    "SETPCAP",
    "NET_BIND_SERVICE",
    "SYS_CHROOT",
    "KILL",
    "AUDIT_WRITE",
];

/// Runs a bundle and returns the lines that it prints.
pub(crate) fn run(folder: &Path, name: &str, config: &Value) -> Vec<String> {
    let bundle = folder.join("bundles").join(name);
    fs::write(bundle.join("config.json"), config.to_string()).unwrap();
    let output = Command::new("runc")
        .arg("--root")
        .arg(folder.join("runc"))
        .args(["run", "--bundle"])
        .arg(&bundle)
        .arg(format!("coracle-oracle-{}-{name}", std::process::id()))
        .output()
        .expect("the package runc is installed");

    assert!(
        output.status.success(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );

    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

/// The OCI config of a container with defaults: a pod's files, the usual mounts, devices, masks and
/// capabilities.
pub(crate) fn plain(folder: &Path, name: &str, script: &str, env: &[(String, String)]) -> Value {
    let bundle = folder.join("bundles").join(name);
    crate::common::unpack_busybox(&bundle.join("rootfs"));

    for file in ["hostname", "hosts", "resolv.conf"] {
        fs::write(bundle.join(file), "").unwrap();
    }

    let mut variables: Vec<String> = vec![
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        format!("HOSTNAME={name}"),
        "HOME=/root".to_owned(),
    ];
    variables.extend(env.iter().map(|(key, value)| format!("{key}={value}")));

    let mut config = json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": 0, "gid": 0, "additionalGids": [0] },
            "args": ["sh", "-c", script], "env": variables, "cwd": "/", "oomScoreAdj": 0,
        },
        "root": { "path": "rootfs", "readonly": false },
        "mounts": mounts(&bundle),
        "linux": {
            "namespaces": [{ "type": "pid" }, { "type": "ipc" }, { "type": "mount" }],
            "maskedPaths": crate::MASKED, "readonlyPaths": crate::READONLY,
            "resources": { "devices": rules(), "pids": { "limit": 100 } },
            // Only the presence of a filter is compared here; its system calls are tested in
            // `cri_suite`.
            "seccomp": {
                "defaultAction": "SCMP_ACT_ALLOW",
                "syscalls": [{ "names": ["keyctl"], "action": "SCMP_ACT_ERRNO" }],
            },
        },
    });
    set_capabilities(&mut config, &USUAL);

    config
}

/// The device rules: deny all but the console; runc itself adds the usual devices.
fn rules() -> Vec<Value> {
    vec![
        json!({ "allow": false, "access": "rwm" }),
        json!({ "allow": true, "type": "c", "major": 5, "minor": 1, "access": "rwm" }),
    ]
}

/// Sets the capabilities of a container.
pub(crate) fn set_capabilities(config: &mut Value, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| format!("CAP_{name}")).collect();
    config["process"]["capabilities"] =
        json!({ "bounding": names, "permitted": names, "effective": names });
}

fn mounts(bundle: &Path) -> Vec<Value> {
    let mount = |target: &str, kind: &str, options: &[&str]| json!({ "destination": target, "type": kind, "source": kind, "options": options });
    let mut mounts = vec![
        mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount(
            "/dev",
            "tmpfs",
            &["nosuid", "strictatime", "mode=755", "size=65536k"],
        ),
        mount(
            "/dev/pts",
            "devpts",
            &[
                "nosuid",
                "noexec",
                "newinstance",
                "ptmxmode=0666",
                "mode=0620",
                "gid=5",
            ],
        ),
        mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
        mount("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        mount(
            "/dev/shm",
            "tmpfs",
            &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
        ),
        mount(
            "/sys/fs/cgroup",
            "cgroup",
            &["nosuid", "noexec", "nodev", "ro"],
        ),
    ];

    mounts.extend(["hostname", "hosts", "resolv.conf"].map(|file| {
        let source = bundle.join(file);
        json!({ "destination": format!("/etc/{file}"), "type": "bind", "source": source, "options": ["bind", "rprivate", "rw"] })
    }));

    mounts
}

/// Adds an option to the mount at a path.
pub(crate) fn add_option(config: &mut Value, target: &str, option: &str) {
    let options = options_at(config, target);
    options.retain(|known| known != "ro" && known != "rw");
    options.push(option.into());
}

fn options_at<'a>(config: &'a mut Value, target: &str) -> &'a mut Vec<Value> {
    let mounts = config["mounts"].as_array_mut().unwrap();
    let mount = mounts
        .iter_mut()
        .find(|mount| mount["destination"] == target)
        .unwrap();
    mount["options"].as_array_mut().unwrap()
}
