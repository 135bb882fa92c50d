//! Time until the kernel has the rules: all Services at once, and one change among 10, 1,000 and
//! 10,000 of them, with three endpoints each; through netlink, and through the program `nft` with
//! the same changes as text. Runs in its own network namespace. `cargo bench -p coracle-proxy`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what fails here is the benchmark, and it prints"
)]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

#[path = "../../../netlink/tests/namespaces/sys.rs"]
mod sys;

use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use coracle_client::ObjectKey;
use coracle_netlink::nftables::Batch;
use coracle_proxy::compile::NodePortAddresses;
use coracle_proxy::facts::{Endpoint, Node, Service, ServicePort, Slice, SlicePort};
use coracle_proxy::nft::{self, Dialect, Pods, Writer};
use coracle_proxy::rules::{Family, Protocol};
use coracle_proxy::{PodRanges, State};

const CHANGES: usize = 50;

fn main() {
    sys::enter_new_network_namespace();
    println!(
        "{:>9} {:>8} {:>12} {:>12} {:>14} {:>14} {:>14}",
        "services", "through", "compile", "to kernel", "change: us", "change: kernel", "slowest"
    );
    for services in [10, 1_000, 10_000] {
        measure(services, "netlink", |batch| nft::apply(batch).unwrap());
        measure(services, "nft", run_nft);
    }
}

fn measure(services: usize, name: &str, apply: impl Fn(&Batch)) {
    let pods = PodRanges::Given(vec!["10.70.0.0/16".parse().unwrap()]);
    let mut state = State::new(
        "here",
        NodePortAddresses::Primary,
        pods,
        vec!["10.96.0.0/12".parse().unwrap()],
    );

    state.set_node(Some(Node {
        name: "here".into(),
        addresses: vec!["192.0.2.1".parse().unwrap()],
        ..Node::default()
    }));

    for number in 0..services {
        set(&mut state, number, 3);
    }

    let mut writer = Writer::new(Dialect {
        table: "bench".to_owned(),
        families: vec![Family::V4],
        masquerade_bit: 14,
        masquerade_all: false,
        pods: Pods::Ranges(vec![Family::V4]),
    });

    let began = Instant::now();
    state.compile();
    let batch = writer.whole(state.whole());
    let compiled = began.elapsed();
    let began = Instant::now();
    apply(&batch);
    let applied = began.elapsed();

    let (mut ours, mut kernels, mut slowest) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for change in 0..CHANGES {
        let began = Instant::now();

        // A different number of endpoints than before.
        set_slice(
            &mut state,
            change % services,
            if (change / services).is_multiple_of(2) {
                2
            } else {
                3
            },
        );

        let (changes, _) = state.compile();
        let batch = writer.changes(&changes);
        ours += began.elapsed();
        let began = Instant::now();
        apply(&batch);
        kernels += began.elapsed();
        slowest = slowest.max(began.elapsed());
    }

    let each = u32::try_from(CHANGES).unwrap();
    println!(
        "{services:>9} {name:>8} {compiled:>12.1?} {applied:>12.1?} {:>14.1?} {:>14.1?} {slowest:>14.1?}",
        ours / each,
        kernels / each
    );
}

/// The same changes as text.
fn run_nft(batch: &Batch) {
    let mut nft = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut script = nft.stdin.take().unwrap();
    script.write_all(batch.to_string().as_bytes()).unwrap();
    drop(script);
    assert!(nft.wait().unwrap().success());
}

fn set(state: &mut State, number: usize, endpoints: u8) {
    let key = key(number);
    let service = Service {
        key: Arc::new(key.clone()),
        cluster_ips: vec![address(number, 10, 96)],
        ports: vec![ServicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 80,
            node_port: None,
        }],
        external_ips: vec![],
        load_balancer_ips: vec![],
        source_ranges: vec![],
        affinity: None,
        external_local: false,
        internal_local: false,
        health_check_port: None,
    };
    state.set_service(&key, Some(&service));

    set_slice(state, number, endpoints);
}

fn set_slice(state: &mut State, number: usize, endpoints: u8) {
    let endpoint = |last: u8| Endpoint {
        address: IpAddr::from([10, 70, last, u8::try_from(number % 250).unwrap()]),
        node: "there".into(),
        ready: true,
        serving: true,
        terminating: false,
        for_zones: vec![],
        for_nodes: vec![],
    };

    let slice = Slice {
        key: key(number),
        service: key(number),
        ports: vec![SlicePort {
            name: "".into(),
            protocol: Protocol::Tcp,
            port: 8080,
        }],
        endpoints: (1..=endpoints).map(endpoint).collect(),
    };
    state.set_slice(&key(number), Some(&slice));
}

fn key(number: usize) -> ObjectKey {
    ObjectKey::new("shop", &format!("web-{number}"))
}

fn address(number: usize, first: u8, second: u8) -> IpAddr {
    let low = u8::try_from(number % 250 + 1).unwrap();
    IpAddr::from([first, second, u8::try_from(number / 250).unwrap(), low])
}
