//! The lifecycle of a pod on its node, step by step: admission, cgroups and directories, volumes,
//! network, containers, status, cleanup.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::machine::{Machine, eventually};
use crate::pods::{echo, shell};

#[test]
fn each_step_of_a_pods_lifecycle_is_visible_on_its_node() {
    let machine = Machine::new();
    machine.import_tools();
    machine.start();
    machine.kubectl("-n kube-system rollout status daemonset/coracle-dns --timeout=300s");

    let before = machine.inventory();
    fs::write(machine.folder().join("meminfo"), "MemTotal: 4242 kB\n").unwrap();
    machine.apply(&[
        walker(&machine),
        waiting_for_its_image(),
        past_its_deadline(),
        too_large(),
        failing_hook(),
    ]);

    machine.kubectl("wait --for=condition=Ready pod/walker --timeout=300s");
    let uid = machine.kubectl("get pod walker -o jsonpath={.metadata.uid}");
    cgroup_and_folders(&machine, &uid);
    network(&machine);
    environment_and_logs(&machine, &uid);
    events_and_conditions(&machine);
    pods_that_fail_early(&machine);
    machine.kubectl("delete pod --all --timeout=300s");
    machine.is_again(&before);
}

/// Burstable, with a step before the main container, and a file of the machine in the place of one
/// of `/proc`.
fn walker(machine: &Machine) -> Value {
    let mut pod = shell("walker", "cat /shared/word; exec sleep 1000");
    let mounts = json!([{"name": "shared", "mountPath": "/shared"}]);
    let image = pod["spec"]["containers"][0]["image"].clone();
    pod["spec"]["initContainers"] = json!([{
        "name": "first", "image": image, "command": ["sh", "-c", "sleep 1; echo from the first > /shared/word"],
        "volumeMounts": mounts,
    }]);

    pod["spec"]["containers"][0]["volumeMounts"] = mounts;
    let meminfo = json!({"name": "meminfo", "mountPath": "/proc/meminfo"});
    pod["spec"]["containers"][0]["volumeMounts"]
        .as_array_mut()
        .unwrap()
        .push(meminfo);

    pod["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "100m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}});
    pod["spec"]["volumes"] = json!([
        {"name": "shared", "emptyDir": {}},
        {"name": "meminfo", "hostPath": {"path": machine.folder().join("meminfo"), "type": "File"}},
    ]);

    pod["spec"]["enableServiceLinks"] = json!(false);

    pod
}

fn waiting_for_its_image() -> Value {
    let mut pod = echo("imageless", &[]);
    pod["spec"]["containers"][0]["image"] = json!("127.0.0.1:9/absent:1");
    pod
}

fn past_its_deadline() -> Value {
    let mut pod = echo("late", &["sleep", "1000"]);
    pod["spec"]["activeDeadlineSeconds"] = json!(5);
    pod
}

/// Bound by the test: no scheduler would have put it there.
fn too_large() -> Value {
    let mut pod = echo("large", &[]);
    pod["spec"]["nodeName"] = json!("node-1");
    pod["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1000"}});
    pod
}

fn failing_hook() -> Value {
    let mut pod = echo("hooked", &["sleep", "1000"]);
    pod["spec"]["containers"][0]["lifecycle"] =
        json!({"postStart": {"exec": {"command": ["/echo", "exit", "4"]}}});
    pod
}

fn cgroup_and_folders(machine: &Machine, uid: &str) {
    let group = format!("{}/kubepods/burstable/pod{uid}", machine.instance().0);
    let cgroups = machine
        .inventory()
        .into_iter()
        .filter(|line| line.starts_with("cgroup "));
    let own: Vec<String> = cgroups.filter(|line| line.contains(&group)).collect();
    assert!(!own.is_empty(), "no cgroup {group}");

    let folder = kubelet(machine).join("kubelet/pods").join(uid);
    for name in ["", "volumes", "plugins"] {
        let mode = fs::metadata(folder.join(name))
            .unwrap_or_else(|error| panic!("{name:?}: {error}"))
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o750, "{name:?}");
    }

    for name in [
        "containers",
        "etc-hosts",
        "volumes/kubernetes.io~empty-dir/shared",
        "volumes/kubernetes.io~projected",
    ] {
        assert!(folder.join(name).exists(), "{name} is not there");
    }
}

/// An address of the node's range, a way out, neighbours and the machine within reach.
fn network(machine: &Machine) {
    let address = machine.kubectl("get pod walker -o jsonpath={.status.podIP}");
    let range = machine.kubectl("get node node-1 -o jsonpath={.spec.podCIDR}");
    let range: ipnet::IpNet = range.parse().unwrap();
    assert!(
        range.contains(&address.parse::<std::net::IpAddr>().unwrap()),
        "{address} is not of {range}"
    );

    let inside = machine.kubectl("exec walker -c c -- ip address show eth0");
    assert!(inside.contains(&format!("inet {address}/")), "{inside}");

    let routes = machine.kubectl("exec walker -c c -- ip route");
    assert!(routes.contains("default via "), "{routes}");

    let neighbour = machine.kubectl("get pod hooked -o jsonpath={.status.podIP}");
    for whom in [neighbour.as_str(), "192.0.2.2"] {
        machine.kubectl(&format!("exec walker -c c -- ping -c 1 -W 5 {whom}"));
    }

    machine.types(&format!("busybox ping -c 1 -W 5 {address}"));
}

fn environment_and_logs(machine: &Machine, uid: &str) {
    let kubernetes = machine.kubectl("get service kubernetes -o jsonpath={.spec.clusterIP}");
    let environment = machine.kubectl("exec walker -c c -- env");
    for line in [
        format!("KUBERNETES_SERVICE_HOST={kubernetes}"),
        "KUBERNETES_SERVICE_PORT=443".to_owned(),
    ] {
        assert!(
            environment.lines().any(|found| found == line),
            "{line}: {environment}"
        );
    }

    assert_eq!(
        machine.kubectl("exec walker -c c -- cat /proc/meminfo"),
        "MemTotal: 4242 kB\n"
    );

    assert_eq!(machine.kubectl("logs walker -c c"), "from the first\n");

    let logs = kubelet(machine).join("log");
    assert!(
        logs.join(format!("pods/default_walker_{uid}/c/0.log"))
            .exists()
    );

    let id =
        machine.kubectl("get pod walker -o jsonpath={.status.containerStatuses[0].containerID}");
    let id = id.split("//").nth(1).unwrap();
    assert!(
        logs.join(format!("containers/walker_default_c-{id}.log"))
            .exists()
    );

    // What is in the pod speaks to the API with the token that it was given.
    let token = machine
        .kubectl("exec walker -c c -- cat /var/run/secrets/kubernetes.io/serviceaccount/token");
    let ask = format!(
        "curl --silent --insecure --max-time 5 -H 'Authorization: Bearer {token}' https://{kubernetes}/api/v1/namespaces/default/pods"
    );
    let refused = "pods is forbidden: User \\\"system:serviceaccount:default:default\\\" cannot list resource";
    assert!(machine.types(&ask).contains(refused));

    machine
        .kubectl("create rolebinding readers --clusterrole=view --serviceaccount=default:default");
    eventually("the pod lists pods", || {
        let said = machine.types(&ask);
        if said.contains("PodList") {
            Ok(())
        } else {
            Err(said)
        }
    });
}

fn events_and_conditions(machine: &Machine) {
    let template =
        "-o=jsonpath={range .items[*]}{.reason} {.involvedObject.fieldPath}{\"\\n\"}{end}";
    let words = [
        "get",
        "events",
        "--field-selector=involvedObject.name=walker",
        "--sort-by=.metadata.creationTimestamp",
        template,
    ];

    let mut events = Vec::new();
    eventually("all events are there", || {
        let output = machine.try_kubectl(&words);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        events = text.lines().map(str::to_owned).collect();
        if events.len() >= 7 { Ok(()) } else { Err(text) }
    });

    let place = |line: &str| {
        events
            .iter()
            .position(|event| event == line)
            .unwrap_or_else(|| panic!("{line}: {events:#?}"))
    };

    let of_first = |reason: &str| format!("{reason} spec.initContainers{{first}}");
    let of_main = |reason: &str| format!("{reason} spec.containers{{c}}");
    let order = [
        "Scheduled ".to_owned(),
        of_first("Pulled"),
        of_first("Created"),
        of_first("Started"),
        of_main("Pulled"),
        of_main("Created"),
        of_main("Started"),
    ];

    for line in &order {
        place(line);
    }

    assert!(
        place(&of_first("Started")) < place(&of_main("Created")),
        "{events:#?}"
    );

    let conditions = machine
        .kubectl("get pod walker -o jsonpath={.status.conditions[?(@.status=='True')].type}");
    for kind in [
        "PodScheduled",
        "PodReadyToStartContainers",
        "Initialized",
        "ContainersReady",
        "Ready",
    ] {
        assert!(
            conditions.split(' ').any(|found| found == kind),
            "{kind}: {conditions}"
        );
    }
}

fn pods_that_fail_early(machine: &Machine) {
    let status = |pod: &str, place: &str, expected: &str| {
        machine.until(
            &format!("get pod {pod} -o jsonpath={{.status.{place}}}"),
            |found| found.contains(expected),
        );
    };

    // The sandbox is there before the image is.
    status(
        "imageless",
        "conditions[?(@.type=='PodReadyToStartContainers')].status",
        "True",
    );

    status("imageless", "phase", "Pending");
    status("late", "phase", "Failed");
    status("late", "reason", "DeadlineExceeded");
    status(
        "late",
        "message",
        "Pod was active on the node longer than the specified deadline",
    );

    status("large", "phase", "Failed");
    status("large", "reason", "OutOfcpu");
    status(
        "large",
        "message",
        "Pod was rejected: Node didn't have enough resource: cpu",
    );

    machine.until(
        "get events --field-selector=involvedObject.name=hooked -o jsonpath={.items[*].reason}",
        |reasons| reasons.contains("FailedPostStartHook"),
    );

    machine.until(
        "get pod hooked -o jsonpath={.status.containerStatuses[0].restartCount}",
        |restarts| restarts.parse::<u32>().unwrap_or_default() > 0,
    );
}

/// Volumes of ConfigMaps and Secrets follow their objects; what was taken from them at the start
/// does not.
#[test]
fn volumes_follow_their_config_maps_and_secrets() {
    let machine = Machine::new();
    machine.import_tools();
    machine.start();
    machine.kubectl("create configmap settings --from-literal=color=red");
    machine.kubectl("create secret generic keys --from-literal=key=old");

    let mut pod = shell("reader", "exec sleep 1000");
    let container = &mut pod["spec"]["containers"][0];
    container["env"] = json!([{"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "color"}}}]);
    container["volumeMounts"] = json!([
        {"name": "settings", "mountPath": "/settings"},
        {"name": "settings", "mountPath": "/part", "subPath": "color"},
        {"name": "keys", "mountPath": "/keys"},
        {"name": "both", "mountPath": "/both"},
    ]);

    pod["spec"]["volumes"] = json!([
        {"name": "settings", "configMap": {"name": "settings"}},
        {"name": "keys", "secret": {"secretName": "keys"}},
        {"name": "both", "projected": {"sources": [{"configMap": {"name": "settings"}}, {"secret": {"name": "keys"}}]}},
    ]);

    machine.apply(&[pod]);
    machine.kubectl("wait --for=condition=Ready pod/reader --timeout=300s");
    let files = "exec reader -- cat /settings/color /keys/key /both/color /both/key";
    assert_eq!(machine.kubectl(files), "redoldredold");

    machine.apply(&[
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"color": "blue", "more": "1"}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": {"key": "new"}}),
    ]);

    machine.until(files, |found| found == "bluenewbluenew");
    assert_eq!(
        machine.kubectl("exec reader -- cat /settings/more /both/more"),
        "11"
    );

    assert_eq!(
        machine.kubectl("exec reader -- cat /part"),
        "red",
        "a part is what it was"
    );

    let environment = machine.kubectl("exec reader -- env");
    assert!(
        environment.contains("\nCOLOR=red\n"),
        "a variable is what it was: {environment}"
    );

    let id = "get pod reader -o jsonpath={.status.containerStatuses[0].restartCount}";
    assert_eq!(machine.kubectl(id), "0");
}

fn kubelet(machine: &Machine) -> PathBuf {
    machine.data_dir().join("kubelet")
}
