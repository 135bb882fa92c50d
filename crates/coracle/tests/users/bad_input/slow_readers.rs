//! Clients that request long lists and do not read them: the server buffers only a chunk for each,
//! in every encoding.

use super::Victim;
use super::wire::Connection;

/// So many ask at once.
const READERS: usize = 20;

/// The list has so many objects of this many KiB.
const OBJECTS: usize = 400;
const OBJECT_KIB: usize = 64;

/// What the server may take for all of them together: three of the lists, where each once took one.
const MOST_KIB: u64 = 64 * 1024;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

impl Victim {
    /// Asks for a list, and reads no more of the answer than its head.
    fn asks_and_stops(&self, accept: &str, query: &str) -> Connection {
        let mut connection = self.connect();
        let request =
            format!("GET {MAPS}?{query} HTTP/1.1\r\nHost: server\r\nAccept: {accept}\r\n\r\n");
        connection.send(request.as_bytes());
        let head = connection.head().expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200 "), "{accept}: {head}");
        connection
    }
}

#[test]
fn lists_are_not_buffered_for_clients_that_do_not_read() {
    let victim = Victim::start();
    let line = "x".repeat(1024);

    let data: Vec<String> = (0..OBJECT_KIB)
        .map(|place| format!(r#""k{place}":"{line}""#))
        .collect();
    for place in 0..OBJECTS {
        let data = data.join(",");
        let object = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"c{place}"}},"data":{{{data}}}}}"#
        );
        let answer = victim.ask(
            "POST",
            MAPS,
            "Content-Type: application/json\r\n",
            object.as_bytes(),
        );

        assert_eq!(
            answer.status,
            201,
            "{}",
            &answer.body[..answer.body.len().min(300)]
        );
    }

    let table = "as=Table;g=meta.k8s.io;v=v1";
    for (accept, query) in [
        ("application/vnd.kubernetes.protobuf".to_owned(), ""),
        ("application/yaml".to_owned(), ""),
        ("application/json".to_owned(), "pretty=true"),
        (format!("application/json;{table}"), "includeObject=Object"),
        (format!("application/yaml;{table}"), "includeObject=Object"),
        ("application/json".to_owned(), ""),
    ] {
        // The first one: what it takes to make such a list at all.
        let first = victim.asks_and_stops(&accept, query);
        let before = victim.resident_kib();
        let readers: Vec<Connection> = (1..READERS)
            .map(|_| victim.asks_and_stops(&accept, query))
            .collect();

        let after = victim.resident_kib();
        let grown = after.saturating_sub(before);
        assert!(
            grown < MOST_KIB,
            "{accept} {query}: {before} KiB became {after} KiB"
        );

        // A client that continues to read gets the whole list.
        let mut last = first;
        let length = last.body_of_chunks();
        assert!(
            length > OBJECTS * OBJECT_KIB * 1024,
            "{accept} {query}: {length}"
        );

        drop(readers);
    }

    assert_eq!(victim.ask("GET", "/readyz", "", b"").status, 200);
}
