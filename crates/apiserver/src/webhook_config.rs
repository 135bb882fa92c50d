//! Which webhook is called, as objects of the API say it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Map;

/// Which webhook is called, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    pub target: Target,
    /// The CAs of its certificate in PEM; empty: those of the system.
    pub ca_bundle: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    Url(String),
    Service(ServiceRef),
}

impl Default for Target {
    fn default() -> Target {
        Target::Url(String::new())
    }
}

/// A Service of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceRef {
    pub namespace: String,
    pub name: String,
    pub path: String,
    pub port: u16,
}

impl ServiceRef {
    /// The name in its certificate.
    pub fn host(&self) -> String {
        format!("{}.{}.svc", self.name, self.namespace)
    }
}

impl ClientConfig {
    /// Reads a `clientConfig`.
    pub fn of(map: &Map) -> ClientConfig {
        let target = match map.below("service") {
            Some(service) => Target::Service(ServiceRef {
                namespace: service.text("namespace").to_owned(),
                name: service.text("name").to_owned(),
                path: service.text("path").to_owned(),
                port: match u16::try_from(service.int("port")) {
                    Ok(0) | Err(_) => 443,
                    Ok(port) => port,
                },
            }),
            None => Target::Url(map.text("url").to_owned()),
        };

        // What is stored was decoded before.
        let ca_bundle = STANDARD.decode(map.text("caBundle")).unwrap_or_default();
        ClientConfig { target, ca_bundle }
    }
}
