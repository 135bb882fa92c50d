//! CNI plugins: Debian's, and scripts, in network namespaces of the tests.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

#[path = "../../netlink/tests/namespaces/mod.rs"]
mod namespaces;
#[path = "../../testkit/src/program.rs"]
mod program;

use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use coracle_podnet::{CniConfig, CniNetwork, Pod, PodNetwork, PortMapping, Protocol};
use namespaces::Namespace;
use serde_json::json;

/// Directory of Debian's package `containernetworking-plugins`.
const PLUGINS: &str = "/usr/lib/cni";

/// Timeout that even a busy machine does not reach.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn debians_plugins_connect_pods() {
    let setup = Setup::new();
    setup.configure(&json!({
        "cniVersion": "1.0.0",
        "name": "test",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": setup.path("ipam"),
                    "ranges": [[{"subnet": "10.90.0.0/24"}], [{"subnet": "fd90::/64"}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
        ],
    }));

    assert!(
        Path::new(PLUGINS).join("bridge").exists(),
        "containernetworking-plugins; see scripts/test-prereqs.sh"
    );

    on_a_node(&setup, vec![PLUGINS.into()], async |node, network| {
        network.ready().unwrap();
        let (one, other) = (Namespace::new(), Namespace::new());
        let first = network.attach(&pod(1, &one)).await.unwrap();
        let second = network.attach(&pod(2, &other)).await.unwrap();
        assert_eq!(first.addresses[0].to_string(), "10.90.0.2");
        assert_eq!(first.addresses[1].to_string(), "fd90::2");

        let listener = one.inside(|| TcpListener::bind("10.90.0.2:0").unwrap());
        connect(&other, listener.local_addr().unwrap());
        assert_eq!(second.addresses.len(), 2);

        // The configuration was replaced meanwhile: that of the connect is used.
        setup.configure(&json!({"name": "other", "type": "none"}));
        network.detach(&pod(1, &one)).await.unwrap();
        network.detach(&pod(1, &one)).await.unwrap();

        // A pod without a namespace is disconnected as well.
        let mut gone = pod(2, &other);
        gone.netns = "/nowhere".into();
        network.detach(&gone).await.unwrap();
        assert!(!one.run("ip", "-o link").contains("eth0"));

        let left = fs::read_dir(setup.path("ipam/test")).unwrap();
        let left: Vec<_> = left
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(
            !left
                .iter()
                .any(|name| name.starts_with("10.") || name.starts_with("fd")),
            "{left:?}"
        );

        assert_eq!(
            fs::read_dir(setup.path("cache/results")).unwrap().count(),
            0
        );

        assert!(!node.run("ip", "-o link show master cni0").contains("10.90"));
    });
}

#[test]
fn a_script_is_a_plugin_and_gets_what_it_declares() {
    let setup = Setup::new();
    setup.script("first", r#"[ "$CNI_COMMAND" = ADD ] && echo '{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.1.1/24"}]}'; exit 0"#);
    setup.script("second", r#"[ "$CNI_COMMAND" = ADD ] && echo '{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.1.9/24"}]}'; exit 0"#);
    setup.configure(&json!({
        "cniVersion": "0.4.0", "name": "scripts",
        "plugins": [{"type": "first"}, {"type": "second", "capabilities": {"portMappings": true, "bandwidth": true}}],
    }));

    on_a_node(
        &setup,
        vec![setup.path("nowhere"), setup.path("bin")],
        async |_, network| {
            let namespace = Namespace::new();
            let mut pod = pod(1, &namespace);
            pod.ports = vec![PortMapping {
                protocol: Protocol::Udp,
                container_port: 53,
                host_port: 5353,
                host_ip: None,
            }];

            pod.annotations =
                BTreeMap::from([("kubernetes.io/egress-bandwidth".to_owned(), "1M".to_owned())]);
            assert_eq!(
                network.attach(&pod).await.unwrap().addresses[0].to_string(),
                "10.1.1.9"
            );

            network.detach(&pod).await.unwrap();
            let log = fs::read_to_string(setup.path("log")).unwrap();
            let calls: Vec<&str> = log
                .lines()
                .filter_map(|line| line.strip_prefix("call "))
                .collect();

            let id = &pod.sandbox;
            let expected = ["ADD first", "ADD second", "DEL second", "DEL first"]
                .map(|call| format!("{call} {id} eth0"));
            assert_eq!(calls, expected);
            assert!(log.contains(&format!(
            "args IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=pod-1;K8S_POD_INFRA_CONTAINER_ID={id};K8S_POD_UID=uid"
        )));

            let inputs: Vec<serde_json::Value> = log
                .lines()
                .filter_map(|line| serde_json::from_str(line.strip_prefix("input ")?).ok())
                .collect();
            assert_eq!(inputs[0].get("prevResult"), None);

            assert_eq!(inputs[0].get("runtimeConfig"), None);
            assert_eq!(inputs[1]["prevResult"]["ips"][0]["address"], "10.1.1.1/24");
            assert_eq!(
                inputs[1]["runtimeConfig"]["portMappings"][0],
                json!({"hostPort": 5353, "containerPort": 53, "protocol": "udp"})
            );

            assert_eq!(
                inputs[1]["runtimeConfig"]["bandwidth"]["egressRate"],
                1_000_000
            );

            assert_eq!(inputs[2]["prevResult"]["ips"][0]["address"], "10.1.1.9/24");
        },
    );
}

#[test]
fn a_plugins_error_is_reported_and_undone() {
    let setup = Setup::new();
    setup.script(
        "good",
        r#"[ "$CNI_COMMAND" = ADD ] && echo '{"ips":[{"address":"10.1.1.1/24"}]}'; exit 0"#,
    );

    let list = |second: &str| json!({"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "good"}, {"type": second}]});
    on_a_node(&setup, vec![setup.path("bin")], async |_, network| {
        let namespace = Namespace::new();
        let not_ready = network.ready().unwrap_err();
        assert_eq!(not_ready.reason, "NetworkPluginNotReady");
        assert!(
            not_ready.message.contains("cni plugin not initialized"),
            "{}",
            not_ready.message
        );

        let fails = async |name: &str, script: &str, expected: &str| {
            setup.script(name, script);
            setup.configure(&list(name));
            let error = network.attach(&pod(1, &namespace)).await.unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        };
        fails("failing", r#"[ "$CNI_COMMAND" = ADD ] && echo '{"code": 11, "msg": "later", "details": "full"}' && exit 1; exit 0"#, "later; full").await;

        assert!(
            !setup
                .path("cache/results")
                .join(format!("n-{}-eth0", id(1)))
                .exists(),
            "undone"
        );

        fails(
            "nonsense",
            r#"[ "$CNI_COMMAND" = ADD ] && echo nonsense; exit 0"#,
            "invalid result",
        )
        .await;

        fails(
            "silent",
            r#"[ "$CNI_COMMAND" = ADD ] && echo oops >&2 && exit 1; exit 0"#,
            "oops",
        )
        .await;

        setup.configure(&list("absent"));
        let error = network.attach(&pod(1, &namespace)).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("failed to find plugin \"absent\""),
            "{error}"
        );

        // What cannot be undone now stays recorded, and is undone later.
        setup.script("stuck", "exit 1");
        setup.configure(&list("stuck"));
        network.attach(&pod(2, &namespace)).await.unwrap_err();
        network.detach(&pod(2, &namespace)).await.unwrap_err();

        setup.script("stuck", "exit 0");
        network.detach(&pod(2, &namespace)).await.unwrap();
        assert!(
            !setup
                .path("cache/results")
                .join(format!("n-{}-eth0", id(2)))
                .exists()
        );
    });
}

#[test]
fn a_plugin_that_fails_to_delete_does_not_stop_the_others() {
    let setup = Setup::new();
    let flag = setup.path("stuck");
    setup.script(
        "stuck",
        &format!(
            r#"[ -e {} ] && echo '{{"code": 11, "msg": "stuck"}}' && exit 1; exit 0"#,
            flag.display()
        ),
    );

    setup.script("last", "exit 0");
    let bridge = bridge(&setup);
    setup.configure(&json!({
        "cniVersion": "1.0.0", "name": "test", "plugins": [bridge, {"type": "stuck"}, {"type": "last"}],
    }));

    on_a_node(
        &setup,
        vec![setup.path("bin"), PLUGINS.into()],
        async |node, network| {
            let namespace = Namespace::new();
            let pod = pod(1, &namespace);
            fs::write(&flag, "").unwrap();

            let error = network.attach(&pod).await.unwrap_err();
            assert!(error.to_string().contains("stuck"), "{error}");
            assert_eq!(setup.reserved(), [""; 0], "the address is released");

            assert_eq!(
                node.run("ip", "-o link show master cni0"),
                "",
                "the interface is removed"
            );

            fs::remove_file(setup.path("log")).unwrap();
            let error = network.detach(&pod).await.unwrap_err();
            assert!(error.to_string().contains("stuck"), "{error}");
            assert_eq!(
                setup.calls(),
                ["DEL last", "DEL stuck"],
                "in reverse, and all of them"
            );

            fs::remove_file(&flag).unwrap();
            network.detach(&pod).await.unwrap();
            assert_eq!(
                fs::read_dir(setup.path("cache/results")).unwrap().count(),
                0
            );
        },
    );
}

#[test]
fn a_missing_plugin_is_detected_before_any_plugin_runs() {
    let setup = Setup::new();
    setup.script("good", "exit 0");

    setup.configure(&json!({"name": "n", "plugins": [{"type": "good"}, {"type": "absent"}]}));
    on_a_node(&setup, vec![setup.path("bin")], async |_, network| {
        let namespace = Namespace::new();
        let error = network.attach(&pod(1, &namespace)).await.unwrap_err();
        assert!(
            error
                .to_string()
                .contains("failed to find plugin \"absent\""),
            "{error}"
        );

        assert_eq!(setup.calls(), [""; 0]);
        assert!(!setup.path("cache/results").exists());

        network.detach(&pod(1, &namespace)).await.unwrap();
    });
}

#[test]
fn an_uninstalled_plugin_is_skipped_once_the_configuration_is_fixed() {
    let setup = Setup::new();
    setup.script("goes", r#"[ "$CNI_COMMAND" = ADD ] && echo '{"cniVersion":"1.0.0","ips":[{"address":"10.90.0.2/24"}]}'; exit 0"#);

    setup.script("comes", "exit 0");
    let network_of = |name: &str, plugins: serde_json::Value| {
        let list = json!({"cniVersion": "1.0.0", "name": name, "plugins": plugins});
        fs::write(
            setup.path(&format!("net.d/{name}.conflist")),
            list.to_string(),
        )
        .unwrap();
    };

    let (then, mut now) = (bridge(&setup), bridge(&setup));
    network_of("test", json!([then, {"type": "goes"}]));
    on_a_node(
        &setup,
        vec![setup.path("bin"), PLUGINS.into()],
        async |_, network| {
            let (one, other) = (Namespace::new(), Namespace::new());
            network.attach(&pod(1, &one)).await.unwrap();
            network.attach(&pod(2, &other)).await.unwrap();
            assert_eq!(setup.reserved().len(), 2);

            fs::remove_file(setup.path("bin/goes")).unwrap();

            // Another network is now the first of the node; it has nothing to do with this pod.
            network_of("another", json!([{"type": "comes"}]));
            fs::remove_file(setup.path("log")).unwrap();
            let error = network.detach(&pod(1, &one)).await.unwrap_err().to_string();

            let expected = [
                "failed to find plugin \"goes\"",
                "network \"test\"",
                "install it, or fix",
            ];
            assert!(expected.iter().all(|part| error.contains(part)), "{error}");

            assert!(
                !setup.path("log").exists(),
                "nothing of another network is run"
            );

            assert_eq!(setup.reserved(), ["10.90.0.3"]);

            // Existing plugins are run with the configuration of the connect: the current one has
            // another IPAM directory.
            now["ipam"]["dataDir"] = json!(setup.path("elsewhere"));
            network_of("test", json!([now, {"type": "comes"}]));
            network.detach(&pod(1, &one)).await.unwrap();
            network.detach(&pod(2, &other)).await.unwrap();
            assert_eq!(setup.calls(), ["DEL comes", "DEL comes"]);
            assert_eq!(setup.reserved(), [""; 0]);

            let log = fs::read_to_string(setup.path("log")).unwrap();
            assert!(
                log.contains("10.90.0.2/24"),
                "with the result of then: {log}"
            );

            assert_eq!(
                fs::read_dir(setup.path("cache/results")).unwrap().count(),
                0
            );
        },
    );
}

#[test]
fn a_slow_plugin_times_out() {
    let setup = Setup::new();
    setup.script(
        "slow",
        r#"[ "$CNI_COMMAND" = ADD ] && exec sleep 100000; exit 0"#,
    );

    setup.configure(&json!({"cniVersion": "1.0.0", "name": "n", "plugins": [{"type": "slow"}]}));
    let short = Duration::from_secs(1);
    on_a_node_with_timeout(
        &setup,
        vec![setup.path("bin")],
        short,
        async |_, network| {
            let error = network
                .attach(&pod(1, &Namespace::new()))
                .await
                .unwrap_err();
            assert!(error.to_string().contains("timed out"), "{error}");
        },
    );
}

/// Debian's bridge plugin with one range.
fn bridge(setup: &Setup) -> serde_json::Value {
    let ipam = json!({
        "type": "host-local", "dataDir": setup.path("ipam"), "ranges": [[{"subnet": "10.90.0.0/24"}]],
    });
    json!({"type": "bridge", "bridge": "cni0", "isGateway": true, "ipam": ipam})
}

struct Setup(tempfile::TempDir);

impl Setup {
    fn new() -> Self {
        let setup = Self(tempfile::tempdir().unwrap());
        for folder in ["net.d", "bin"] {
            fs::create_dir(setup.path(folder)).unwrap();
        }
        setup
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The calls of script plugins, in order.
    fn calls(&self) -> Vec<String> {
        let log = fs::read_to_string(self.path("log")).unwrap_or_default();
        let calls = log.lines().filter_map(|line| line.strip_prefix("call "));
        calls
            .map(|call| call.split(' ').take(2).collect::<Vec<_>>().join(" "))
            .collect()
    }

    /// The allocated addresses.
    fn reserved(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("ipam/test")).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("10.")).collect()
    }

    fn configure(&self, list: &serde_json::Value) {
        fs::write(self.path("net.d/10-test.conflist"), list.to_string()).unwrap();
    }

    /// A plugin that logs its calls.
    fn script(&self, name: &str, body: &str) {
        let log = self.path("log").display().to_string();
        let text = format!(
            "#!/bin/sh\ninput=$(cat)\necho \"call $CNI_COMMAND {name} $CNI_CONTAINERID $CNI_IFNAME\" >> {log}\n\
             echo \"args $CNI_ARGS\" >> {log}\necho \"input $input\" >> {log}\n{body}\n"
        );
        // Replaced atomically: it may be running.
        program::write(&self.path("bin/unfinished"), text);
        fs::rename(self.path("bin/unfinished"), self.path("bin").join(name)).unwrap();
    }
}

fn on_a_node(
    setup: &Setup,
    plugins: Vec<PathBuf>,
    body: impl AsyncFnOnce(&Namespace, &CniNetwork) + Send,
) {
    on_a_node_with_timeout(setup, plugins, TIMEOUT, body);
}

/// A node with this plugin timeout.
fn on_a_node_with_timeout(
    setup: &Setup,
    plugins: Vec<PathBuf>,
    timeout: Duration,
    body: impl AsyncFnOnce(&Namespace, &CniNetwork) + Send,
) {
    let node = Namespace::new();
    let network = CniNetwork::new(CniConfig {
        configurations: setup.path("net.d"),
        plugins,
        cache: setup.path("cache"),
        timeout,
    });

    node.inside(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(body(&node, &network));
    });
}

fn connect(from: &Namespace, to: SocketAddr) {
    from.inside(|| drop(TcpStream::connect_timeout(&to, TIMEOUT).unwrap()));
}

fn id(number: u32) -> String {
    format!("{number:08x}").repeat(8)
}

fn pod(number: u32, namespace: &Namespace) -> Pod {
    Pod {
        sandbox: id(number),
        namespace: "default".to_owned(),
        name: format!("pod-{number}"),
        uid: "uid".to_owned(),
        netns: namespace.path(),
        ports: vec![],
        annotations: BTreeMap::new(),
    }
}
