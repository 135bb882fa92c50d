//! A minimal HTTP client for `http://` URLs.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Response {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

pub(crate) fn fetch(url: &str) -> io::Result<Response> {
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
    let address = if has_port {
        host.to_owned()
    } else {
        format!("{host}:80")
    };

    let mut stream = connect(&address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;

    // HTTP/1.0: the response ends with the connection and is not chunked.
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;

    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;

    read(&String::from_utf8_lossy(&response))
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "invalid HTTP response"))
}

/// Tries every address that the name has.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::new(io::ErrorKind::NotFound, "name has no address");
    for candidate in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&candidate, TIMEOUT) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn read(response: &str) -> Option<Response> {
    let (head, body) = response.split_once("\r\n\r\n")?;
    let status = head
        .strip_prefix("HTTP/1.")?
        .split(' ')
        .nth(1)?
        .parse()
        .ok()?;
    Some(Response {
        status,
        body: body.to_owned(),
    })
}
