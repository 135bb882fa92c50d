//! Folders of hosts, as containerd has them: `<folder>/<registry>/hosts.toml`, for all others
//! `<folder>/_default/hosts.toml`. A folder without that file may have certificates, as Docker has
//! them: `*.crt` are authorities, `*.cert` with `*.key` identify this client.

use std::path::{Path, PathBuf};
use std::time::Duration;

use coracle_api::time::Duration as Span;
use http::{HeaderName, HeaderValue};
use serde::Deserialize;
use toml::{Table, Value};

use super::{Capabilities, Host, HostsError, TlsSettings, contents, split};

const FILE: &str = "hosts.toml";

/// The settings of one host; unknown ones belong to newer versions.
#[derive(Deserialize)]
struct Settings {
    capabilities: Option<Vec<String>>,
    ca: Option<Paths>,
    client: Option<Clients>,
    #[serde(default)]
    skip_verify: bool,
    #[serde(default)]
    header: Table,
    dial_timeout: Option<String>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "invalid type for \"ca\": expected a path or a list of paths"
)]
enum Paths {
    One(PathBuf),
    Many(Vec<PathBuf>),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "invalid type for \"client\": expected a path, or a list of paths or pairs of paths"
)]
enum Clients {
    One(PathBuf),
    Many(Vec<PathBuf>),
    Pairs(Vec<(PathBuf, PathBuf)>),
}

/// The hosts of a registry; none: there is no folder for it.
pub(super) fn read(folder: &Path, registry: &str) -> Result<Option<Vec<Host>>, HostsError> {
    let found = names(registry)
        .map(|name| folder.join(name))
        .find(|own| own.is_dir());
    let Some(own) = found else {
        return Ok(None);
    };

    let file = own.join(FILE);
    let failed = |why: String| HostsError::new(&file, &why);
    let Some(bytes) = contents(&file)?.filter(|bytes| !bytes.is_empty()) else {
        return certificates(&own, registry).map(|host| Some(vec![host]));
    };
    let text = String::from_utf8(bytes).map_err(|error| failed(error.to_string()))?;
    let table: Table = text.parse().map_err(|error| failed(format!("{error}")))?;

    parse(table, &own, registry).map(Some).map_err(failed)
}

/// The folders of a registry; the first that exists counts.
fn names(registry: &str) -> impl Iterator<Item = String> {
    let without_colon = registry
        .rsplit_once(':')
        .map(|(host, port)| format!("{host}_{port}_"));
    let all = [
        without_colon,
        Some(registry.to_owned()),
        Some("_default".to_owned()),
    ];
    // A registry's name comes from a pod.
    all.into_iter()
        .flatten()
        .filter(|name| !name.contains('/') && !name.starts_with('.'))
}

fn parse(mut table: Table, own: &Path, registry: &str) -> Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    match table.remove("host") {
        None => {}
        Some(Value::Table(listed)) => {
            for (address, settings) in listed {
                hosts.push(host(&address, settings, own)?);
            }
        }
        Some(_) => return Err("host must be a table".to_owned()),
    }

    let server = match table.remove("server") {
        None => String::new(),
        Some(Value::String(server)) => server,
        Some(_) => return Err("server must be a text".to_owned()),
    };
    let last = match server.as_str() {
        "" => {
            let settings = settings(Value::Table(table), own)?;
            Host {
                tls: settings.tls,
                headers: settings.headers,
                connect_timeout: settings.connect_timeout,
                ..Host::of_registry(registry)
            }
        }
        server => host(server, Value::Table(table), own)?,
    };
    hosts.push(last);

    Ok(hosts)
}

fn host(address: &str, given: Value, own: &Path) -> Result<Host, String> {
    let overrides_path = given.get("override_path").and_then(Value::as_bool) == Some(true);
    let (scheme, authority, path) = split(address)?;
    let path = if overrides_path || path.ends_with("/v2") {
        path
    } else {
        path + "/v2"
    };

    Ok(Host {
        scheme: scheme.or(Some("https")),
        authority,
        path,
        ..settings(given, own)?
    })
}

fn settings(given: Value, own: &Path) -> Result<Host, String> {
    let given: Settings = given.try_into().map_err(|error| format!("{error}"))?;
    let connect_timeout = given.dial_timeout.as_deref().map(span).transpose()?;
    let tls = TlsSettings {
        authorities: match given.ca {
            None => Vec::new(),
            Some(Paths::One(path)) => vec![own.join(path)],
            Some(Paths::Many(paths)) => paths.iter().map(|path| own.join(path)).collect(),
        },
        identity: given
            .client
            .as_ref()
            .and_then(|client| identity(client, own)),
        skip_verify: given.skip_verify,
    };

    Ok(Host {
        can: capabilities(given.capabilities.as_deref())?,
        headers: headers(&given.header)?,
        tls,
        connect_timeout,
        ..Host::default()
    })
}

/// The first identity: a server has no use for more.
fn identity(client: &Clients, own: &Path) -> Option<(PathBuf, PathBuf)> {
    let both = |path: &Path| (own.join(path), own.join(path));
    match client {
        Clients::One(path) => Some(both(path)),
        Clients::Many(paths) => paths.first().map(|path| both(path)),
        Clients::Pairs(pairs) => pairs
            .first()
            .map(|(certificate, key)| (own.join(certificate), own.join(key))),
    }
}

fn capabilities(names: Option<&[String]>) -> Result<Capabilities, String> {
    let Some(names) = names.filter(|names| !names.is_empty()) else {
        return Ok(Capabilities::default());
    };
    let mut can = Capabilities {
        pull: false,
        resolve: false,
    };
    for name in names {
        match name.to_ascii_lowercase().as_str() {
            "pull" => can.pull = true,
            "resolve" => can.resolve = true,
            // Nothing is pushed from here.
            "push" => {}
            _ => return Err(format!("unknown capability {name:?}")),
        }
    }
    Ok(can)
}

fn headers(table: &Table) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let mut headers = Vec::new();
    for (name, given) in table {
        let wrong = |why: &str| format!("header {name:?}: {why}");
        let parsed: HeaderName = name.parse().map_err(|_| wrong("invalid name"))?;

        let values: Vec<&str> = match given {
            Value::String(value) => vec![value],
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            _ => return Err(wrong("expected a text or a list of texts")),
        };
        for value in values {
            let value = HeaderValue::from_str(value).map_err(|_| wrong("invalid value"))?;
            headers.push((parsed.clone(), value));
        }
    }
    Ok(headers)
}

fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("dial_timeout: {text:?} is not a duration such as 10s");
    let span = text.parse::<Span>().map_err(|_| wrong())?;
    span.to_std().ok_or_else(wrong)
}

/// The registry itself, with the certificates of its folder.
fn certificates(own: &Path, registry: &str) -> Result<Host, HostsError> {
    let failed = |error: std::io::Error| HostsError::new(own, &error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(own).map_err(failed)? {
        paths.push(entry.map_err(failed)?.path());
    }
    paths.sort();

    let mut host = Host::of_registry(registry);
    for path in paths {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("crt") => host.tls.authorities.push(path),
            Some("cert") => host.tls.identity = Some((path.clone(), path.with_extension("key"))),
            _ => {}
        }
    }
    Ok(host)
}
