//! What a process sees inside: the same under our runtime and under `runc`, for the same wishes.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Node, script, with_resources, with_security};
use coracle_cri::v1::*;

/// What a process can find out about itself.
const LOOK: &str = "\
    grep -E '^(Cap|NoNewPrivs|Uid|Gid|Groups|Umask|Seccomp)' /proc/self/status; \
    awk '{ for (i = 7; i <= NF; i++) if ($i == \"-\") kind = $(i + 1); print \"mount\", $5, kind, $6 }' \
        /proc/self/mountinfo | grep -v -E 'mount (/|/sys/fs/cgroup.*) ' | sort; \
    ls -l /dev | awk '{ print \"device\", $1, $3, $4, $5, $6, $NF }' | grep -v total | sort; \
    pwd; env | sort; hostname; set -- /proc/[0-9]*; echo $# processes; \
    for kind in cgroup ipc mnt net pid user uts; do \
        [ \"$(readlink /proc/self/ns/$kind)\" = \"$(eval echo \\$host_$kind)\" ] && echo $kind is the hosts || echo $kind is its own; \
    done; \
    for path in /proc/keys /proc/timer_list /sys/firmware; do ls $path/ 2>&1 | head -1; cat $path 2>/dev/null | grep -c .; done; \
    touch /x /proc/sys/kernel/x /sys/x 2>&1 | sort; \
    awk -F: '{ print \"group of\", $2 }' /proc/self/cgroup | sort; ls /sys/fs/cgroup | sort; \
    cd /sys/fs/cgroup; cat memory/memory.limit_in_bytes pids/pids.max cpu/cpu.shares cpu/cpu.cfs_quota_us \
        memory.max pids.max cpu.weight cpu.max 2>/dev/null; echo";

#[tokio::test(flavor = "multi_thread")]
async fn a_process_sees_the_same_under_both() {
    let node = Node::with("oracle", |config| config.pids_limit = Some(100)).await;
    let mut pod = node.pod("pod");
    // In the host's network and with the host's name, so that both begin alike.
    let options = NamespaceOption { network: NamespaceMode::Node.into(), ..common::own_pids() };
    pod.linux.as_mut().unwrap().security_context.as_mut().unwrap().namespace_options = Some(options.clone());
    let sandbox = coracle_cri::Runtime::run_pod_sandbox(&node.runtime, pod.clone(), "").await.unwrap();
    let envs =
        host_namespaces().into_iter().map(|(key, value)| KeyValue { key, value: value.into() }).collect();
    let config = with_security(script("one", LOOK), |security| {
        security.namespace_options = Some(options);
        security.readonly_rootfs = true;
        security.no_new_privs = true;
        security.run_as_username = "web".to_owned();
        security.masked_paths = MASKED.map(str::to_owned).to_vec();
        security.readonly_paths = READONLY.map(str::to_owned).to_vec();
        security.capabilities =
            Some(Capability { drop_capabilities: vec!["NET_RAW".to_owned()], ..Default::default() });
    });
    let config = with_resources(config, |resources| {
        resources.memory_limit_in_bytes = 64 << 20;
        resources.cpu_shares = 256;
        (resources.cpu_period, resources.cpu_quota) = (100_000, 50_000);
    });
    let id = node.run(&sandbox, &pod, ContainerConfig { envs, working_dir: "/tmp".into(), ..config }).await;
    node.ended(&id).await;
    let ours: Vec<String> = node.log("pod", "one").into_iter().map(|(_, _, text)| text).collect();
    let theirs = under_runc(node.path());
    let theirs: Vec<&str> = theirs.lines().collect();
    assert_eq!(ours, theirs);
    node.clear().await;
}

const MASKED: [&str; 4] = ["/proc/keys", "/proc/timer_list", "/proc/no-such", "/sys/firmware"];
const READONLY: [&str; 3] = ["/proc/bus", "/proc/sys", "/proc/sysrq-trigger"];

fn host_namespaces() -> Vec<(String, String)> {
    ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"]
        .map(|kind| {
            let name = fs::read_link(format!("/proc/self/ns/{kind}")).unwrap();
            (format!("host_{kind}"), name.to_string_lossy().into_owned())
        })
        .to_vec()
}

/// Runs the same in a bundle of `runc`.
fn under_runc(folder: &Path) -> String {
    let bundle = folder.join("bundle");
    common::unpack_busybox(&bundle.join("rootfs"));
    for file in ["hostname", "hosts", "resolv.conf"] {
        fs::write(bundle.join(file), "").unwrap();
    }
    fs::write(bundle.join("config.json"), config(&bundle).to_string()).unwrap();
    let output = Command::new("runc")
        .arg("--root")
        .arg(folder.join("runc"))
        .args(["run", "--bundle"])
        .arg(&bundle)
        .arg(format!("coracle-oracle-{}", std::process::id()))
        .output()
        .expect("the package runc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn config(bundle: &Path) -> serde_json::Value {
    let capabilities = [
        "CHOWN",
        "DAC_OVERRIDE",
        "FSETID",
        "FOWNER",
        "MKNOD",
        "SETGID",
        "SETUID",
        "SETFCAP",
        "SETPCAP",
        "NET_BIND_SERVICE",
        "SYS_CHROOT",
        "KILL",
        "AUDIT_WRITE",
    ]
    .map(|name| format!("CAP_{name}"));
    let mut env: Vec<String> =
        vec!["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(), "HOME=/srv".into()];
    env.extend(host_namespaces().into_iter().map(|(key, value)| format!("{key}={value}")));
    let mount = |target: &str, kind: &str, options: &[&str]| serde_json::json!({ "destination": target, "type": kind, "source": kind, "options": options });
    let mut mounts = vec![
        mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
        mount("/dev", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
        mount(
            "/dev/pts",
            "devpts",
            &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"],
        ),
        mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]),
        mount("/dev/mqueue", "mqueue", &["nosuid", "noexec", "nodev"]),
        mount("/dev/shm", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"]),
        mount("/sys/fs/cgroup", "cgroup", &["nosuid", "noexec", "nodev", "ro"]),
    ];
    for file in ["hostname", "hosts", "resolv.conf"] {
        mounts.push(serde_json::json!({
            "destination": format!("/etc/{file}"), "type": "bind",
            "source": bundle.join(file).to_string_lossy(), "options": ["bind", "ro"],
        }));
    }
    serde_json::json!({
        "ociVersion": "1.0.2",
        "process": {
            "user": { "uid": 33, "gid": 34, "additionalGids": [34, 50] },
            "args": ["sh", "-c", LOOK], "env": env, "cwd": "/tmp", "noNewPrivileges": true,
            "capabilities": { "bounding": capabilities, "permitted": capabilities, "effective": capabilities },
        },
        "root": { "path": "rootfs", "readonly": true },
        "mounts": mounts,
        "linux": {
            "namespaces": [{ "type": "pid" }, { "type": "ipc" }, { "type": "mount" }],
            "maskedPaths": MASKED, "readonlyPaths": READONLY,
            "resources": {
                "memory": { "limit": 64 << 20 }, "pids": { "limit": 100 },
                "cpu": { "shares": 256, "period": 100_000, "quota": 50_000 },
            },
            // Which calls it refuses is a matter of the tests beside it: that there is one filter is seen here.
            "seccomp": {
                "defaultAction": "SCMP_ACT_ALLOW",
                "syscalls": [{ "names": ["keyctl"], "action": "SCMP_ACT_ERRNO" }],
            },
        },
    })
}
