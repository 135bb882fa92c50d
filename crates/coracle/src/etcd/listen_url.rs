//! URLs to listen on: `http://127.0.0.1:2379`, `https://[::1]:2379`, `unix:///run/etcd.sock`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use coracle_api::Value;
use coracle_settings::Element;
use coracle_store::etcd_server::Listen;

/// A URL to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListenUrl {
    pub(super) text: String,
    pub(super) listen: Listen,
    pub(super) is_secure: bool,
}

impl Element for ListenUrl {
    const KIND: &'static str = "url";
    const LIST: &'static str = "urls";

    fn parse(text: &str) -> Result<ListenUrl, String> {
        let text = text.trim();
        let unknown = || format!("URL scheme must be http, https, unix, or unixs: {text}");
        let (scheme, rest) = text.split_once("://").ok_or_else(unknown)?;
        let is_secure = match scheme {
            "https" | "unixs" => true,
            "http" | "unix" => false,
            _ => return Err(unknown()),
        };

        let listen = match scheme {
            "unix" | "unixs" if rest.is_empty() => {
                return Err(format!("URL has no path of a socket: {text}"));
            }
            "unix" | "unixs" => Listen::Unix(PathBuf::from(rest)),
            _ => Listen::Tcp(address(text, rest)?),
        };
        Ok(ListenUrl {
            text: text.to_owned(),
            listen,
            is_secure,
        })
    }

    fn to_value(&self) -> Value {
        Value::from(self.text.as_str())
    }
}

fn address(url: &str, rest: &str) -> Result<SocketAddr, String> {
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !path.is_empty() {
        return Err(format!("URL must not contain a path: {url}"));
    }

    let form = || format!("URL address does not have the form \"host:port\": {url}");
    let (host, port) = place.rsplit_once(':').ok_or_else(form)?;
    let port: u16 = port.parse().map_err(|_| form())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = match host {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => host
            .parse()
            .map_err(|_| format!("expected IP in URL for binding ({url})"))?,
    };
    Ok(SocketAddr::new(ip, port))
}
