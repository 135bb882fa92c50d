//! Pods of a `restricted` namespace that try to harm the node, and which files other users of the
//! host can read.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::machine::Machine;
use crate::pods::{echo, shell};

/// More nested folders than a recursion has stack for, or a path may be long.
const DIG: &str = "dig() { cd -P $1; p=$(yes d/ | head -n 1900 | tr -d '\\n'); i=0; \
                   while [ $i -lt 22 ]; do mkdir -p $p && cd -P $p || exit 1; i=$((i+1)); done; }";

#[test]
fn a_directory_tree_deeper_than_any_stack_is_removed_with_its_pod() {
    let machine = Machine::new();
    machine.keep_data_in_memory();
    machine.import_tools();
    machine.start();
    machine.are_restricted();
    let before = machine.inventory();

    // In a volume, and in the root filesystem of the container.
    let mut pod = restricted(shell(
        "deep",
        &format!("{DIG}; dig /data; dig /tmp; cd /; sleep 100000"),
    ));
    pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);

    pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "data", "mountPath": "/data"}]);
    pod["spec"]["containers"][0]["readinessProbe"] = json!({"exec": {"command": ["sh", "-c", "[ $(readlink /proc/1/cwd) = / ]"]}, "periodSeconds": 1});
    machine.apply(&[pod]);
    machine.kubectl("wait --for=condition=Ready pod/deep --timeout=300s");

    machine.kubectl("delete pod deep --timeout=300s");

    // Before what is left is looked at: a server that has ended has removed nothing.
    machine.apply(&[restricted(shell("beside", "true"))]);
    machine.until("get pod beside -o jsonpath={.status.phase}", |phase| {
        phase == "Succeeded"
    });
    machine.kubectl("delete pod beside --timeout=300s");
    machine.is_again(&before);
    machine.stop_and_reset();
    machine.has_nothing();
}

/// Number of bytes that a pod writes into each file.
const LARGE: u64 = 4 << 20;

/// The runtime keeps its state in memory: what pods can write to is elsewhere.
#[test]
fn a_pod_that_writes_to_its_files_in_etc_takes_no_memory_of_the_runtime() {
    let machine = Machine::new();
    machine.import_tools();
    machine.start();
    let write = "for file in hostname hosts resolv.conf; do head -c 4194304 /dev/zero > /etc/$file || exit 1; done";
    machine.apply(&[shell(
        "writer",
        &format!("{write}; echo done; exec sleep 100000"),
    )]);

    machine.until("logs writer", |log| log == "done\n");

    let size =
        |folder: &Path, name: &str| fs::metadata(folder.join(name)).map_or(0, |known| known.len());
    let written = |pods: &Path| {
        let pods: Vec<PathBuf> = fs::read_dir(pods)
            .unwrap()
            .map(|pod| pod.unwrap().path())
            .collect();
        let named = |name: &str| pods.iter().filter(|pod| size(pod, name) == LARGE).count();
        [named("hostname"), named("resolv.conf")]
    };

    assert_eq!(
        written(&machine.instance().1.join("runtime/sandboxes")),
        [0, 0],
        "in memory"
    );

    assert_eq!(
        written(&machine.data_dir().join("runtime/sandboxes")),
        [1, 1],
        "on the disk"
    );

    machine.stop_and_reset();
    machine.has_nothing();
}

#[test]
fn a_pipe_as_termination_message_does_not_block_the_kubelet() {
    let machine = Machine::new();
    machine.import_tools();
    machine.start();
    machine.are_restricted();
    let before = machine.inventory();

    // More of them than the node has threads.
    let pods: Vec<Value> = (0..4)
        .map(|number| with_pipe(&format!("pipe-{number}")))
        .collect();
    machine.apply(&pods);

    for number in 0..4 {
        let phase = format!("get pod pipe-{number} -o jsonpath={{.status.phase}}");
        machine.until(&phase, |phase| phase == "Failed");
    }

    // The node keeps working, and regular termination messages are still reported.
    let mut speaking = restricted(shell("speaking", "echo its last words > /dev/end; exit 3"));
    speaking["spec"]["containers"][0]["terminationMessagePath"] = json!("/dev/end");
    machine.apply(&[speaking]);
    let message =
        "get pod speaking -o jsonpath={.status.containerStatuses[0].state.terminated.message}";
    machine.until(message, |text| text == "its last words\n");

    machine.kubectl("delete pod --all --timeout=300s");
    machine.is_again(&before);
    machine.stop_and_reset();
    machine.has_nothing();
}

/// A pod with a pipe mounted at its termination message path.
fn with_pipe(name: &str) -> Value {
    let mut pod = restricted(shell(name, "exit 1"));
    let volume = json!({"name": "data", "mountPath": "/data"});
    let mut init = pod["spec"]["containers"][0].clone();
    init["name"] = json!("makes-the-pipe");
    init["command"] = json!(["mkfifo", "/data/pipe"]);

    init["volumeMounts"] = json!([volume]);
    pod["spec"]["initContainers"] = json!([init]);
    pod["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}]);
    pod["spec"]["containers"][0]["terminationMessagePath"] = json!("/dev/end");
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "data", "mountPath": "/dev/end", "subPath": "pipe"}]);

    pod
}

fn restricted(mut pod: Value) -> Value {
    pod["spec"]["restartPolicy"] = json!("Never");
    pod["spec"]["automountServiceAccountToken"] = json!(false);
    pod["spec"]["securityContext"] = json!({"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}});
    pod["spec"]["containers"][0]["securityContext"] =
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    pod
}

/// What only the administrator may read, as it stands in Secrets and as it is written down
/// elsewhere.
const SECRETS: [&str; 2] = ["the-value-of-a-secret", "PRIVATE KEY"];

#[test]
fn nothing_that_holds_a_secret_is_readable_by_others() {
    let machine = Machine::new();

    // As older versions created it, and as many administrators do.
    fs::create_dir_all(machine.data_dir().join("runtime/containers")).unwrap();
    machine.start();
    machine.kubectl("create secret generic hidden --from-literal=word=the-value-of-a-secret");

    let mut pod = echo("knowing", &[]);
    let word = json!({"secretKeyRef": {"name": "hidden", "key": "word"}});
    pod["spec"]["containers"][0]["env"] = json!([{"name": "WORD", "valueFrom": word}]);
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{"name": "hidden", "mountPath": "/hidden"}]);
    pod["spec"]["volumes"] = json!([{"name": "hidden", "secret": {"secretName": "hidden"}}]);
    machine.apply(&[pod]);
    machine.kubectl("wait --for=condition=Ready pod/knowing --timeout=300s");

    let (data, run) = (machine.data_dir(), machine.instance().1);
    let mut seen = ReadableFiles::default();
    for folder in [&data, &run] {
        seen.inspect(folder);
    }

    assert!(seen.files > 0, "what is no secret is readable");
    assert_eq!(seen.wrong, Vec::<String>::new());

    // Not only by the folders above it.
    let records: Vec<PathBuf> = fs::read_dir(data.join("runtime/containers"))
        .unwrap()
        .map(|entry| entry.unwrap().path().join("record"))
        .collect();
    assert!(!records.is_empty());

    for record in records {
        assert_eq!(
            fs::metadata(&record).unwrap().mode() & 0o777,
            0o600,
            "{}",
            record.display()
        );

        let folder = record.parent().unwrap();
        assert_eq!(
            fs::metadata(folder).unwrap().mode() & 0o777,
            0o700,
            "{}",
            folder.display()
        );
    }

    machine.stop_and_reset();
}

/// What others than root find from a folder on.
#[derive(Default)]
struct ReadableFiles {
    files: usize,
    wrong: Vec<String>,
}

impl ReadableFiles {
    /// The folder may be readable to all: the files in it need modes of their own.
    fn inspect(&mut self, folder: &Path) {
        let mut waiting = vec![folder.to_owned()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let (path, Ok(about)) = (entry.path(), entry.metadata()) else {
                    continue;
                };

                let (kind, others) = (about.file_type(), about.mode() & 0o7);
                if kind.is_dir() && others & 0o1 != 0 {
                    waiting.push(path);
                } else if kind.is_socket() && others & 0o2 != 0 {
                    self.wrong
                        .push(format!("{}: others can connect", path.display()));
                } else if kind.is_file() && others & 0o4 != 0 {
                    self.read(&path);
                }
            }
        }
    }

    fn read(&mut self, path: &Path) {
        self.files += 1;
        let content = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
        let found = SECRETS.iter().filter(|secret| content.contains(*secret));
        self.wrong
            .extend(found.map(|secret| format!("{} says {secret}", path.display())));
    }
}

impl Machine {
    /// What is made and removed by the ten thousand is on no disk: removing a folder may take one a
    /// millisecond.
    fn keep_data_in_memory(&self) {
        let data = self.data_dir();
        fs::create_dir(&data).unwrap();
        self.types(&format!(
            "mount -t tmpfs -o nr_inodes=0,size=50% test {}",
            data.display()
        ));
    }

    fn are_restricted(&self) {
        self.kubectl("label namespace default pod-security.kubernetes.io/enforce=restricted");
    }
}
