//! The HTTP server: each response contains the request, the addresses of both sides, and the
//! environment of this process, as JSON.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use crate::json;

/// Limits of request headers and bodies.
const LARGEST_HEAD: u64 = 64 << 10;
const LARGEST_BODY: u64 = 1 << 20;

/// Serves until the process ends.
pub(crate) fn run(port: u16) -> io::Result<()> {
    // Dual-stack where the pod has IPv6.
    let listener =
        TcpListener::bind(("::", port)).or_else(|_| TcpListener::bind(("0.0.0.0", port)))?;
    eprintln!("echo: listening on {}", listener.local_addr()?);
    loop {
        match listener.accept() {
            // Errors of one connection do not affect others.
            Ok((stream, _)) => drop(std::thread::Builder::new().spawn(move || serve(&stream))),
            Err(error) => eprintln!("echo: {error}"),
        }
    }
}

fn serve(stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader)? {
        let body = request.response_body(stream)?;
        let keep = if request.keeps_open {
            "keep-alive"
        } else {
            "close"
        };

        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: {keep}\r\n\r\n",
            body.len()
        );

        let mut writer = stream;
        let body = if request.method == "HEAD" { "" } else { &body };
        writer.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice())?;

        if !request.keeps_open {
            break;
        }
    }

    Ok(())
}

struct Request {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
    keeps_open: bool,
}

impl Request {
    /// The next request of a connection; none at its end.
    fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let mut head = reader.take(LARGEST_HEAD);
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Ok(None);
        }

        let words: Vec<&str> = line.split_whitespace().collect();
        let [method, path, version] = words[..] else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (method, path, version) = (method.to_owned(), path.to_owned(), version.to_owned());

        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if head.read_line(&mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match line.trim_end().split_once(':') {
                Some((name, value)) => headers.push((name.to_owned(), value.trim().to_owned())),
                None => break,
            }
        }

        let header = |wanted: &str| {
            headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.as_str())
        };

        let length = header("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        let closes = header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let keeps_open = version == "HTTP/1.1" && !closes && length <= LARGEST_BODY;

        let mut body = Vec::new();
        reader
            .take(length.min(LARGEST_BODY))
            .read_to_end(&mut body)?;
        let body = String::from_utf8_lossy(&body).into_owned();

        Ok(Some(Self {
            method,
            path,
            headers,
            body,
            keeps_open,
        }))
    }

    /// The response body.
    fn response_body(&self, stream: &TcpStream) -> io::Result<String> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let headers = self
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), json::text(value)));

        let environment: Vec<(String, String)> = std::env::vars_os()
            .map(|(name, value)| {
                (
                    name.to_string_lossy().into_owned(),
                    value.to_string_lossy().into_owned(),
                )
            })
            .collect();

        let environment = environment
            .iter()
            .map(|(name, value)| (name.as_str(), json::text(value)));
        let body = json::object([
            ("host", json::text(host.trim())),
            ("address", json::text(&stream.local_addr()?.to_string())),
            ("client", json::text(&stream.peer_addr()?.to_string())),
            ("method", json::text(&self.method)),
            ("path", json::text(&self.path)),
            ("headers", json::object(headers)),
            ("body", json::text(&self.body)),
            ("environment", json::object(environment)),
        ]);

        Ok(body + "\n")
    }
}
