//! Servers that report their name and the client's address.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use super::Namespace;

/// Timeout that even a busy machine does not reach.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Timeout after which a packet counts as dropped.
const SILENCE: Duration = Duration::from_millis(1500);

/// A server's response.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Response {
    /// The server.
    pub(crate) by: String,
    /// The client's address, as the server sees it.
    pub(crate) from: IpAddr,
}

/// A TCP server that sends a greeting and echoes all input.
pub(crate) struct Server;

impl Server {
    pub(crate) fn start(namespace: &Namespace, name: &str, port: u16) -> Server {
        let listener = namespace.inside(|| TcpListener::bind(("::", port)).unwrap());
        let name = name.to_owned();
        std::thread::spawn(move || {
            while let Ok((mut stream, peer)) = listener.accept() {
                let greeting = format!("{name} {}\n", peer.ip().to_canonical());
                std::thread::spawn(move || {
                    let mut buffer = [0; 64];
                    let mut said = stream.write_all(greeting.as_bytes());
                    while let (Ok(()), Ok(length @ 1..)) = (said, stream.read(&mut buffer)) {
                        said = stream.write_all(&buffer[..length]);
                    }
                });
            }
        });

        Server
    }
}

/// A UDP server that answers every datagram.
pub(crate) struct Udp;

impl Udp {
    pub(crate) fn start(namespace: &Namespace, name: &str, port: u16) -> Udp {
        let socket = namespace.inside(|| UdpSocket::bind(("::", port)).unwrap());
        let name = name.to_owned();
        std::thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((_, peer)) = socket.recv_from(&mut buffer) {
                let answer = format!("{name} {}\n", peer.ip().to_canonical());
                if socket.send_to(answer.as_bytes(), peer).is_err() {
                    return;
                }
            }
        });

        Udp
    }
}

/// Queries over TCP.
pub(crate) fn ask(client: &Namespace, at: &str) -> io::Result<Response> {
    let at: SocketAddr = at.parse().unwrap();
    client.inside(|| {
        let mut stream = TcpStream::connect_timeout(&at, TIMEOUT)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        let mut said = Vec::new();

        let mut byte = [0];
        while byte != *b"\n" {
            stream.read_exact(&mut byte)?;
            said.push(byte[0]);
        }

        read(&said)
    })
}

/// Queries over UDP, always from the same port.
pub(crate) fn ask_from_port(client: &Namespace, from: &str, at: &str) -> io::Result<Response> {
    let at: SocketAddr = at.parse().unwrap();
    client.inside(|| {
        let socket = bind_again(from)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.connect(at)?;
        socket.send(b"?")?;
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer)?;
        read(&buffer[..length])
    })
}

/// Binds a port that was in use a moment ago: a process forked by another test may hold it until it
/// executes its program.
fn bind_again(from: &str) -> io::Result<UdpSocket> {
    for _ in 0..500 {
        match UdpSocket::bind(from) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                std::thread::sleep(Duration::from_millis(10));
            }
            bound => return bound,
        }
    }
    UdpSocket::bind(from)
}

/// Whether a connection is refused.
pub(crate) fn refused(client: &Namespace, at: &str) -> bool {
    matches!(ask(client, at), Err(error) if error.kind() == io::ErrorKind::ConnectionRefused)
}

/// Whether packets are dropped.
pub(crate) fn dropped(client: &Namespace, at: &str) -> bool {
    let at: SocketAddr = at.parse().unwrap();
    let answer = client.inside(|| TcpStream::connect_timeout(&at, SILENCE));
    matches!(answer, Err(error) if error.kind() == io::ErrorKind::TimedOut)
}

fn read(said: &[u8]) -> io::Result<Response> {
    let said = String::from_utf8_lossy(said);
    let (by, from) = said
        .trim()
        .split_once(' ')
        .ok_or(io::ErrorKind::InvalidData)?;
    Ok(Response {
        by: by.to_owned(),
        from: from.parse().map_err(|_| io::ErrorKind::InvalidData)?,
    })
}
