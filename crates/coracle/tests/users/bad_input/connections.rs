//! Malformed and slow connections.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpSocket;
use tokio::time::Instant;

use super::wire::{Connection, Identity};
use super::{JSON, MAPS, Victim};

#[test]
fn connections_without_tls_are_refused() {
    let victim = Victim::start();
    let say = |bytes: &[u8]| {
        let mut socket = TcpStream::connect(&victim.server.address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        socket.write_all(bytes).unwrap();
        let mut answer = Vec::new();

        // A connection that is reset has been closed as well.
        socket.read_to_end(&mut answer).ok();

        String::from_utf8_lossy(&answer).into_owned()
    };

    let plain = say(b"GET /api HTTP/1.1\r\nHost: server\r\n\r\n");
    assert_eq!(
        plain,
        "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"
    );

    for garbage in [
        &b"\0\0\0\0\0\0\0\0\0\0"[..],
        &[0xff; 4096],
        b"\x16\x03\x01\xff\xff\x01\x00\x00\x01",
    ] {
        assert!(!say(garbage).starts_with("HTTP"), "{garbage:?}");
    }

    victim.stays_well();
}

#[test]
fn a_certificate_of_another_ca_does_not_authenticate() {
    let victim = Victim::start();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "admin");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");

    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let identity = Identity {
        certificates: vec![certificate.der().clone()],
        key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
    };
    let mut connection = victim.connect_as(identity, b"http/1.1");
    connection.send(format!("GET {MAPS} HTTP/1.1\r\nHost: server\r\n\r\n").as_bytes());

    let answer = connection.answer().unwrap();
    assert_eq!(answer.status, 401, "{answer:?}");
    assert!(
        answer.body.contains("\"message\":\"Unauthorized\""),
        "{answer:?}"
    );

    victim.stays_well();
}

/// As many connections as one address may have open, and more than that.
const MOST_OF_ONE_ADDRESS: usize = 512;
const TRIED: usize = 600;

#[test]
fn an_address_has_so_many_connections_and_others_are_still_answered() {
    let victim = Victim::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .unwrap();

    // A connection that is answered, and then left open.
    let open = || {
        let socket = runtime.block_on(async {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
            socket
                .connect(victim.server.address.parse().unwrap())
                .await
                .unwrap()
        });
        let socket = socket.into_std().unwrap();
        socket.set_nonblocking(false).unwrap();

        let mut connection = Connection::over(socket, victim.cluster.path(), None, b"http/1.1");
        connection.send(b"GET /livez HTTP/1.1\r\nHost: server\r\n\r\n");

        connection.head().map(|_| connection)
    };

    let opened: Vec<Connection> = (0..TRIED).filter_map(|_| open()).collect();
    assert_eq!(opened.len(), MOST_OF_ONE_ADDRESS);

    victim.check("GET", MAPS, JSON, b"", (200, "ConfigMapList"));

    // Those that are closed make room for others, as soon as the server has seen it.
    drop(opened);
    while open().is_none() {}
    victim.stays_well();
}

#[test]
fn a_half_closed_connection_is_still_answered() {
    let victim = Victim::start();
    let mut connection = victim.connect();
    connection.send(format!("GET {MAPS} HTTP/1.1\r\nHost: server\r\n\r\n").as_bytes());
    connection.end();
    assert_eq!(connection.answer().unwrap().status, 200);
    assert!(connection.rest().is_empty());

    // A body that ends before its time is no body.
    let mut connection = victim.connect();
    connection.send(
        format!("POST {MAPS} HTTP/1.1\r\nHost: server\r\n{JSON}Content-Length: 1000\r\n\r\n{{")
            .as_bytes(),
    );

    connection.end();
    let status = connection.answer().map(|answer| answer.status);
    assert!(matches!(status, Some(400) | None), "{status:?}");

    victim.stays_well();
}

#[test]
fn bytes_after_a_request_are_parsed_as_the_next_request() {
    let victim = Victim::start();
    let good = format!("GET {MAPS} HTTP/1.1\r\nHost: server\r\n\r\n");

    let second = |bytes: &str| {
        let mut connection = victim.connect();
        connection.send(format!("{good}{bytes}").as_bytes());
        assert_eq!(connection.answer().unwrap().status, 200);
        let status = connection.answer().map(|answer| answer.status);
        if status != Some(200) {
            connection.rest();
        }
        status
    };
    assert_eq!(second(&good), Some(200));

    assert_eq!(second("NONSENSE\r\n\r\n"), Some(400));
    assert_eq!(second("GET / HTTP/9.9\r\n\r\n"), Some(400));

    let smuggled = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: server\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"
    );
    assert_eq!(second(&smuggled), Some(400));

    let chunks = format!(
        "POST {MAPS} HTTP/1.1\r\nHost: server\r\n{JSON}Transfer-Encoding: chunked\r\n\r\nzz\r\n"
    );
    assert_eq!(second(&chunks), Some(400));

    victim.stays_well();
}

#[test]
fn a_request_refused_before_its_body_is_answered_and_the_connection_stays() {
    let victim = Victim::start();
    let anonymous = || {
        Connection::open(
            victim.cluster.path(),
            &victim.server.address,
            None::<Identity>,
            b"http/1.1",
        )
    };

    let post = |length: usize, more: &str| {
        format!(
            "POST {MAPS} HTTP/1.1\r\nHost: server\r\n{JSON}Content-Length: {length}\r\n{more}\r\n"
        )
    };

    let closes = |head: &str| head.to_lowercase().contains("connection: close");

    // In a packet of its own, and as much as a server reads for the sake of a connection.
    for length in [2, 100_000] {
        let mut connection = anonymous();
        for _ in 0..2 {
            connection.send(post(length, "").as_bytes());
            connection.send(&vec![b' '; length]);
            let answer = connection.answer().unwrap();
            assert!(
                answer.status == 403 && !closes(&answer.head),
                "{length}: {answer:?}"
            );
        }
    }

    // More, all of which is written before the answer is looked for.
    let mut connection = anonymous();
    connection.send(post(2_500_000, "").as_bytes());
    connection.send(&vec![b' '; 2_500_000]);
    let answer = connection.answer().unwrap();
    assert!(answer.status == 403 && closes(&answer.head), "{answer:?}");

    connection.rest();

    // No `100 Continue` for a body that is refused.
    let mut connection = anonymous();
    connection.send(post(100, "Expect: 100-continue\r\n").as_bytes());
    let answer = connection.answer().unwrap();
    assert!(answer.status == 403 && closes(&answer.head), "{answer:?}");

    connection.rest();
    victim.stays_well();
}

#[test]
fn slow_connections_time_out() {
    let victim = Victim::start();

    // Bodies: as long as the request may take.
    let mut slow = victim.connect();
    let head = format!(
        "POST {MAPS}?timeout=1s HTTP/1.1\r\nHost: server\r\n{JSON}Content-Length: 100\r\n\r\n{{"
    );
    slow.send(head.as_bytes());

    let answer = slow.answer().unwrap();
    assert_eq!(answer.status, 504, "{answer:?}");
    assert!(
        answer.head.to_lowercase().contains("connection: close"),
        "{answer:?}"
    );

    // Headers: half a minute, however many do it at once, and meanwhile all other clients are served.
    let began = Instant::now();
    let mut slow: Vec<_> = (0..100).map(|_| victim.connect()).collect();
    for connection in &mut slow {
        connection.send(b"GET /api HTTP/1.1\r\nX-Slow: ");
    }

    while began.elapsed() < Duration::from_secs(25) {
        assert_eq!(victim.ask("GET", "/livez", "", b"").status, 200);
        for connection in &mut slow {
            connection.send(b"x");
        }
        thread::sleep(Duration::from_secs(5));
    }

    for connection in &mut slow {
        connection.rest();
    }

    let took = began.elapsed();
    assert!(
        took > Duration::from_secs(30) && took < Duration::from_secs(90),
        "{took:?}"
    );

    victim.stays_well();
}
