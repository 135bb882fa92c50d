//! Mirrors and settings of all registries on one page, as k3s has them in `registries.yaml`.
//!
//! ```yaml
//! mirrors:
//!   docker.io:                            # or "*": every registry without an own entry
//!     endpoint: ["https://mirror.example:5000"]
//!     rewrite: {"^library/(.*)": "hub/$1"}
//! configs:
//!   mirror.example:5000:
//!     auth: {username: u, password: p}    # or auth, identity_token
//!     tls: {ca_file: F, cert_file: F, key_file: F, insecure_skip_verify: false}
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use coracle_api::codec::{json, yaml};
use regex::Regex;
use serde::Deserialize;

use super::{DEFAULT, Host, HostsError, Rewrite, contents, split};
use crate::images::registry::connection::is_loopback;
use crate::images::registry::credentials;

/// Every registry without an own entry.
const ALL: &str = "*";

#[derive(Default)]
pub(super) struct Page {
    path: PathBuf,
    fields: Fields,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Fields {
    mirrors: BTreeMap<String, Mirror>,
    configs: BTreeMap<String, Config>,
    /// Has no meaning for us: k3s keeps it for older versions.
    auths: BTreeMap<String, Auth>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Mirror {
    endpoint: Vec<String>,
    rewrite: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    auth: Option<Auth>,
    tls: Option<Tls>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Auth {
    username: String,
    password: String,
    auth: String,
    identity_token: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Tls {
    ca_file: Option<PathBuf>,
    cert_file: Option<PathBuf>,
    key_file: Option<PathBuf>,
    insecure_skip_verify: bool,
}

impl Page {
    /// A file that does not exist is an empty page.
    pub(super) fn read(path: &Path) -> Result<Page, HostsError> {
        let failed = |why: String| HostsError::new(path, &why);
        let fields = match contents(path)? {
            None => Fields::default(),
            Some(text) if text.trim_ascii().is_empty() => Fields::default(),
            Some(text) => {
                let tree = yaml::decode(&text).map_err(|error| failed(error.to_string()))?;
                serde_json::from_slice(&json::to_vec(&tree))
                    .map_err(|error| failed(error.to_string()))?
            }
        };

        let path = path.to_owned();
        Ok(Page { path, fields })
    }

    /// The mirrors of a registry, and the registry itself at the end.
    pub(super) fn mirrors(&self, registry: &str) -> Result<Vec<Host>, HostsError> {
        let itself = Host::of_registry(registry);
        let mirrors = &self.fields.mirrors;
        let Some(mirror) = mirrors.get(registry).or_else(|| mirrors.get(ALL)) else {
            return Ok(vec![itself]);
        };

        let failed = |why: String| HostsError::new(&self.path, &why);
        let rewrites = rewrites(mirror).map_err(failed)?;
        let mut hosts: Vec<Host> = Vec::new();
        for address in &mirror.endpoint {
            let host = endpoint(address, &rewrites).map_err(failed)?;
            let same = |other: &Host| {
                let of = |host: &Host| (host.scheme, host.authority.clone(), host.path.clone());
                of(other) == of(&host)
            };
            if !hosts.iter().any(same) {
                hosts.push(host);
            }
        }

        let is_last = hosts
            .last()
            .is_some_and(|last| (&last.authority, &last.path) == (&itself.authority, &itself.path));
        if !is_last {
            hosts.push(itself);
        }
        Ok(hosts)
    }

    /// Adds what the page says of a host.
    pub(super) fn configure(&self, host: &mut Host) {
        let configs = &self.fields.configs;
        let by_image_name = (host.authority == DEFAULT.1).then_some(DEFAULT.0);
        let config = configs
            .get(&host.authority)
            .or_else(|| configs.get(by_image_name?))
            .or_else(|| configs.get(ALL));
        let Some(config) = config else {
            return;
        };

        if let Some(auth) = &config.auth {
            host.credentials = credentials(
                &auth.username,
                &auth.password,
                &auth.auth,
                &auth.identity_token,
                "",
            );
        }
        if let Some(tls) = &config.tls {
            host.tls.authorities.extend(tls.ca_file.clone());
            host.tls.skip_verify |= tls.insecure_skip_verify;
            if let Some(identity) = tls.cert_file.clone().zip(tls.key_file.clone()) {
                host.tls.identity = Some(identity);
            }
        }
    }
}

fn rewrites(mirror: &Mirror) -> Result<Vec<Rewrite>, String> {
    let compiled = |(pattern, replacement): (&String, &String)| {
        let compiled = Regex::new(pattern).map_err(|error| format!("rewrite {pattern:?}: {error}"));
        compiled.map(|pattern| Rewrite {
            pattern,
            replacement: replacement.clone(),
        })
    };
    mirror.rewrite.iter().map(compiled).collect()
}

fn endpoint(address: &str, rewrites: &[Rewrite]) -> Result<Host, String> {
    let (scheme, authority, path) = split(address)?;
    let host = authority.parse::<http::uri::Authority>();
    let host = host.map_err(|error| format!("{address:?}: {error}"))?;

    // Without a scheme, a registry on loopback that has a port of its own has no TLS.
    let is_local = is_loopback(host.host()) && host.port_u16().is_some_and(|port| port != 443);
    let default = if is_local { "http" } else { "https" };
    let path = match path.as_str() {
        "" => "/v2".to_owned(),
        _ => path,
    };
    let authority = match authority == DEFAULT.0 {
        true => DEFAULT.1.to_owned(),
        false => authority,
    };

    Ok(Host {
        scheme: scheme.or(Some(default)),
        authority,
        path,
        rewrites: rewrites.to_vec(),
        ..Host::default()
    })
}
