//! Malicious HTTP/2 frames.

use std::time::Duration;

use super::wire::{Connection, Identity};
use super::{MAPS, Victim};
use crate::simulated_nodes::until;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A GET with nothing compressed: method and scheme from the static table, path and authority
/// literal.
fn get(path: &str) -> Vec<u8> {
    let text = |index: u8, text: &str| {
        let mut field = vec![index, u8::try_from(text.len()).unwrap()];
        field.extend(text.as_bytes());
        field
    };
    [vec![0x82, 0x87], text(0x04, path), text(0x01, "server")].concat()
}

fn open(victim: &Victim) -> Connection {
    let mut connection = victim.connect_as(Identity::administrator(victim.cluster.path()), b"h2");
    connection.send(PREFACE);
    connection.send(&frame(SETTINGS, 0, 0, &[]));
    connection
}

/// The kinds of the frames in what a server has sent.
fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [a, b, c, kind, ..] = bytes {
        kinds.push(*kind);
        let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    kinds
}

#[test]
fn rapid_resets_end_the_connection() {
    let victim = Victim::start();
    let mut connection = open(&victim);
    for stream in (1..100_000).step_by(2) {
        let asked = frame(HEADERS, END_HEADERS | END_STREAM, stream, &get(MAPS));
        let taken_back = frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
        if !connection.send(&[asked, taken_back].concat()) {
            break;
        }
    }

    let frames = kinds(&connection.rest());
    assert!(
        frames.contains(&GOAWAY) || frames.len() < 50_000,
        "{} frames",
        frames.len()
    );

    victim.stays_well();
}

#[test]
fn headers_may_be_many_in_frames_of_the_usual_size() {
    let victim = Victim::start();
    let mut connection = open(&victim);

    // Literal, not indexed, a new name each: 200 fields of a thousand bytes, cut where frames end.
    let mut block = get(MAPS);
    for number in 0..200 {
        let name = format!("x-filler-{number:03}");
        block.extend([0x00, u8::try_from(name.len()).unwrap()]);
        block.extend(name.as_bytes());
        // The length, 1000: 127, and 105 + 6 * 128.
        block.extend([0x7f, 0x80 | 105, 6]);
        block.extend([b'x'; 1000]);
    }

    let parts: Vec<&[u8]> = block.chunks(16 * 1024).collect();
    for (place, part) in parts.iter().enumerate() {
        let (kind, flags) = if place == 0 {
            (HEADERS, END_STREAM)
        } else {
            (CONTINUATION, 0)
        };

        let last = if place + 1 == parts.len() {
            END_HEADERS
        } else {
            0
        };
        connection.send(&frame(kind, flags | last, 1, part));
    }

    let answer = std::iter::from_fn(|| connection.frame())
        .find(|(kind, _)| [HEADERS, GOAWAY].contains(kind));
    let (kind, content) = answer.expect("an answer");

    // A status of 200 stands in the static table.
    assert_eq!(
        (kind, content.first()),
        (HEADERS, Some(&0x88)),
        "{}",
        String::from_utf8_lossy(&content)
    );

    victim.stays_well();
}

#[test]
fn frames_without_end_or_sense_end_the_connection() {
    let victim = Victim::start();
    let ends = |what: &str, bytes: &dyn Fn(&mut Connection)| {
        let mut connection = open(&victim);
        bytes(&mut connection);
        connection.rest();
        println!("{what}: ended");
    };

    ends("headers that go on and on", &|connection| {
        connection.send(&frame(HEADERS, END_STREAM, 1, &get(MAPS)));
        let more = frame(CONTINUATION, 0, 1, &[0x40, 1, b'x', 1, b'y'].repeat(3000));
        while connection.send(&more) {}
    });

    ends("a frame larger than agreed", &|connection| {
        connection.send(&[0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1]);
        connection.send(&[0; 100_000]);
    });

    ends("data on a stream that was not opened", &|connection| {
        connection.send(&frame(DATA, END_STREAM, 5, b"x"));
    });
    ends("headers that cannot be unpacked", &|connection| {
        connection.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 20]));
    });

    ends("an even stream", &|connection| {
        connection.send(&frame(HEADERS, END_HEADERS | END_STREAM, 2, &get(MAPS)));
    });
    victim.stays_well();
}

#[test]
fn a_connection_without_the_preface_is_closed() {
    let victim = Victim::start();
    let mut connection = victim.connect_as(Identity::administrator(victim.cluster.path()), b"h2");
    connection.send(b"GET / HTTP/1.1\r\nHost: server\r\n\r\n");
    assert!(!kinds(&connection.rest()).contains(&HEADERS));
    victim.stays_well();
}

#[test]
fn many_small_requests_cost_little() {
    let victim = Victim::start();
    let mut connection = open(&victim);
    for _ in 0..20_000 {
        if !connection.send(&frame(PING, 0, 0, &[0; 8])) {
            break;
        }
    }

    drop(connection);

    // More requests at once than are allowed: those beyond are refused, one by one.
    let mut connection = open(&victim);
    let watch = format!("{MAPS}?watch=1");
    for stream in (1..600).step_by(2) {
        connection.send(&frame(
            HEADERS,
            END_HEADERS | END_STREAM,
            stream,
            &get(&watch),
        ));
    }

    std::thread::sleep(Duration::from_millis(500));
    drop(connection);
    victim.stays_well();
}

/// Two connections with a hundred requests each for an object of a mebibyte, and no window for the
/// answers.
#[test]
fn answers_that_are_not_read_are_held_up_to_a_bound() {
    const CONNECTIONS: usize = 2;
    const REQUESTS: u32 = 100;
    const MOST_KIB: u64 = 180 * 1024;

    let victim = Victim::start();
    let text = "x".repeat(1000 * 1024);
    let object = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"large"}},"data":{{"k":"{text}"}}}}"#
    );
    let json = "Content-Type: application/json\r\n";
    assert_eq!(
        victim.ask("POST", MAPS, json, object.as_bytes()).status,
        201
    );
    let path = format!("{MAPS}/large");

    let before = victim.resident_kib();
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut connection =
            victim.connect_as(Identity::administrator(victim.cluster.path()), b"h2");
        connection.send(PREFACE);
        // SETTINGS_INITIAL_WINDOW_SIZE: no bytes of any answer may be sent.
        connection.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
        for stream in 0..REQUESTS {
            let headers = END_HEADERS | END_STREAM;
            connection.send(&frame(HEADERS, headers, 2 * stream + 1, &get(&path)));
        }
        // Headers are not subject to windows: every request is answered when all have come.
        let answered = std::iter::from_fn(|| connection.frame())
            .filter(|(kind, _)| *kind == HEADERS)
            .take(REQUESTS as usize)
            .count();
        assert_eq!(answered, REQUESTS as usize);
        connections.push(connection);
    }

    let grown = victim.resident_kib().saturating_sub(before);
    assert!(grown < MOST_KIB, "{grown} KiB more");
    assert_eq!(victim.ask("GET", &path, "", b"").status, 429);
    assert_eq!(victim.ask("GET", "/readyz", "", b"").status, 200);

    drop(connections);
    until("the bytes are given back", || {
        victim.ask("GET", &path, "", b"").status == 200
    });
}
