//! Queries per second over UDP on loopback, in zones of 10, 1,000 and 10,000 Services: several
//! clients query Service addresses, and one time in ten a name that does not exist. `cargo bench -p
//! coracle-dns`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what fails here is the benchmark, and it prints"
)]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use coracle_api::codec::json;
use coracle_dns::server::{Handler, Sockets};
use coracle_dns::zone::facts::Service;

const CLIENTS: usize = 4;
/// Queries in flight per client.
const WINDOW: usize = 16;
const RUN_TIME: Duration = Duration::from_secs(5);

fn main() {
    println!("{:>9} {:>14} {:>12}", "services", "questions/s", "worst");

    for services in [10, 1_000, 10_000] {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap();
        let at = runtime.block_on(start(services));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| std::thread::spawn(move || ask(at, services, client)))
            .collect();

        let asked: Vec<(usize, Duration)> = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect();
        let total: usize = asked.iter().map(|(count, _)| count).sum();

        let worst = asked.iter().map(|(_, worst)| *worst).max().unwrap();
        println!(
            "{services:>9} {:>14} {worst:>12.1?}",
            total / usize::try_from(RUN_TIME.as_secs()).unwrap()
        );

        runtime.shutdown_background();
    }
}

async fn start(services: usize) -> SocketAddr {
    let handler = Handler::new(
        "cluster.local",
        vec!["10.0.0.10".parse().unwrap()],
        None,
        &coracle_metrics::Registry::default(),
    );
    handler.change(|zone| {
        zone.add_namespace("shop");
        (0..services).for_each(|number| zone.set_service(service(number)));
    });

    handler.set_complete();
    let sockets = Sockets::open(&["127.0.0.1:0".parse().unwrap()])
        .await
        .unwrap();
    let at = sockets.addresses().unwrap()[0];
    tokio::spawn(sockets.serve(handler));

    at
}

fn service(number: usize) -> Service {
    let ip = format!(
        "10.{}.{}.{}",
        96 + number / 62_500,
        number / 250 % 250,
        number % 250 + 1
    );
    let text = format!(
        r#"{{"metadata":{{"name":"web-{number}","namespace":"shop"}},
            "spec":{{"clusterIP":"{ip}","clusterIPs":["{ip}"],"ports":[{{"name":"http","port":80}}]}}}}"#
    );
    Service::read(&json::parse(text.as_bytes()).unwrap()).unwrap()
}

/// Keeps a window of queries in flight; returns how many were answered, and the longest time of a
/// window.
fn ask(at: SocketAddr, services: usize, client: usize) -> (usize, Duration) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(at).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(1)))
        .unwrap();
    let (mut answered, mut worst, mut buffer) = (0, Duration::ZERO, [0; 512]);
    let began = Instant::now();

    let mut number = client * 7919;
    while began.elapsed() < RUN_TIME {
        let window = Instant::now();

        for _ in 0..WINDOW {
            number += 1;
            let name = if number.is_multiple_of(10) {
                format!("none-{number}")
            } else {
                format!("web-{}", number % services)
            };

            socket
                .send(&question(u16::try_from(number % 65_536).unwrap(), &name))
                .unwrap();
        }

        for _ in 0..WINDOW {
            socket.recv(&mut buffer).unwrap();
            answered += 1;
        }

        worst = worst.max(window.elapsed());
    }

    (answered, worst)
}

/// An encoded query for the IPv4 address of a Service, without a DNS library: encoding must not
/// dominate the measurement.
fn question(id: u16, service: &str) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in [service, "shop", "svc", "cluster", "local"] {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 1, 0, 1]);
    bytes
}
