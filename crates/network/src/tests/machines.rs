//! Machines of a cluster, as network namespaces: two on one segment, one behind a router, with pods
//! on the real bridge, an API server, and the component on each machine.

#[path = "../../../netlink/tests/namespaces/mod.rs"]
mod namespaces;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use coracle_api::codec::yaml;
use coracle_client::{Access, DeleteOptions, Patch, Resource};
use coracle_podnet::{Bridge, BridgeConfig, Pod, PodNetwork as _};
use coracle_testkit::{Cluster, eventually};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::sync::{oneshot, watch};

use crate::{Config, Encapsulation, Names};
use namespaces::Namespace;

/// How long a connection may take before it counts as refused; none of these is slow.
const TIMEOUT: Duration = Duration::from_secs(3);
/// More than fits into one packet, in either direction.
const BODY: usize = 200_000;

/// The router between two segments, which knows nothing of pods.
struct Lab {
    router: Namespace,
    cluster: Cluster,
    folder: tempfile::TempDir,
    encapsulation: Encapsulation,
}

impl Lab {
    async fn new(encapsulation: Encapsulation) -> Lab {
        let router = Namespace::new();
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            let path = format!("/proc/sys/net/{setting}");
            router.inside(|| std::fs::write(path, "1").unwrap());
        }
        for (segment, four, six) in [
            ("near", "192.0.2.254/24", "2001:db8:2::fe/64"),
            ("far", "198.51.100.254/24", "2001:db8:3::fe/64"),
        ] {
            router.run("ip", &format!("link add {segment} type bridge"));
            router.run("ip", &format!("link set {segment} up"));
            router.run("ip", &format!("addr add {four} dev {segment}"));
            router.run("ip", &format!("addr add {six} dev {segment} nodad"));
        }
        // Something outside of the cluster.
        router.run("ip", "addr add 203.0.113.1/32 dev lo");
        router.run("ip", "addr add 2001:db8:ff::1/128 dev lo nodad");

        Lab {
            router,
            cluster: Cluster::start().await,
            folder: tempfile::tempdir().unwrap(),
            encapsulation,
        }
    }

    fn nodes(&self) -> Access {
        self.cluster
            .client()
            .resource(&Resource::builtin("", "v1", "nodes"))
    }

    /// A machine on a segment, its pod and its Node.
    async fn machine(
        &self,
        name: &'static str,
        number: u8,
        segment: &str,
        families: &str,
    ) -> Machine {
        let namespace = Namespace::new();
        namespace.run(
            "ip",
            &format!(
                "link add eth0 type veth peer name to-{name} netns {}",
                self.router.path().display()
            ),
        );
        self.router
            .run("ip", &format!("link set to-{name} master {segment} up"));
        namespace.run("ip", "link set eth0 up");

        let machine = Machine {
            pod: Namespace::new(),
            bridge: namespace.inside(|| block_on(open_bridge(&self.folder, name, number))),
            namespace,
            name,
            number,
        };
        let pod = Pod {
            sandbox: format!("{number:08x}").repeat(8),
            namespace: "default".to_owned(),
            name: name.to_owned(),
            uid: String::new(),
            netns: machine.pod.path(),
            ports: Vec::new(),
            annotations: BTreeMap::new(),
        };
        machine.bridge.attach(&pod).await.unwrap();
        serve(&machine.pod);
        serve(&machine.namespace);

        machine.set_addresses(segment, number, families);
        self.register(&machine, segment, families, number).await;

        machine
    }

    /// Creates the machine's Node.
    async fn register(&self, machine: &Machine, segment: &str, families: &str, number: u8) {
        let (name, own) = (machine.name, machine.number);
        let node = format!(
            "apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n\
             spec: {{podCIDR: 10.244.{own}.0/24, podCIDRs: [10.244.{own}.0/24, 'fd00:0:0:{own}::/64']}}\n"
        );
        let node = yaml::decode(node.as_bytes()).unwrap();
        self.nodes().create(&node).await.unwrap();
        self.report(machine, segment, families, number).await;
    }

    /// Reports the machine's addresses, as its kubelet does.
    async fn report(&self, machine: &Machine, segment: &str, families: &str, number: u8) {
        let entries: Vec<String> = addresses(segment, number, families)
            .iter()
            .map(|address| format!("{{type: InternalIP, address: '{address}'}}"))
            .collect();
        let status = format!("status: {{addresses: [{}]}}", entries.join(", "));
        let patch = Patch::Merge(yaml::decode(status.as_bytes()).unwrap());
        self.nodes()
            .subresource("status")
            .patch(machine.name, &patch)
            .await
            .unwrap();
    }

    /// Runs the component of a machine.
    fn start(&self, machine: &Machine) -> Running {
        let config = Config {
            node: machine.name.to_owned(),
            names: names(),
            record: self.record(machine),
            encapsulation: self.encapsulation,
            cluster_ranges: Vec::new(),
        };
        let client = self
            .cluster
            .client_as("system:kube-proxy", &["system:authenticated"]);
        let file = File::open(machine.namespace.path()).unwrap();
        let (mtu, learnt) = watch::channel(None);
        let (stop, stopped) = oneshot::channel::<()>();

        let thread = std::thread::spawn(move || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            block_on(async {
                tokio::select! {
                    result = crate::run(config, client, mtu) => result.unwrap(),
                    _ = stopped => {}
                }
            });
        });

        Running {
            stop: Some(stop),
            thread: Some(thread),
            mtu: learnt,
        }
    }

    fn record(&self, machine: &Machine) -> PathBuf {
        self.folder.path().join(format!("{}.json", machine.name))
    }

    /// Each pod reaches each other, with the address it has.
    async fn all_reach_all(&self, machines: &[&Machine]) {
        for one in machines {
            for other in machines.iter().filter(|other| other.number != one.number) {
                for (to, from) in other.pod_addresses().iter().zip(one.pod_addresses()) {
                    reaches(&one.pod, *to, Some(from)).await;
                }
            }
        }
    }
}

/// A machine with one pod.
struct Machine {
    namespace: Namespace,
    pod: Namespace,
    bridge: Bridge,
    name: &'static str,
    /// The pod range is 10.244.NUMBER.0/24.
    number: u8,
}

impl Machine {
    fn pod_addresses(&self) -> [IpAddr; 2] {
        let number = self.number;
        [
            format!("10.244.{number}.2").parse().unwrap(),
            format!("fd00:0:0:{number}::2").parse().unwrap(),
        ]
    }

    fn set_addresses(&self, segment: &str, number: u8, families: &str) {
        for address in addresses(segment, number, families) {
            let (length, how, router) = match (address, segment) {
                (IpAddr::V4(_), "near") => (24, "", "192.0.2.254"),
                (IpAddr::V4(_), _) => (24, "", "198.51.100.254"),
                (IpAddr::V6(_), "near") => (64, "nodad", "2001:db8:2::fe"),
                (IpAddr::V6(_), _) => (64, "nodad", "2001:db8:3::fe"),
            };
            self.ip(&format!("addr add {address}/{length} dev eth0 {how}"));
            self.ip(&format!("route replace default via {router}"));
        }
    }

    fn ip(&self, arguments: &str) -> String {
        self.namespace.run("ip", arguments)
    }

    /// The route to a pod range.
    fn route(&self, range: &str) -> String {
        let version = if range.contains(':') { "-6" } else { "-4" };
        self.ip(&format!("{version} route show {range}"))
    }
}

/// The addresses of machine NUMBER on a segment, of the versions in `families`.
fn addresses(segment: &str, number: u8, families: &str) -> Vec<IpAddr> {
    let (four, six) = match segment {
        "near" => ("192.0.2", "2001:db8:2"),
        _ => ("198.51.100", "2001:db8:3"),
    };
    let all = [
        ('4', format!("{four}.{number}")),
        ('6', format!("{six}::{number:x}")),
    ];
    all.iter()
        .filter(|(family, _)| families.contains(*family))
        .map(|(_, address)| address.parse().unwrap())
        .collect()
}

fn names() -> Names {
    Names {
        bridge: "cor0".to_owned(),
        devices: ["corvx4".to_owned(), "corvx6".to_owned()],
        table: "cor0-network".to_owned(),
    }
}

async fn open_bridge(folder: &tempfile::TempDir, name: &str, number: u8) -> Bridge {
    let ranges = [
        format!("10.244.{number}.0/24"),
        format!("fd00:0:0:{number}::/64"),
    ];
    let config = BridgeConfig {
        name: names().bridge,
        table: "cor0".to_owned(),
        state: folder.path().join(name),
        ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
        mtu: None,
        masquerade_outside: Vec::new(),
        service_ranges: Vec::new(),
    };
    Bridge::open(config).await.unwrap()
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// The component on a machine; stopped when dropped, which leaves the kernel as it is.
struct Running {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    mtu: watch::Receiver<Option<u32>>,
}

impl Running {
    async fn mtu(&mut self, expected: u32) {
        let arrives = self.mtu.wait_for(|mtu| *mtu == Some(expected));
        let arrived = tokio::time::timeout(Duration::from_secs(60), arrives).await;
        assert!(arrived.is_ok(), "the MTU of pods is not {expected}");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

const PORT: u16 = 8080;

/// A server that sends the client's address, and then as much as it receives.
fn serve(namespace: &Namespace) {
    let listener = namespace.inside(|| TcpListener::bind(("::", PORT)).unwrap());
    std::thread::spawn(move || {
        while let Ok((mut stream, peer)) = listener.accept() {
            std::thread::spawn(move || {
                let said = format!("{}\n", peer.ip().to_canonical());
                let mut body = vec![0; BODY];
                // A client that is satisfied with the address goes away.
                if stream.write_all(said.as_bytes()).is_ok() && stream.read_exact(&mut body).is_ok()
                {
                    drop(stream.write_all(&body));
                }
            });
        }
    });
}

/// Connects, sends and receives more than a packet; returns the address that the server saw.
fn exchange(client: &Namespace, to: IpAddr) -> Option<IpAddr> {
    client.inside(|| {
        let mut stream = TcpStream::connect_timeout(&SocketAddr::new(to, PORT), TIMEOUT).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let (mut said, mut byte) = (Vec::new(), [0]);
        while byte != *b"\n" {
            stream.read_exact(&mut byte).ok()?;
            said.push(byte[0]);
        }

        let mut body = vec![7; BODY];
        stream.write_all(&body).ok()?;
        stream.read_exact(&mut body).ok()?;
        String::from_utf8(said).ok()?.trim().parse().ok()
    })
}

/// Waits until a client reaches a server, which sees it under this address.
async fn reaches(client: &Namespace, to: IpAddr, from: Option<IpAddr>) {
    let what = format!("{to} is reached and sees {from:?}");
    eventually(&what, async || {
        let seen = exchange(client, to)?;
        from.is_none_or(|from| from == seen).then_some(())
    })
    .await;
}

fn test(encapsulation: Encapsulation, body: impl AsyncFnOnce(&Lab)) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let lab = Lab::new(encapsulation).await;
        body(&lab).await;
        lab.cluster.stop().await;
    });
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn pods_reach_pods_by_routes_on_a_segment_and_by_vxlan_across() {
    test(Encapsulation::CrossSubnet, async |lab| {
        let a = lab.machine("a", 1, "near", "46").await;
        let b = lab.machine("b", 2, "near", "46").await;
        let mut running = [lab.start(&a), lab.start(&b)];
        for running in &mut running {
            running.mtu(1500).await;
        }
        lab.all_reach_all(&[&a, &b]).await;
        assert!(a.route("10.244.2.0/24").contains("via 192.0.2.2 dev eth0"));
        let six = a.route("fd00:0:0:2::/64");
        assert!(six.contains("via 2001:db8:2::2 dev eth0"), "{six}");
        assert!(
            !a.ip("-o link").contains("corvx"),
            "nothing is encapsulated"
        );

        // The first node behind the router.
        let c = lab.machine("c", 3, "far", "46").await;
        let mut third = lab.start(&c);
        lab.all_reach_all(&[&a, &b, &c]).await;
        assert!(a.route("10.244.3.0/24").contains("dev corvx4"));
        assert!(a.route("10.244.2.0/24").contains("dev eth0"));
        third.mtu(1450).await;
        for running in &mut running {
            running.mtu(1450).await;
        }
        a.bridge.set_mtu(1450).await.unwrap();
        for (where_, name) in [(&a.namespace, "cor0"), (&a.pod, "eth0")] {
            let link = where_.run("ip", &format!("-o link show {name}"));
            assert!(link.contains("mtu 1450"), "{link}");
        }
        lab.all_reach_all(&[&a, &b, &c]).await;

        sources(lab, &a, &b, &c).await;

        // What a pod sends under an address that its node does not have arrives nowhere.
        a.pod.run("ip", "addr add 10.244.9.9/32 dev eth0");
        a.pod
            .run("ip", "route add 192.0.2.2 via 10.244.1.1 src 10.244.9.9");
        a.ip("route add 10.244.9.9 dev cor0");
        b.ip("route add 10.244.9.0/24 via 192.0.2.1");
        assert_eq!(exchange(&a.pod, ip("192.0.2.2")), None);
        a.namespace
            .run("nft", "flush chain inet cor0-network spoofed");
        reaches(&a.pod, ip("192.0.2.2"), Some(ip("10.244.9.9"))).await;
    });
}

/// Which addresses servers see: of pods, nodes and what is outside of the cluster.
async fn sources(lab: &Lab, a: &Machine, b: &Machine, c: &Machine) {
    serve(&lab.router);
    let [pod, pod6] = a.pod_addresses();

    reaches(&a.pod, ip("203.0.113.1"), Some(ip("192.0.2.1"))).await;
    reaches(&a.pod, ip("2001:db8:ff::1"), Some(ip("2001:db8:2::1"))).await;
    reaches(&a.pod, ip("192.0.2.2"), Some(pod)).await;
    reaches(&a.pod, ip("2001:db8:2::2"), Some(pod6)).await;
    reaches(&a.pod, ip("192.0.2.1"), Some(pod)).await;
    // Routers need not know pods.
    reaches(&a.pod, ip("198.51.100.3"), Some(ip("192.0.2.1"))).await;

    reaches(&a.namespace, b.pod_addresses()[0], Some(ip("192.0.2.1"))).await;
    // Through the tunnel, with an address that leads back through it.
    reaches(&a.namespace, c.pod_addresses()[0], Some(ip("10.244.1.0"))).await;
    reaches(&a.namespace, c.pod_addresses()[1], Some(ip("fd00:0:0:1::"))).await;
}

#[test]
fn nodes_come_and_go_and_change_their_addresses() {
    test(Encapsulation::CrossSubnet, async |lab| {
        let a = lab.machine("a", 1, "near", "4").await;
        let b = lab.machine("b", 2, "near", "4").await;
        let c = lab.machine("c", 3, "far", "4").await;
        let _running = [lab.start(&a), lab.start(&b), lab.start(&c)];
        lab.all_reach_all(&[&a, &b, &c]).await;
        // IPv6 goes through packets of IPv4, which is all that the machines have.
        assert!(a.route("fd00:0:0:2::/64").contains("dev corvx4"));

        let delete = DeleteOptions::default();
        lab.nodes().delete("c", &delete).await.unwrap();
        lab.nodes().delete("b", &delete).await.unwrap();
        eventually("nothing is left of them", async || {
            let left = a.ip("route show proto 201") + &a.ip("-6 route show proto 201");
            (left.is_empty() && !a.ip("-o link").contains("corvx")).then_some(())
        })
        .await;

        lab.register(&b, "near", "4", 2).await;
        lab.register(&c, "far", "4", 3).await;
        lab.all_reach_all(&[&a, &b, &c]).await;

        // Another address, on the same segment and on the other one.
        b.ip("addr flush dev eth0");
        b.set_addresses("near", 22, "4");
        lab.report(&b, "near", "4", 22).await;
        lab.all_reach_all(&[&a, &b, &c]).await;
        c.ip("addr flush dev eth0");
        lab.router.run("ip", "link set to-c nomaster");
        lab.router.run("ip", "link set to-c master near");
        c.set_addresses("near", 33, "4");
        lab.report(&c, "near", "4", 33).await;
        lab.all_reach_all(&[&a, &b, &c]).await;
        assert!(a.route("10.244.3.0/24").contains("via 192.0.2.33 dev eth0"));
    });
}

#[test]
fn a_node_moves_to_another_segment_and_back() {
    test(Encapsulation::CrossSubnet, async |lab| {
        let a = lab.machine("a", 1, "near", "46").await;
        let c = lab.machine("c", 3, "far", "46").await;
        let _running = [lab.start(&a), lab.start(&c)];
        lab.all_reach_all(&[&a, &c]).await;

        for segment in ["near", "far", "near"] {
            c.ip("addr flush dev eth0 scope global");
            lab.router.run("ip", "link set to-c nomaster");
            lab.router
                .run("ip", &format!("link set to-c master {segment}"));
            c.set_addresses(segment, 3, "46");
            lab.report(&c, segment, "46", 3).await;
            lab.all_reach_all(&[&a, &c]).await;
            let device = if segment == "near" { "eth0" } else { "corvx4" };
            for range in ["10.244.3.0/24", "fd00:0:0:3::/64"] {
                let route = a.route(range);
                assert!(route.contains(&format!("dev {device}")), "{route}");
            }
        }
    });
}

#[test]
fn what_others_delete_comes_back_and_packets_pass_without_a_process() {
    test(Encapsulation::CrossSubnet, async |lab| {
        let a = lab.machine("a", 1, "near", "46").await;
        let b = lab.machine("b", 2, "near", "46").await;
        let c = lab.machine("c", 3, "far", "46").await;
        let running = lab.start(&a);
        let _others = [lab.start(&b), lab.start(&c)];
        lab.all_reach_all(&[&a, &b, &c]).await;

        let flush = [
            ("ip", "route flush proto 201"),
            ("ip", "-6 route flush proto 201"),
            ("ip", "neigh flush dev corvx4 nud permanent"),
            ("ip", "link del corvx4"),
            ("ip", "link set corvx4 down"),
            ("ip", "addr flush dev corvx4"),
            (
                "bridge",
                "fdb del 0e:58:0a:f4:03:00 dev corvx4 dst 198.51.100.3 vni 717827",
            ),
            ("nft", "flush ruleset"),
            ("ip", "link set corvx4 mtu 1280"),
        ];
        let state = || {
            let all = [
                a.namespace.run("nft", "list ruleset"),
                a.ip("route show proto 201"),
                a.ip("-6 route show proto 201"),
                a.ip("neigh show dev corvx4 nud permanent"),
                a.namespace.run("bridge", "fdb show dev corvx4"),
                a.ip("-br addr show dev corvx4 scope global"),
                a.ip("-br link show dev corvx4"),
            ];
            all.concat()
        };
        // The interface may be missing for a moment.
        let state = || std::panic::catch_unwind(std::panic::AssertUnwindSafe(state)).ok();
        let before = state().unwrap();
        for (program, arguments) in flush {
            a.namespace.run(program, arguments);
            eventually(&format!("{arguments} is set right"), async || {
                (state().as_ref() == Some(&before)).then_some(())
            })
            .await;
        }
        lab.all_reach_all(&[&a, &b, &c]).await;

        // While the process is away, a node goes and another comes.
        drop(running);
        lab.all_reach_all(&[&a, &b, &c]).await;
        lab.nodes()
            .delete("b", &DeleteOptions::default())
            .await
            .unwrap();
        let d = lab.machine("d", 4, "near", "46").await;
        let _fourth = lab.start(&d);
        assert!(a.route("10.244.2.0/24").contains("dev eth0"));
        let _running = lab.start(&a);
        lab.all_reach_all(&[&a, &c, &d]).await;
        assert_eq!(a.route("10.244.2.0/24"), "");
    });
}

#[test]
fn all_is_encapsulated_on_demand_and_removed_at_the_end() {
    test(Encapsulation::Always, async |lab| {
        let a = lab.machine("a", 1, "near", "6").await;
        let b = lab.machine("b", 2, "near", "6").await;
        let mut running = lab.start(&a);
        let _other = lab.start(&b);
        lab.all_reach_all(&[&a, &b]).await;
        running.mtu(1430).await;
        assert!(a.route("10.244.2.0/24").contains("dev corvx6"));
        assert!(
            a.ip("-d -o link show corvx6")
                .contains("dstport 8472 nolearning")
        );

        drop(running);
        a.namespace
            .inside(|| crate::remove(&names(), &lab.record(&a)))
            .unwrap();
        assert!(!a.ip("-o link").contains("corvx"));
        assert_eq!(
            a.ip("route show proto 201") + &a.ip("-6 route show proto 201"),
            ""
        );
        assert_eq!(a.namespace.run("nft", "list ruleset"), "");
    });
}

#[test]
fn nothing_is_encapsulated_where_that_is_forbidden() {
    test(Encapsulation::Never, async |lab| {
        let a = lab.machine("a", 1, "near", "46").await;
        let b = lab.machine("b", 2, "near", "46").await;
        let c = lab.machine("c", 3, "far", "46").await;
        let mut running = lab.start(&a);
        let _others = [lab.start(&b), lab.start(&c)];
        lab.all_reach_all(&[&a, &b]).await;
        running.mtu(1500).await;
        assert_eq!(a.route("10.244.3.0/24"), "");
        assert!(!a.ip("-o link").contains("corvx"));
    });
}
