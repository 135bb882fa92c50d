//! A minimal HTTP client for `http://` URLs.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

pub(crate) fn fetch(url: &str) -> io::Result<Answer> {
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "only http:// URLs are supported",
        )
    };
    let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
    let (host, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));

    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let place = if has_port {
        host.to_owned()
    } else {
        format!("{host}:80")
    };

    let mut stream = connect(&place)?;
    stream.set_read_timeout(Some(PATIENCE))?;

    // HTTP/1.0: the response ends with the connection and is not chunked.
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;

    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;

    read(&String::from_utf8_lossy(&answer))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "invalid HTTP response"))
}

/// Tries every address that the name has.
fn connect(place: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "name has no address");
    for address in place.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn read(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head
        .strip_prefix("HTTP/1.")?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()?;
    Some(Answer {
        status,
        body: body.to_owned(),
    })
}
