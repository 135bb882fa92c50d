//! Connections through a proxy (`proxy-url`): a tunnel to the server, by HTTP `CONNECT` or SOCKS 5.

use std::io;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_base::dial;
use http::Uri;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::config::ConfigError;

/// The maximum length of the head of a proxy's answer.
const HEAD: usize = 8 << 10;

/// A proxy.
pub(super) struct Proxy {
    kind: Kind,
    host: String,
    port: u16,
    /// User name and password, encoded for HTTP.
    credentials: Option<String>,
}

#[derive(Clone, Copy)]
enum Kind {
    Http,
    Socks,
}

impl Proxy {
    /// A proxy in a kubeconfig.
    pub(super) fn parse(url: &str) -> Result<Proxy, ConfigError> {
        let bad = || ConfigError::Proxy(url.to_string());
        let parsed: Uri = url.parse().map_err(|_| bad())?;
        let (kind, usual_port) = match parsed.scheme_str() {
            Some("http") => (Kind::Http, 80),
            Some("socks5" | "socks5h") => (Kind::Socks, 1080),
            _ => return Err(bad()),
        };

        let host = parsed
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(bad)?;

        let authority = parsed
            .authority()
            .map_or("", |authority| authority.as_str());

        Ok(Proxy {
            kind,
            host: host
                .trim_matches(|bracket| matches!(bracket, '[' | ']'))
                .to_string(),
            port: parsed.port_u16().unwrap_or(usual_port),
            credentials: authority
                .rsplit_once('@')
                .map(|(credentials, _)| credentials.to_string()),
        })
    }

    /// A connection to a server through the proxy.
    pub(super) async fn connect(&self, host: &str, port: u16) -> io::Result<TcpStream> {
        let mut stream = dial::tcp((self.host.as_str(), self.port)).await?;
        match self.kind {
            Kind::Http => self.connect_http(&mut stream, host, port).await?,
            Kind::Socks => connect_socks(&mut stream, host, port).await?,
        }
        Ok(stream)
    }

    async fn connect_http(&self, stream: &mut TcpStream, host: &str, port: u16) -> io::Result<()> {
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_string()
        };

        let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n");
        if let Some(credentials) = &self.credentials {
            head += &format!(
                "Proxy-Authorization: Basic {}\r\n",
                STANDARD.encode(credentials)
            );
        }

        stream.write_all(format!("{head}\r\n").as_bytes()).await?;

        // Byte by byte: what follows the head belongs to the server.
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            if answer.len() >= HEAD {
                return Err(io::Error::other("the proxy's answer is too long"));
            }
            answer.push(stream.read_u8().await?);
        }

        let answer = String::from_utf8_lossy(&answer);
        let line = answer.lines().next().unwrap_or_default();
        match line.split(' ').nth(1) {
            Some(code) if code.starts_with('2') => Ok(()),
            _ => Err(io::Error::other(format!("proxy error: {line}"))),
        }
    }
}

/// Without credentials: a tunnel to a host name, which the proxy resolves.
async fn connect_socks(stream: &mut TcpStream, host: &str, port: u16) -> io::Result<()> {
    let refused = |what: &str| io::Error::other(format!("the proxy {what}"));
    stream.write_all(&[5, 1, 0]).await?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).await?;

    if chosen != [5, 0] {
        return Err(refused("requires credentials, which are not supported"));
    }

    let length = u8::try_from(host.len()).map_err(io::Error::other)?;
    let mut request = vec![5, 1, 0, 3, length];
    request.extend_from_slice(host.as_bytes());
    request.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&request).await?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await?;

    if answer[1] != 0 {
        return Err(refused(&format!(
            "cannot reach the server (code {})",
            answer[1]
        )));
    }

    // The bound address is not used, but must be read.
    let address = match answer[3] {
        1 => 4,
        4 => 16,
        3 => usize::from(stream.read_u8().await?),
        _ => return Err(refused("answered with an unknown address type")),
    };

    stream.read_exact(&mut vec![0; address + 2]).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_a_url_of_a_kind_that_is_spoken() {
        let check = |url: &str, expected: Option<(&str, u16)>| {
            let parsed = Proxy::parse(url).ok();
            assert_eq!(
                parsed
                    .as_ref()
                    .map(|proxy| (proxy.host.as_str(), proxy.port)),
                expected,
                "{url}"
            );
        };

        check("http://proxy.example:3128", Some(("proxy.example", 3128)));
        check("http://proxy.example", Some(("proxy.example", 80)));
        check(
            "http://me:secret@proxy.example:1",
            Some(("proxy.example", 1)),
        );

        check("socks5://[::1]", Some(("::1", 1080)));
        check("https://proxy.example", None);
        check("proxy.example:3128", None);
        let proxy = Proxy::parse("http://me:secret@proxy.example").unwrap();
        assert_eq!(proxy.credentials.as_deref(), Some("me:secret"));
    }
}
