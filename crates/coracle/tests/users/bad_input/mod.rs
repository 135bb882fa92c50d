//! Malformed and malicious input: answered as upstream does, and the server stays up with bounded
//! memory.

mod bodies;
mod connections;
mod http2;
mod multiplying;
mod requests;
mod slow_readers;
pub(crate) mod wire;

use std::fs;

use wire::{Answer, Connection, Identity};

use crate::cluster::{Cluster, Engine, Server};

/// Memory limit of the server after a test: its idle usage in a debug build, with a margin.
const MAX_MEMORY_KIB: u64 = 256 * 1024;

/// A server under attack, and raw connections to it.
struct Victim {
    cluster: Cluster,
    server: Server,
}

impl Victim {
    fn start() -> Victim {
        let cluster = Cluster::new(Engine::Embedded);
        let server = cluster.start();
        Victim { cluster, server }
    }

    fn connect(&self) -> Connection {
        self.connect_as(Identity::administrator(self.cluster.path()), b"http/1.1")
    }

    fn connect_as(&self, identity: Identity, protocol: &[u8]) -> Connection {
        Connection::open(
            self.cluster.path(),
            &self.server.address,
            identity,
            protocol,
        )
    }

    /// One request on a connection of its own.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        let mut connection = self.connect();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: server\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        connection.send(head.as_bytes());
        connection.send(body);
        connection
            .answer()
            .unwrap_or_else(|| panic!("{method} {path}: closed without an answer"))
    }

    /// Sends a request and compares the status and a part of the body.
    fn check(&self, method: &str, path: &str, headers: &str, body: &[u8], expected: (u16, &str)) {
        let answer = self.ask(method, path, headers, body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let question = format!(
            "{method} {} {headers:?} {shown:?}",
            &path[..path.len().min(120)]
        );
        assert_eq!(answer.status, expected.0, "{question}: {answer:?}");

        assert!(answer.body.contains(expected.1), "{question}: {answer:?}");
        assert!(
            answer.head.to_lowercase().contains("audit-id:"),
            "{question}: {answer:?}"
        );
    }

    /// Checks that it still answers, with bounded memory.
    fn stays_well(mut self) {
        let answer = self.ask("GET", "/readyz", "", b"");
        assert_eq!((answer.status, answer.body.as_str()), (200, "ok"));
        assert!(self.server.child.try_wait().unwrap().is_none());
        let memory = self.resident_kib();
        assert!(memory < MAX_MEMORY_KIB, "{memory} KiB");
        self.server.stop();
    }

    fn resident_kib(&self) -> u64 {
        self.memory_kib("VmRSS:")
    }

    /// A line of `/proc/PID/status`.
    fn memory_kib(&self, name: &str) -> u64 {
        let status =
            fs::read_to_string(format!("/proc/{}/status", self.server.child.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const JSON: &str = "Content-Type: application/json\r\n";
