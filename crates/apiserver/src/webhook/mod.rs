//! The client of webhooks: programs outside that the server asks while it handles a request.
//!
//! A [`ClientConfig`] says which webhook it is: a URL, or a Service, which [`service`] resolves to
//! an address before each connection. [`Webhooks`] keeps a [`Client`] for each, with its
//! connections; [`credentials`] finds what the server shows to it. A call is one POST of JSON, whose
//! answer is read up to a limit: [`answer`] turns what comes back into a tree or into a
//! [`CallError`], whose texts are upstream's. Redirects are refused.

mod answer;
mod call;
pub mod conversion;
mod credentials;
mod service;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use coracle_base::sync::Mutex;
use coracle_client::World;
use coracle_client::config::Pem;
use coracle_client::transport::{Dialing, Https};
use http::Uri;

pub use call::{CallError, Client};
pub use credentials::{AdmissionCredentials, Credentials, CredentialsError};
pub use service::{Route, resolve};
pub(crate) use service::{service, slices};

use crate::cache::Caches;
pub use crate::webhook_config::{ClientConfig, ServiceRef, Target};

/// So many clients are kept; the least recently used go first.
const MAX_CLIENTS: usize = 200;

/// The webhooks of a server.
pub struct Webhooks {
    caches: Arc<Caches>,
    credentials: Credentials,
    route: Route,
    world: World,
    clients: Mutex<Clients>,
}

#[derive(Default)]
struct Clients {
    known: HashMap<ClientConfig, (Arc<Client>, u64)>,
    /// Counts the uses.
    used: u64,
}

impl Webhooks {
    pub fn new(
        caches: Arc<Caches>,
        credentials: Credentials,
        route: Route,
        world: World,
    ) -> Webhooks {
        Webhooks {
            caches,
            credentials,
            route,
            world,
            clients: Mutex::default(),
        }
    }

    /// The clock and random source of calls.
    pub fn world(&self) -> World {
        self.world
    }

    /// The client of a webhook, with the connections it has.
    ///
    /// # Errors
    /// The configuration is invalid, with a text for users.
    pub async fn client(&self, config: &ClientConfig) -> Result<Arc<Client>, String> {
        if let Some(known) = self.known(config) {
            return Ok(known);
        }

        let made = Arc::new(self.connect(config).await?);
        let mut clients = self.clients.lock();
        clients.used += 1;
        let used = clients.used;
        let oldest = clients.known.iter().min_by_key(|(_, (_, used))| *used);
        if clients.known.len() >= MAX_CLIENTS
            && let Some(oldest) = oldest.map(|(config, _)| config.clone())
        {
            clients.known.remove(&oldest);
        }
        clients.known.insert(config.clone(), (made.clone(), used));

        Ok(made)
    }

    fn known(&self, config: &ClientConfig) -> Option<Arc<Client>> {
        let mut clients = self.clients.lock();
        clients.used += 1;
        let now = clients.used;
        let (client, used) = clients.known.get_mut(config)?;
        *used = now;
        Some(client.clone())
    }

    async fn connect(&self, config: &ClientConfig) -> Result<Client, String> {
        let (authority, path, resolve, is_local) = match &config.target {
            Target::Service(service) => {
                let authority = format!("{}:{}", service.host(), service.port);
                let (caches, route, service) = (self.caches.clone(), self.route, service.clone());
                let random = self.world.random;
                let path = service.path.clone();
                let resolve: coracle_client::transport::Resolve =
                    Arc::new(move || resolve(&caches, route, random, &service));
                (authority, path, Some(resolve), false)
            }
            Target::Url(url) => {
                let (authority, path) = parse_url(url)?;
                let is_local = is_loopback(&authority);
                (authority, path, None, is_local)
            }
        };

        let mut settings = self.credentials.of(&authority)?;
        settings.server = format!("https://{authority}");
        settings.authorities = (!config.ca_bundle.trim_ascii().is_empty())
            .then(|| Pem::Content(config.ca_bundle.clone()));

        let dialing = Dialing {
            resolve,
            http1_only: !is_local,
            ..Dialing::default()
        };
        let transport = Https::dialing(settings, self.world, dialing).await;
        let transport = transport.map_err(|error| bad_settings(&error))?;

        Ok(Client {
            transport,
            url: format!("https://{authority}"),
            path: call::cleaned(&path),
            now: self.world.now,
        })
    }
}

/// `host[:port]` as the URL has it, and its path.
fn parse_url(url: &str) -> Result<(String, String), String> {
    let parsed: Uri = url
        .parse()
        .map_err(|error| format!("Unparsable URL: {error}"))?;
    let authority = parsed
        .authority()
        .map(ToString::to_string)
        .ok_or("webhook configuration must have either service or URL")?;
    Ok((authority, parsed.path().to_owned()))
}

/// A webhook on the same machine has one backend, so that one connection does.
fn is_loopback(authority: &str) -> bool {
    let host = authority
        .parse::<http::uri::Authority>()
        .map(|authority| authority.host().to_owned())
        .unwrap_or_default();
    let host = host.trim_matches(|bracket| matches!(bracket, '[' | ']'));

    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

fn bad_settings(error: &coracle_client::ConfigError) -> String {
    use coracle_base::tls::client::TlsError;
    use coracle_client::ConfigError;
    match error {
        ConfigError::Tls(TlsError::Authority(_)) => {
            "unable to load root certificates: unable to parse bytes as PEM block".to_owned()
        }
        other => other.to_string(),
    }
}
