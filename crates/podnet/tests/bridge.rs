//! The built-in bridge, in namespaces that simulate a node and its pods.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

#[path = "../../netlink/tests/namespaces/mod.rs"]
mod namespaces;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use coracle_podnet::{Bridge, BridgeConfig, Error, Pod, PodNetwork, PortMapping, Protocol};
use futures_util::future::join_all;
use namespaces::Namespace;

/// Timeout that even a busy machine does not reach.
const TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn pods_reach_each_other_and_the_node_in_both_families() {
    on_a_node(&["10.77.0.0/24", "fd77::/64"], async |node, bridge| {
        let (one, other) = (Namespace::new(), Namespace::new());
        let first = bridge.attach(&pod(1, &one)).await.unwrap();
        let second = bridge.attach(&pod(2, &other)).await.unwrap();
        assert_eq!(texts(&first.addresses), ["10.77.0.2", "fd77::2"]);
        assert_eq!(texts(&second.addresses), ["10.77.0.3", "fd77::3"]);

        for address in &first.addresses {
            let server = Server::start(&one, SocketAddr::new(*address, 0));
            assert_eq!(
                server.connect_from(&other).ip(),
                second.addresses[usize::from(address.is_ipv6())]
            );
            server.connect_from(&one);
            server.connect_from(node);
        }

        for gateway in ["10.77.0.1:0", "[fd77::1]:0"] {
            Server::start(node, gateway.parse().unwrap()).connect_from(&one);
        }
    });
}

#[test]
fn a_detached_pod_leaves_nothing_behind() {
    on_a_node(&["10.78.0.0/30"], async |node, bridge| {
        let namespace = Namespace::new();
        let before = node.run("ip", "-o link");
        for _ in 0..3 {
            let mut pod = pod(1, &namespace);
            pod.ports = vec![port(8080)];
            assert_eq!(
                texts(&bridge.attach(&pod).await.unwrap().addresses),
                ["10.78.0.2"]
            );

            assert!(matches!(
                bridge.attach(&self::pod(2, &namespace)).await,
                Err(Error::Exhausted(_))
            ));

            bridge.detach(&pod).await.unwrap();
            bridge.detach(&pod).await.unwrap();
            assert_eq!(names(&node.run("ip", "-o link")), names(&before));
            assert_eq!(node.run("nft", "list ruleset"), "");
            assert!(!namespace.run("ip", "-o link").contains("eth0"));
        }
    });
}

/// Rules are replaced for many pods at once; a pod that cannot be attached does not affect the
/// others.
#[test]
fn many_pods_are_attached_and_detached_at_once() {
    on_a_node(&["10.84.0.0/26"], async |node, bridge| {
        let namespaces: Vec<Namespace> = (0..12).map(|_| Namespace::new()).collect();
        let mut pods: Vec<Pod> = (0..12)
            .zip(&namespaces)
            .map(|(number, there)| pod(number, there))
            .collect();

        pods.iter_mut()
            .zip(9000..)
            .for_each(|(pod, number)| pod.ports = vec![port(number)]);
        pods[5].netns = "/nowhere".into();
        pods[7].ports = vec![port(9000)];

        let attached = join_all(pods.iter().map(|pod| bridge.attach(pod))).await;
        for (number, (pod, attached)) in pods.iter().zip(&attached).enumerate() {
            let rules = node.run("nft", "list ruleset");
            match attached {
                Ok(attached) => {
                    let rule = format!(
                        "tcp dport {} dnat ip to {}:80",
                        9000 + number,
                        attached.addresses[0]
                    );
                    assert!(rules.contains(&rule), "{rule}: {rules}");
                }
                Err(Error::Namespace(..)) => assert_eq!(number, 5),
                Err(Error::PortTaken { port: 9000, .. }) => assert_eq!(number, 7),
                Err(error) => panic!("{}: {error}", pod.sandbox),
            }
        }

        assert_eq!(
            attached.iter().filter(|attached| attached.is_ok()).count(),
            10
        );

        join_all(pods.iter().map(|pod| bridge.detach(pod)))
            .await
            .into_iter()
            .for_each(Result::unwrap);

        assert_eq!(node.run("nft", "list ruleset"), "");
        assert!(!node.run("ip", "-o link").contains("veth"));
    });
}

#[test]
fn a_failed_connection_is_undone() {
    on_a_node(&["10.79.0.0/30"], async |node, bridge| {
        let namespace = Namespace::new();
        let mut broken = pod(1, &namespace);
        broken.netns = "/nowhere".into();
        assert!(matches!(
            bridge.attach(&broken).await,
            Err(Error::Namespace(..))
        ));

        // The pod already has an interface of that name: the veth pair cannot be created.
        namespace.run("ip", "link add eth0 type bridge");
        assert!(matches!(
            bridge.attach(&pod(1, &namespace)).await,
            Err(Error::Netlink(_))
        ));

        assert!(!node.run("ip", "-o link").contains("veth"));

        namespace.run("ip", "link del eth0");
        assert_eq!(
            texts(&bridge.attach(&pod(1, &namespace)).await.unwrap().addresses),
            ["10.79.0.2"]
        );
    });
}

#[test]
fn after_a_kill_live_pods_stay_and_the_rest_is_reclaimed() {
    let node = Namespace::new();
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (Namespace::new(), Namespace::new());

    let ranges = ["10.80.0.0/29"];
    on_this_node(&node, folder.path(), &ranges, async |_, bridge| {
        bridge.attach(&pod(1, &one)).await.unwrap();
        let mut published = pod(2, &other);
        published.ports = vec![port(9090)];
        bridge.attach(&published).await.unwrap();
    });

    on_this_node(&node, folder.path(), &ranges, async |node, bridge| {
        let server = Server::start(&one, "10.80.0.2:0".parse().unwrap());
        server.connect_from(node);
        assert!(node.run("nft", "list ruleset").contains("9090"));

        bridge.reclaim(BTreeSet::from([id(1)])).await.unwrap();
        server.connect_from(node);
        assert_eq!(node.run("nft", "list ruleset"), "");
        assert!(!other.run("ip", "-o link").contains("eth0"));

        // Round robin continues, and reaches the reclaimed address last.
        let next: Vec<_> = addresses_of(bridge, 3..7).await;
        assert_eq!(next, ["10.80.0.4", "10.80.0.5", "10.80.0.6", "10.80.0.3"]);

        bridge.tear_down().await.unwrap();
        assert_eq!(names(&node.run("ip", "-o link")), ["lo"]);
    });

    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// The addresses of further pods.
async fn addresses_of(bridge: &Bridge, numbers: std::ops::Range<u32>) -> Vec<String> {
    let mut found = Vec::new();
    for number in numbers {
        let namespace = Namespace::new();
        let attached = bridge.attach(&pod(number, &namespace)).await.unwrap();
        found.push(attached.addresses[0].to_string());
    }
    found
}

#[test]
fn host_ports_are_reachable_from_everywhere() {
    on_a_node(&["10.81.0.0/24"], async |node, bridge| {
        let (one, other, outside) = (Namespace::new(), Namespace::new(), Namespace::new());
        connect_outside(node, &outside);
        let server = Server::start(&one, "0.0.0.0:0".parse().unwrap());
        let mut published = pod(1, &one);
        published.ports = vec![PortMapping {
            container_port: server.address.port(),
            ..port(8080)
        }];

        bridge.attach(&published).await.unwrap();
        bridge.attach(&pod(2, &other)).await.unwrap();
        let ask =
            |from: &Namespace, to: &str| server.connect(from, to.parse().unwrap()).ip().to_string();
        assert_eq!(
            ask(&outside, "192.0.2.1:8080"),
            "192.0.2.2",
            "the client's own address arrives"
        );

        assert_eq!(ask(node, "127.0.0.1:8080"), "10.81.0.1");
        assert_eq!(ask(node, "192.0.2.1:8080"), "192.0.2.1");
        assert_eq!(ask(&other, "192.0.2.1:8080"), "10.81.0.1");
        assert_eq!(
            ask(&one, "10.81.0.1:8080"),
            "10.81.0.1",
            "a pod reaches itself"
        );

        // Ports on the host's loopback are not reachable from pods.
        let private = Server::start(node, "127.0.0.1:0".parse().unwrap());
        assert!(is_blocked(&one, private.address.port()));

        let mut greedy = pod(3, &outside);
        greedy.ports = vec![port(8080)];
        assert!(matches!(
            bridge.attach(&greedy).await,
            Err(Error::PortTaken { port: 8080, .. })
        ));
    });
}

/// Whether packets of a pod for 127.0.0.1 on the node are dropped.
fn is_blocked(pod: &Namespace, port: u16) -> bool {
    pod.run("ip", "addr del 127.0.0.1/8 dev lo");
    pod.run(
        "ip",
        "route add 127.0.0.0/8 via 10.81.0.1 dev eth0 src 10.81.0.2",
    );

    pod.inside(|| {
        std::fs::write("/proc/sys/net/ipv4/conf/eth0/route_localnet", "1").unwrap();
        TcpStream::connect_timeout(
            &SocketAddr::from(([127, 0, 0, 1], port)),
            Duration::from_millis(300),
        )
        .is_err()
    })
}

#[test]
fn traffic_to_outside_is_masqueraded_if_configured() {
    let (node, outside, one) = (Namespace::new(), Namespace::new(), Namespace::new());
    connect_outside(&node, &outside);

    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), &["10.82.0.0/24"]);
    config.masquerade_outside = vec!["10.82.0.0/16".parse().unwrap()];

    node.inside(|| {
        runtime().block_on(async {
            let bridge = Bridge::open(config).await.unwrap();
            bridge.attach(&pod(1, &one)).await.unwrap();
            let server = Server::start(&outside, "192.0.2.2:0".parse().unwrap());
            assert_eq!(server.connect_from(&one).ip().to_string(), "192.0.2.1");
            bridge.tear_down().await.unwrap();
            assert_eq!(node.run("nft", "list ruleset"), "");
        });
    });
}

#[test]
fn host_ports_come_back_when_another_process_flushes_all_rules() {
    on_a_node(&["10.86.0.0/24"], async |node, bridge| {
        let one = Namespace::new();
        let mut with_port = pod(1, &one);
        with_port.ports = vec![port(8080)];
        bridge.attach(&with_port).await.unwrap();
        let before = node.run("nft", "list ruleset");

        for _ in 0..3 {
            node.run("nft", "flush ruleset");
            let restored = async {
                while node.run("nft", "list ruleset") != before {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::time::timeout(TIMEOUT, restored).await.unwrap();
        }

        // What is deleted on purpose stays deleted.
        bridge.detach(&with_port).await.unwrap();
        node.run("nft", "flush ruleset");
        bridge.attach(&pod(2, &one)).await.unwrap();
        assert_eq!(node.run("nft", "list ruleset"), "");
    });
}

#[test]
fn a_bridge_waits_for_its_ranges_and_takes_new_ones() {
    on_a_node(&[], async |node, bridge| {
        let (one, other) = (Namespace::new(), Namespace::new());
        assert_eq!(bridge.ready().unwrap_err().reason, "NetworkPluginNotReady");
        assert!(matches!(
            bridge.attach(&pod(1, &one)).await,
            Err(Error::NotConfigured)
        ));

        bridge
            .set_ranges(vec!["10.83.0.0/24".parse().unwrap()])
            .await
            .unwrap();

        bridge.ready().unwrap();
        bridge.attach(&pod(1, &one)).await.unwrap();
        bridge
            .set_ranges(vec!["10.84.0.0/24".parse().unwrap()])
            .await
            .unwrap();

        bridge.attach(&pod(2, &other)).await.unwrap();
        Server::start(&one, "10.83.0.2:0".parse().unwrap()).connect_from(&other);
        bridge.detach(&pod(1, &one)).await.unwrap();
        bridge
            .set_ranges(vec!["10.84.0.0/24".parse().unwrap()])
            .await
            .unwrap();

        assert!(
            !node.run("ip", "-o addr").contains("10.83."),
            "the gateway is not used any more"
        );
    });
}

#[test]
fn interfaces_have_the_mtu_of_the_default_route() {
    // Both are kept: a veth pair disappears with either namespace.
    let (node, outside) = (Namespace::new(), Namespace::new());
    connect_outside(&node, &outside);
    node.run("ip", "link set up0 mtu 1400");
    node.run("ip", "route add default via 192.0.2.2");

    let folder = tempfile::tempdir().unwrap();
    on_this_node(
        &node,
        folder.path(),
        &["10.85.0.0/24"],
        async |node, bridge| {
            let one = Namespace::new();
            bridge.attach(&pod(1, &one)).await.unwrap();
            assert!(node.run("ip", "-o link show cor0").contains("mtu 1400"));
            assert!(one.run("ip", "-o link show eth0").contains("mtu 1400"));
            assert!(node.run("bridge", "-d link").contains("hairpin on"));
        },
    );
}

/// A server in a namespace that reports the address of its clients.
struct Server {
    address: SocketAddr,
    seen: mpsc::Receiver<SocketAddr>,
}

impl Server {
    fn start(namespace: &Namespace, address: SocketAddr) -> Self {
        let (report, seen) = mpsc::channel();
        let listener = namespace.inside(|| TcpListener::bind(address).unwrap());
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            while let Ok((mut stream, peer)) = listener.accept() {
                if report.send(peer).is_err() || stream.write_all(b"x").is_err() {
                    return;
                }
            }
        });
        Self { address, seen }
    }

    fn connect_from(&self, client: &Namespace) -> SocketAddr {
        self.connect(client, self.address)
    }

    fn connect(&self, client: &Namespace, at: SocketAddr) -> SocketAddr {
        client.inside(|| {
            let mut stream = TcpStream::connect_timeout(&at, TIMEOUT).unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            stream.read_exact(&mut [0]).unwrap();
        });
        self.seen.recv().unwrap()
    }
}

/// A link between the node (192.0.2.1) and a host outside (192.0.2.2) without routes to pods.
fn connect_outside(node: &Namespace, outside: &Namespace) {
    let target = outside.path();
    node.run(
        "ip",
        &format!(
            "link add up0 type veth peer name eth1 netns {}",
            target.display()
        ),
    );

    node.run("ip", "addr add 192.0.2.1/24 dev up0");
    node.run("ip", "link set up0 up");
    outside.run("ip", "addr add 192.0.2.2/24 dev eth1");
    outside.run("ip", "link set eth1 up");
}

fn on_a_node(ranges: &[&str], body: impl AsyncFnOnce(&Namespace, &Bridge) + Send) {
    let folder = tempfile::tempdir().unwrap();
    on_this_node(&Namespace::new(), folder.path(), ranges, body);
}

fn on_this_node(
    node: &Namespace,
    state: &Path,
    ranges: &[&str],
    body: impl AsyncFnOnce(&Namespace, &Bridge) + Send,
) {
    node.inside(|| {
        runtime().block_on(async {
            let bridge = Bridge::open(config(state, ranges)).await.unwrap();
            body(node, &bridge).await;
        });
    });
}

fn config(state: &Path, ranges: &[&str]) -> BridgeConfig {
    BridgeConfig {
        name: "cor0".to_owned(),
        table: "cor0".to_owned(),
        state: state.to_owned(),
        ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
        mtu: None,
        masquerade_outside: vec![],
        service_ranges: vec![],
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

fn id(number: u32) -> String {
    format!("{number:08x}").repeat(8)
}

fn pod(number: u32, namespace: &Namespace) -> Pod {
    Pod {
        sandbox: id(number),
        namespace: "default".to_owned(),
        name: format!("pod-{number}"),
        uid: String::new(),
        netns: namespace.path(),
        ports: vec![],
        annotations: BTreeMap::new(),
    }
}

fn port(host_port: u16) -> PortMapping {
    PortMapping {
        protocol: Protocol::Tcp,
        container_port: 80,
        host_port,
        host_ip: None,
    }
}

fn texts(addresses: &[IpAddr]) -> Vec<String> {
    addresses.iter().map(IpAddr::to_string).collect()
}

/// The interface names in the output of `ip -o link`.
fn names(links: &str) -> Vec<String> {
    links
        .lines()
        .filter_map(|line| Some(line.split(": ").nth(1)?.split('@').next()?.to_owned()))
        .collect()
}
