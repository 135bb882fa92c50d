//! A node with pods on a bridge and an external client, all network namespaces, with small servers.

mod mirror;
#[path = "../../../../netlink/tests/namespaces/mod.rs"]
mod namespaces;
mod servers;

use coracle_api::codec::yaml;
use coracle_client::ObjectKey;
use coracle_proxy::compile::NodePortAddresses;
use coracle_proxy::facts::{Node, Service, Slice};
use coracle_proxy::nft::{self, Dialect, Pods, Writer};
use coracle_proxy::rules::Family;
use coracle_proxy::{PodRanges, State, conntrack};
use mirror::Mirror;

pub(crate) use namespaces::Namespace;
pub(crate) use servers::{Response, Server, Udp, ask, ask_from_port, dropped, refused};

/// The node `here` (192.0.2.1, fd02::1), its pods (10.70.0.2, fd70::2 and on) and an external
/// client (192.0.2.2, fd02::2), which routes everything through the node.
pub(crate) struct Rig {
    pub(crate) node: Namespace,
    pub(crate) outside: Namespace,
    pub(crate) pods: Vec<Namespace>,
    state: State,
    writer: Writer,
    synced: bool,
    mirror: Mirror,
}

impl Rig {
    pub(crate) fn new(pods: usize) -> Rig {
        let (node, outside) = (Namespace::new(), Namespace::new());
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            node.inside(|| std::fs::write(format!("/proc/sys/net/{setting}"), "1").unwrap());
        }

        node.run(
            "ip",
            &format!(
                "link add up0 type veth peer name eth0 netns {}",
                outside.path().display()
            ),
        );

        node.run("ip", "link set up0 up");
        outside.run("ip", "link set eth0 up");

        for (address, peer, at_once) in [
            ("192.0.2.1/24", "192.0.2.2/24", ""),
            ("fd02::1/64", "fd02::2/64", "nodad"),
        ] {
            node.run("ip", &format!("addr add {address} dev up0 {at_once}"));
            outside.run("ip", &format!("addr add {peer} dev eth0 {at_once}"));
        }

        outside.run("ip", "route add default via 192.0.2.1");
        outside.run("ip", "-6 route add default via fd02::1");
        node.run("ip", "route add default via 192.0.2.2");
        node.run("ip", "-6 route add default via fd02::2");
        node.run("ip", "link add br0 type bridge");
        node.run("ip", "link set br0 up");

        node.run("ip", "addr add 10.70.0.1/24 dev br0");
        node.run("ip", "addr add fd70::1/64 dev br0 nodad");

        let pods: Vec<Namespace> = (0..pods).map(|number| pod(&node, number)).collect();
        wait_for_links(&node, pods.len());
        let dialect = Dialect {
            table: "coracle-test".to_owned(),
            families: Family::BOTH.to_vec(),
            masquerade_bit: 14,
            masquerade_all: false,
            pods: Pods::Ranges(Family::BOTH.to_vec()),
        };

        let net = |text: &str| text.parse().unwrap();
        let ranges = PodRanges::Given(vec![net("10.70.0.0/16"), net("fd70::/48")]);
        let services = vec![net("10.96.0.0/12"), net("fd96::/108")];

        let mut state = State::new("here", NodePortAddresses::Primary, ranges, services);
        state.set_node(Some(Node {
            name: "here".into(),
            addresses: vec!["192.0.2.1".parse().unwrap(), "fd02::1".parse().unwrap()],
            ..Node::default()
        }));

        Rig {
            node,
            outside,
            pods,
            state,
            writer: Writer::new(dialect),
            synced: false,
            mirror: Mirror::new(),
        }
    }

    /// Syncs the kernel; returns the number of changed items. The kernel then has what the program
    /// `nft` would have made of the same changes.
    pub(crate) fn sync(&mut self) -> usize {
        let (changes, stale) = self.state.compile();
        let batch = match self.synced {
            true => self.writer.changes(&changes),
            false => self.writer.whole(self.state.whole()),
        };

        self.synced = true;
        self.node.inside(|| {
            if let Err(error) = nft::apply(&batch) {
                panic!("{error}\n{batch}");
            }
            conntrack::delete_stale(&stale).unwrap();
        });
        self.mirror.compare(&batch, &self.node);

        changes.gone.len() + changes.new.len()
    }

    /// Like a restarted process without knowledge of the kernel's rules.
    pub(crate) fn restart(&mut self) {
        self.synced = false;
    }

    /// Sets a Service and its endpoints: the rest of its spec, and of each endpoint, in YAML.
    pub(crate) fn service(&mut self, name: &str, spec: &str, endpoints: &[&str]) {
        self.set_service(name, Some(&format!("spec: {{{spec}}}")));
        self.endpoints(name, endpoints);
    }

    pub(crate) fn set_service(&mut self, name: &str, rest: Option<&str>) {
        let object = rest.map(|rest| {
            yaml::decode(format!("metadata: {{namespace: shop, name: {name}}}\n{rest}").as_bytes())
                .unwrap()
        });
        let service = object.map(|object| Service::read(&object).unwrap());
        self.state
            .set_service(&ObjectKey::new("shop", name), service.as_ref());
    }

    pub(crate) fn endpoints(&mut self, name: &str, endpoints: &[&str]) {
        for (family, six) in [("IPv4", false), ("IPv6", true)] {
            let own: Vec<_> = endpoints
                .iter()
                .filter(|endpoint| endpoint.contains("fd7") == six)
                .collect();

            let listed: String = own
                .iter()
                .map(|endpoint| format!("- {{{endpoint}}}\n"))
                .collect();

            let key = ObjectKey::new("shop", &format!("{name}-{family}"));
            let text = format!(
                "metadata: {{namespace: shop, name: {}, labels: {{kubernetes.io/service-name: {name}}}}}\n\
                 addressType: {family}\n\
                 ports: [{{name: '', port: 8080, protocol: TCP}}, {{name: dns, port: 5353, protocol: UDP}}]\n\
                 endpoints:\n{listed}",
                key.name
            );

            let slice = Slice::read(&yaml::decode(text.as_bytes()).unwrap());
            self.state
                .set_slice(&key, slice.as_ref().filter(|_| !own.is_empty()));
        }
    }

    /// Servers on port 8080 of all pods.
    pub(crate) fn servers(&self) -> Vec<Server> {
        self.pods
            .iter()
            .enumerate()
            .map(|(number, pod)| Server::start(pod, &format!("pod{number}"), 8080))
            .collect()
    }
}

/// The kernel takes up to a second to bring a veth pair up, and another to validate link-local
/// addresses, without which neighbour discovery does not work.
fn wait_for_links(node: &Namespace, pods: usize) {
    let is_up = || {
        let forwarding = node
            .run("bridge", "link")
            .matches("state forwarding")
            .count();
        let up = node.run("ip", "-o link show up0").contains("state UP");
        forwarding == pods && up && !node.run("ip", "-6 addr").contains("tentative")
    };

    let began = std::time::Instant::now();
    while !is_up() {
        assert!(
            began.elapsed().as_secs() < 120,
            "{}",
            node.run("ip", "link")
        );
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn pod(node: &Namespace, number: usize) -> Namespace {
    let pod = Namespace::new();
    let last = number + 2;
    node.run(
        "ip",
        &format!(
            "link add veth{number} type veth peer name eth0 netns {}",
            pod.path().display()
        ),
    );

    node.run("ip", &format!("link set veth{number} master br0 up"));
    node.run("bridge", &format!("link set dev veth{number} hairpin on"));
    pod.run("ip", "link set eth0 up");
    pod.run("ip", &format!("addr add 10.70.0.{last}/24 dev eth0"));
    pod.run("ip", &format!("addr add fd70::{last}/64 dev eth0 nodad"));
    pod.run("ip", "route add default via 10.70.0.1");
    pod.run("ip", "-6 route add default via fd70::1");

    pod
}
