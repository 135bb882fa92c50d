//! Throughput and latency between two pods of two machines, which are network namespaces on one
//! virtual cable: without encapsulation, through VXLAN, and beside them flannel's VXLAN with the
//! same bridge and pods, and the machines themselves. One TCP connection. `cargo bench -p
//! coracle-network`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what fails here is the benchmark, and it prints"
)]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

mod flannel;
#[path = "../../../netlink/tests/namespaces/mod.rs"]
mod namespaces;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use coracle_network::plan::{Encapsulation, plan};
use coracle_network::{Kernel, Names, Node};
use coracle_podnet::{Bridge, BridgeConfig, Pod, PodNetwork as _};
use namespaces::Namespace;

/// How often each way is measured; the best round counts, as others disturb.
const ROUNDS: usize = 3;
const STREAM: Duration = Duration::from_secs(2);
const QUESTIONS: usize = 5_000;
const PORT: u16 = 5001;

fn main() {
    println!(
        "{:<28} {:>10} {:>14} {:>14}",
        "between", "Gbit/s", "median us", "99th us"
    );
    let pair = Pair::new(1500);
    let [one, other] = &pair.machines;
    report(
        "the machines themselves",
        &one.namespace,
        &other.namespace,
        "192.0.2.2",
    );
    for (name, mode) in [
        ("pods, routes", Encapsulation::Never),
        ("pods, VXLAN", Encapsulation::Always),
    ] {
        pair.connect(mode);
        report(name, &one.pod, &other.pod, "10.244.2.2");
        report(
            &format!("{name}, IPv6"),
            &one.pod,
            &other.pod,
            "fd00:0:0:2::2",
        );
    }
    drop(pair);

    match flannel::program() {
        Some(program) => {
            let pair = Pair::new(1450);
            let _running = flannel::Running::start(&program, &pair);
            let [one, other] = &pair.machines;
            report("pods, flannel's VXLAN", &one.pod, &other.pod, "10.244.2.2");
        }
        None => println!("flannel: not built; scripts/build-flannel.sh"),
    }
}

/// Two machines on a cable.
struct Pair {
    machines: [Machine; 2],
    folder: tempfile::TempDir,
}

struct Machine {
    namespace: Namespace,
    pod: Namespace,
    bridge: Bridge,
    node: Node,
}

impl Pair {
    fn new(mtu: u32) -> Pair {
        let folder = tempfile::tempdir().unwrap();
        let spaces = [Namespace::new(), Namespace::new()];
        spaces[0].run(
            "ip",
            &format!(
                "link add eth0 type veth peer name eth0 netns {}",
                spaces[1].path().display()
            ),
        );
        let mut number = 0;
        let machines = spaces.map(|namespace| {
            number += 1;
            Machine::new(namespace, number, mtu, &folder)
        });
        Pair { machines, folder }
    }

    fn connect(&self, mode: Encapsulation) {
        for (own, other) in [(0, 1), (1, 0)] {
            let [own, other] = [own, other].map(|at: usize| &self.machines[at]);
            let record = self.folder.path().join(format!("{}.json", own.node.name));
            let mtu = own.namespace.inside(|| {
                let mut kernel = Kernel::open(&names(), &record).unwrap();
                let targets = other.node.addresses.iter().copied();
                let machine = kernel.machine(targets).unwrap();
                let others = std::slice::from_ref(&other.node);
                let plan = plan(&own.node, others, &machine, mode, &[]);
                kernel.apply(&plan).unwrap();
                plan.pod_mtu
            });
            block_on(own.bridge.set_mtu(mtu)).unwrap();
        }
    }
}

impl Machine {
    fn new(namespace: Namespace, number: u8, mtu: u32, folder: &tempfile::TempDir) -> Machine {
        for command in [
            "link set eth0 up".to_owned(),
            format!("addr add 192.0.2.{number}/24 dev eth0"),
            format!("addr add 2001:db8:2::{number}/64 dev eth0 nodad"),
        ] {
            namespace.run("ip", &command);
        }

        let name = format!("machine-{number}");
        let ranges = [
            format!("10.244.{number}.0/24"),
            format!("fd00:0:0:{number}::/64"),
        ]
        .map(|range| range.parse().unwrap())
        .to_vec();
        let config = BridgeConfig {
            name: names().bridge,
            table: "cor0".to_owned(),
            state: folder.path().join(&name),
            ranges: ranges.clone(),
            mtu: Some(mtu),
            masquerade_outside: Vec::new(),
            service_ranges: Vec::new(),
        };
        let bridge = namespace.inside(|| block_on(Bridge::open(config)).unwrap());

        let pod = Namespace::new();
        let attached = Pod {
            sandbox: format!("{number:08x}").repeat(8),
            namespace: "default".to_owned(),
            name: "pod".to_owned(),
            uid: String::new(),
            netns: pod.path(),
            ports: Vec::new(),
            annotations: BTreeMap::new(),
        };
        block_on(bridge.attach(&attached)).unwrap();

        let addresses = [format!("192.0.2.{number}"), format!("2001:db8:2::{number}")];
        Machine {
            namespace,
            pod,
            bridge,
            node: Node {
                name,
                ranges,
                addresses: addresses.map(|address| address.parse().unwrap()).to_vec(),
            },
        }
    }
}

fn names() -> Names {
    Names {
        bridge: "cor0".to_owned(),
        devices: ["corvx4".to_owned(), "corvx6".to_owned()],
        table: "cor0-network".to_owned(),
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(work)
}

/// Measures between a client and a server in two namespaces.
fn report(name: &str, client: &Namespace, server: &Namespace, address: &str) {
    let at = SocketAddr::new(address.parse::<IpAddr>().unwrap(), PORT);
    let listener = server.inside(|| TcpListener::bind(("::", PORT)).unwrap());
    let serving = std::thread::spawn(move || serve(&listener));

    let rounds: Vec<_> = (0..ROUNDS)
        .map(|_| client.inside(|| (throughput(at), latency(at))))
        .collect();
    client.inside(|| connect(at).write_all(b"e").unwrap());
    serving.join().unwrap();

    let most = rounds.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    let (median, last) = rounds.iter().map(|(_, times)| *times).min().unwrap();
    println!(
        "{name:<28} {most:>10.2} {:>14.1} {:>14.1}",
        micros(median),
        micros(last)
    );
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The first byte of a connection says what to do: receive, answer, or end.
fn serve(listener: &TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut what = [0];
        stream.read_exact(&mut what).unwrap();
        match what {
            [b't'] => {
                let mut buffer = vec![0; 1 << 20];
                while stream.read(&mut buffer).unwrap() > 0 {}
                stream.write_all(b".").unwrap();
            }
            [b'l'] => {
                let mut byte = [0];
                while stream.read(&mut byte).unwrap() > 0 {
                    stream.write_all(&byte).unwrap();
                }
            }
            _ => return,
        }
    }
}

fn connect(at: SocketAddr) -> TcpStream {
    let begun = Instant::now();
    loop {
        match TcpStream::connect_timeout(&at, Duration::from_secs(1)) {
            Ok(stream) => {
                stream.set_nodelay(true).unwrap();
                return stream;
            }
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(60), "{at}: {error}"),
        }
    }
}

/// In Gbit/s, until the last byte has arrived.
fn throughput(at: SocketAddr) -> f64 {
    let mut stream = connect(at);
    stream.write_all(b"t").unwrap();
    let (buffer, begun) = (vec![0; 1 << 20], Instant::now());
    let mut sent: u32 = 0;
    while begun.elapsed() < STREAM {
        stream.write_all(&buffer).unwrap();
        sent += 1;
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_exact(&mut [0]).unwrap();

    let bits = f64::from(sent) * f64::from(1_u32 << 23);
    bits / begun.elapsed().as_secs_f64() / 1e9
}

/// Of a byte there and back: the median, and the 99th percentile.
fn latency(at: SocketAddr) -> (Duration, Duration) {
    let mut stream = connect(at);
    stream.write_all(b"l").unwrap();
    let mut times: Vec<Duration> = (0..QUESTIONS)
        .map(|_| {
            let begun = Instant::now();
            stream.write_all(b"?").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[QUESTIONS / 2], times[QUESTIONS * 99 / 100])
}
