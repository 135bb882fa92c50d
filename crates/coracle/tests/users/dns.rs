//! `coracle dns`: watches Services, answers while the server is down, also after its own restart.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::tempdir;

use super::cluster::Server;

struct Dns {
    child: Child,
    at: SocketAddr,
}

impl Dns {
    fn start(kubeconfig: &str, state: &Path) -> Dns {
        let mut child = Command::new(env!("CARGO_BIN_EXE_coracle"))
            .args([
                "dns",
                "--kubeconfig",
                kubeconfig,
                "--listen",
                "127.0.0.1:0",
                "--resolv-conf",
                "",
                "--state",
            ])
            .arg(state)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();

        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let at = line
            .trim()
            .strip_prefix("DNS server listening on ")
            .unwrap()
            .parse()
            .unwrap();

        Dns { child, at }
    }

    /// The addresses of a name, or the code of a refusal.
    fn ask(&self, name: &str) -> Result<Vec<Ipv4Addr>, u8> {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();

        let mut question = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            question.push(u8::try_from(label.len()).unwrap());
            question.extend(label.as_bytes());
        }

        question.extend([0, 0, 1, 0, 1]);
        socket.send_to(&question, self.at).unwrap();
        let mut answer = [0; 512];
        let length = socket.recv(&mut answer).unwrap();
        let records = &answer[question.len()..length];

        // Each record is the name again, type, class, time to live, length, and an address of four
        // octets.
        let size = records.len() / usize::from(answer[7].max(1));
        let addresses = records.chunks_exact(size.max(4)).map(|record| {
            let [.., a, b, c, d] = *record else {
                panic!("too short: {record:?}")
            };
            Ipv4Addr::new(a, b, c, d)
        });

        match answer[3] & 15 {
            0 => Ok(addresses.collect()),
            code => Err(code),
        }
    }

    /// Queries until the answer is this one: changes take a moment to arrive.
    fn comes_to(&self, name: &str, expected: Result<&str, u8>) {
        let expected = expected.map(|text| vec![text.parse().unwrap()]);
        for _ in 0..100 {
            if self.ask(name) == expected {
                return;
            }
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(self.ask(name), expected, "{name}");
    }
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

const NO_SUCH_NAME: u8 = 3;

const SLICE: &str = r#"{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","addressType":"IPv4",
    "metadata":{"name":"db-a","labels":{"kubernetes.io/service-name":"db"}},"ports":[{"name":"sql","port":5432}],
    "endpoints":[{"addresses":["10.1.0.1"],"hostname":"db-0","conditions":{"ready":true}},
                 {"addresses":["10.1.0.2"],"hostname":"db-1","conditions":{"ready":false}}]}"#;

#[test]
fn dns_answers_while_the_server_is_down() {
    let folder = tempdir().unwrap();
    let state = folder.path().join("names.json");
    let server = Server::start(folder.path());
    let dns = Dns::start(&server.kubeconfig, &state);
    dns.comes_to("kubernetes.default.svc.cluster.local", Ok("10.96.0.1"));

    dns.comes_to("web.default.svc.cluster.local", Err(NO_SUCH_NAME));
    server.kubectl(&[
        "create",
        "service",
        "clusterip",
        "web",
        "--clusterip=10.96.0.50",
        "--tcp=80",
    ]);

    dns.comes_to("web.default.svc.cluster.local", Ok("10.96.0.50"));
    server.kubectl(&[
        "create",
        "service",
        "clusterip",
        "db",
        "--clusterip=None",
        "--tcp=5432",
    ]);

    std::fs::write(folder.path().join("slice.json"), SLICE).unwrap();
    server.kubectl(&[
        "create",
        "-f",
        folder.path().join("slice.json").to_str().unwrap(),
    ]);

    dns.comes_to("db.default.svc.cluster.local", Ok("10.1.0.1"));
    dns.comes_to("db-0.db.default.svc.cluster.local", Ok("10.1.0.1"));
    dns.comes_to("db-1.db.default.svc.cluster.local", Err(NO_SUCH_NAME));
    server.kubectl(&["delete", "service", "web"]);
    dns.comes_to("web.default.svc.cluster.local", Err(NO_SUCH_NAME));

    // What was known is on the disk soon after.
    for _ in 0..100 {
        if std::fs::read_to_string(&state)
            .is_ok_and(|text| text.contains("10.1.0.1") && !text.contains("\"web\""))
        {
            break;
        }
        thread::sleep(Duration::from_millis(50));
    }

    let kubeconfig = server.kubeconfig.clone();
    server.stop();
    dns.comes_to("db.default.svc.cluster.local", Ok("10.1.0.1"));
    drop(dns);
    let dns = Dns::start(&kubeconfig, &state);
    assert_eq!(
        dns.ask("db-0.db.default.svc.cluster.local"),
        Ok(vec![Ipv4Addr::new(10, 1, 0, 1)])
    );

    assert_eq!(dns.ask("web.default.svc.cluster.local"), Err(NO_SUCH_NAME));
}
