//! Registry client: manifests by name, blobs by digest, and authentication.
//!
//! [`hosts`] says which hosts serve a registry's images; they are asked in order, until one has what
//! is wanted. A request is sent with the last authorization that worked; a challenge is answered
//! once, redirects are followed up to a limit. Authorization is sent to the host that asked for it,
//! never to the target of a redirect.

mod auth;
mod connection;
mod error;
mod hosts;
mod proxy;
mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coracle_base::sync::Mutex;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION, RANGE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::digest::Digest;
use super::documents::{INDEXES, MANIFESTS};
use super::legible::legible;
use super::reference::{Reference, Which};
use auth::Challenge;
pub(crate) use auth::credentials;
pub use auth::{Credentials, Keyring};
pub use connection::Registries;
use connection::Way;
pub(crate) use connection::{Answer, Connector};
pub use error::RegistryError;
use hosts::Host;
pub use hosts::HostsError;
pub use proxy::{Proxies, ProxyError};

/// Limits of response bodies.
pub(crate) const LARGEST_DOCUMENT: u64 = 8 << 20;
const LARGEST_TOKEN: u64 = 1 << 20;
const LARGEST_ERROR_BODY: u64 = 4 << 10;
const MOST_REDIRECTS: usize = 10;
/// Maximum attempts for transient errors.
pub(crate) const ATTEMPTS: u32 = 5;

/// One repository of one registry.
pub(crate) struct Repository {
    connector: Arc<Connector>,
    /// In the order in which they are asked.
    remotes: Vec<Remote>,
    name: String,
}

/// The repository on one host.
struct Remote {
    connector: Arc<Connector>,
    host: Host,
    way: Arc<Way>,
    /// The host's name for the repository.
    repository: String,
    /// As images name it.
    name: String,
    /// The registry, if the host has to be told.
    of: Option<String>,
    /// The base URL, once it is known whether the host has TLS.
    base: OnceCell<String>,
    credentials: Option<Credentials>,
    authorization: Mutex<Option<HeaderValue>>,
    /// It could not be reached: the others are asked first.
    is_unreachable: AtomicBool,
}

/// What a host is asked for.
struct Wanted {
    /// Below the repository: `manifests/v1`.
    path: String,
    /// For errors.
    name: String,
    by_digest: bool,
}

/// A manifest or an index.
pub(crate) struct FetchedManifest {
    pub(crate) media_type: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) digest: Digest,
}

impl Repository {
    /// # Errors
    /// The configuration of hosts cannot be read.
    pub(crate) async fn open(
        connector: &Arc<Connector>,
        image: &Reference,
        credentials: Option<Credentials>,
    ) -> Result<Repository, RegistryError> {
        let (registries, registry) = (connector.registries().clone(), image.registry.clone());
        let reading = move || hosts::read(&registries, &registry);
        let hosts = tokio::task::spawn_blocking(reading)
            .await
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))?;

        let remotes = hosts.into_iter().map(|host| Remote {
            connector: Arc::clone(connector),
            way: connector.way(&host.tls, host.connect_timeout),
            repository: host.repository(&image.repository),
            name: image.name(),
            of: host
                .is_mirror_of(&image.registry)
                .then(|| image.registry.clone()),
            base: OnceCell::new(),
            credentials: credentials.clone().or_else(|| host.credentials.clone()),
            authorization: Mutex::default(),
            is_unreachable: AtomicBool::new(false),
            host,
        });
        Ok(Repository {
            connector: Arc::clone(connector),
            remotes: remotes.collect(),
            name: image.name(),
        })
    }

    /// The digest of a tag, by a HEAD request.
    pub(crate) async fn digest_of(&self, which: &Which) -> Result<Option<Digest>, RegistryError> {
        let wanted = self.manifest_wanted(which);
        let answer = self.request(Method::HEAD, &wanted, &accepted()).await?;
        Ok(answer
            .header("docker-content-digest")
            .and_then(|digest| digest.parse().ok()))
    }

    /// A manifest or an index.
    pub(crate) async fn manifest(&self, which: &Which) -> Result<FetchedManifest, RegistryError> {
        let wanted = self.manifest_wanted(which);
        let answer = self.request(Method::GET, &wanted, &accepted()).await?;
        let media_type = answer.header(CONTENT_TYPE).unwrap_or_default();
        let media_type = media_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_owned();

        let bytes = answer.whole(LARGEST_DOCUMENT).await?;
        let digest = Digest::of(&bytes);

        Ok(FetchedManifest {
            media_type,
            bytes,
            digest,
        })
    }

    /// A blob from an offset on. True if the registry honours the range; false if it sends the
    /// whole blob.
    pub(crate) async fn blob(
        &self,
        digest: Digest,
        from: u64,
    ) -> Result<(Answer, bool), RegistryError> {
        let mut headers = HeaderMap::new();
        if from > 0 {
            headers.insert(RANGE, header_value(&format!("bytes={from}-"))?);
        }
        let wanted = Wanted {
            path: format!("blobs/{digest}"),
            name: format!("{digest} of {}", self.name),
            by_digest: true,
        };
        let answer = self.request(Method::GET, &wanted, &headers).await?;
        let continued = answer.status == StatusCode::PARTIAL_CONTENT;
        Ok((answer, continued))
    }

    /// The delay before the next attempt.
    pub(crate) fn wait_before(&self, attempt: u32) -> Duration {
        self.connector
            .registries()
            .retry_after
            .saturating_mul(1 << attempt.min(5))
    }

    fn manifest_wanted(&self, which: &Which) -> Wanted {
        let name = &self.name;
        let (path, name, by_digest) = match which {
            Which::Tag(tag) => (tag.clone(), format!("{name}:{tag}"), false),
            Which::Digest(digest) => (digest.to_string(), format!("{name}@{digest}"), true),
        };
        Wanted {
            path: format!("manifests/{path}"),
            name,
            by_digest,
        }
    }

    /// Sends a request, with retries for transient errors. All redirects, challenges and retries
    /// together may take as long as all attempts may time out. A failed connect is not retried: the
    /// kubelet retries the pull, and other pulls that wait for this one can continue.
    async fn request(
        &self,
        method: Method,
        wanted: &Wanted,
        headers: &HeaderMap,
    ) -> Result<Answer, RegistryError> {
        let most = self.connector.registries().timeout * ATTEMPTS;
        let asked = tokio::time::timeout(most, self.ask_again_and_again(method, wanted, headers));
        asked.await.unwrap_or_else(|_| {
            Err(RegistryError::Timeout {
                address: wanted.name.clone(),
            })
        })
    }

    async fn ask_again_and_again(
        &self,
        method: Method,
        wanted: &Wanted,
        headers: &HeaderMap,
    ) -> Result<Answer, RegistryError> {
        let mut attempt = 0;
        loop {
            match self.ask_all(&method, wanted, headers).await {
                Err(error @ RegistryError::Connect { .. }) => return Err(error),
                Err(error) if error.is_transient() && attempt + 1 < ATTEMPTS => {
                    let what = &wanted.name;
                    tracing::debug!(what, %error, attempt, "registry request failed; retrying");
                    tokio::time::sleep(self.wait_before(attempt)).await;
                    attempt += 1;
                }
                answer => return answer,
            }
        }
    }

    /// Asks the hosts in order. Of several errors, the one that says most about the image is
    /// returned.
    async fn ask_all(
        &self,
        method: &Method,
        wanted: &Wanted,
        headers: &HeaderMap,
    ) -> Result<Answer, RegistryError> {
        let unreachable = |remote: &&Remote| remote.is_unreachable.load(Ordering::Relaxed);
        let asked = self.remotes.iter().filter(|remote| remote.has(wanted));
        let (last, first): (Vec<_>, Vec<_>) = asked.partition(unreachable);

        let mut failed: Option<RegistryError> = None;
        for remote in first.into_iter().chain(last) {
            let error = match remote.ask(method, wanted, headers).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if matches!(
                error,
                RegistryError::Connect { .. } | RegistryError::Timeout { .. }
            ) {
                remote.is_unreachable.store(true, Ordering::Relaxed);
            }
            if self.remotes.len() > 1 {
                let host = &remote.host.authority;
                tracing::debug!(host, what = wanted.name, %error, "registry host cannot serve the request");
            }
            if failed
                .as_ref()
                .is_none_or(|before| before.weight() < error.weight())
            {
                failed = Some(error);
            }
        }

        Err(failed.unwrap_or_else(|| RegistryError::NoHost(wanted.name.clone())))
    }
}

impl Remote {
    fn has(&self, wanted: &Wanted) -> bool {
        match wanted.by_digest {
            true => self.host.can.pull,
            false => self.host.can.resolve,
        }
    }

    /// The base URL.
    async fn base(&self) -> &str {
        let find = || async {
            let host = &self.host;
            let scheme = match host.scheme {
                Some(scheme) => scheme,
                None if self.connector.is_plain(&host.authority, &self.way).await => "http",
                None => "https",
            };
            let (authority, path) = (&host.authority, &host.path);
            format!("{scheme}://{authority}{path}/{}", self.repository)
        };
        self.base.get_or_init(find).await
    }

    async fn ask(
        &self,
        method: &Method,
        wanted: &Wanted,
        headers: &HeaderMap,
    ) -> Result<Answer, RegistryError> {
        let mut address = format!("{}/{}", self.base().await, wanted.path);
        if let Some(registry) = &self.of {
            address += &format!("?ns={}", escaped(registry));
        }
        let uri = parse(&address)?;
        let name = &wanted.name;

        let shown = self.authorization();
        let answer = self.follow(method, &uri, headers, shown.as_ref()).await?;
        if answer.status != StatusCode::UNAUTHORIZED {
            return self.check_status(&address, name, answer).await;
        }

        let challenge = answer.header(WWW_AUTHENTICATE).unwrap_or_default();
        let challenge = Challenge::read(challenge)?;
        drop(answer);
        let shown = self.authorize(&uri, challenge).await?;

        let answer = self.follow(method, &uri, headers, Some(&shown)).await?;
        if answer.status == StatusCode::UNAUTHORIZED {
            return Err(RegistryError::Denied(self.name.clone()));
        }

        *self.authorization.lock() = Some(shown);

        self.check_status(&address, name, answer).await
    }

    fn authorization(&self) -> Option<HeaderValue> {
        self.authorization.lock().clone()
    }

    /// Follows redirects, and sends the authorization to the registry only.
    async fn follow(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        shown: Option<&HeaderValue>,
    ) -> Result<Answer, RegistryError> {
        let mut at = uri.clone();
        for _ in 0..MOST_REDIRECTS {
            let mut headers = headers.clone();
            let is_registry = at.authority() == uri.authority() && at.scheme() == uri.scheme();
            if is_registry {
                headers.extend(self.host.headers.iter().cloned());
            }
            if let Some(shown) = shown.filter(|_| is_registry) {
                headers.insert(AUTHORIZATION, shown.clone());
            }

            let answer = self
                .connector
                .send(&self.way, method.clone(), &at, headers, None)
                .await?;

            if !answer.status.is_redirection() {
                return Ok(answer);
            }

            at = redirected(&at, answer.header(LOCATION).unwrap_or_default())?;
        }

        Err(RegistryError::Redirects)
    }

    /// Maps a status other than success to an error.
    async fn check_status(
        &self,
        address: &str,
        name: &str,
        answer: Answer,
    ) -> Result<Answer, RegistryError> {
        match answer.status {
            status if status.is_success() => Ok(answer),
            StatusCode::NOT_FOUND => Err(RegistryError::NotFound {
                what: name.to_owned(),
                registry: self.host.authority.clone(),
            }),
            StatusCode::FORBIDDEN => Err(RegistryError::Denied(self.name.clone())),
            status => {
                let body = answer.whole(LARGEST_ERROR_BODY).await.unwrap_or_default();
                let text = legible(String::from_utf8_lossy(&body).trim());
                let text = if text.is_empty() {
                    text
                } else {
                    format!(": {text}")
                };

                Err(RegistryError::Status {
                    url: address.to_owned(),
                    status,
                    text,
                })
            }
        }
    }

    /// The authorization for a challenge.
    async fn authorize(
        &self,
        registry: &Uri,
        challenge: Challenge,
    ) -> Result<HeaderValue, RegistryError> {
        let denied = || RegistryError::Denied(self.name.clone());
        let text = match (challenge, &self.credentials) {
            (_, Some(Credentials::Bearer(token))) => format!("Bearer {token}"),
            (Challenge::Basic, Some(Credentials::User { name, password })) => {
                auth::basic(name, password)
            }
            (Challenge::Basic, _) => return Err(denied()),
            (
                Challenge::Bearer {
                    realm,
                    service,
                    scope,
                },
                credentials,
            ) => {
                let realm = parse(&realm)?;

                // Credentials are sent without TLS only if the registry itself is contacted so.
                if realm.scheme_str() == Some("http")
                    && registry.scheme_str() != Some("http")
                    && credentials.is_some()
                {
                    return Err(RegistryError::Address(realm.to_string()));
                }

                let token = self
                    .token(&realm, service.as_deref(), scope.as_deref())
                    .await?;

                format!("Bearer {token}")
            }
        };

        header_value(&text)
    }

    async fn token(
        &self,
        realm: &Uri,
        service: Option<&str>,
        scope: Option<&str>,
    ) -> Result<String, RegistryError> {
        #[derive(Deserialize)]
        struct Token {
            #[serde(default)]
            token: String,
            #[serde(default)]
            access_token: String,
        }

        let default = format!("repository:{}:pull", self.repository);
        let mut fields = vec![("scope", scope.unwrap_or(&default).to_owned())];
        fields.extend(service.map(|service| ("service", service.to_owned())));

        let mut headers = HeaderMap::new();
        let (method, uri, form) = match &self.credentials {
            Some(Credentials::Identity(token)) => {
                fields.push(("grant_type", "refresh_token".to_owned()));
                fields.push(("refresh_token", token.clone()));
                fields.push(("client_id", "coracle".to_owned()));
                headers.insert(
                    CONTENT_TYPE,
                    HeaderValue::from_static("application/x-www-form-urlencoded"),
                );
                (Method::POST, realm.clone(), Some(encode(&fields)))
            }
            credentials => {
                if let Some(Credentials::User { name, password }) = credentials {
                    headers.insert(AUTHORIZATION, header_value(&auth::basic(name, password))?);
                }

                let joint = if realm.query().is_some() { '&' } else { '?' };
                (
                    Method::GET,
                    parse(&format!("{realm}{joint}{}", encode(&fields)))?,
                    None,
                )
            }
        };

        let sending = self.connector.send(&self.way, method, &uri, headers, form);
        let answer = sending.await?;
        if matches!(
            answer.status,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
        ) {
            return Err(RegistryError::Denied(self.name.clone()));
        }

        let name = format!("token for {} from {realm}", self.name);
        let answer = self.check_status(&realm.to_string(), &name, answer).await?;
        let found: Token = serde_json::from_slice(&answer.whole(LARGEST_TOKEN).await?)
            .map_err(RegistryError::Token)?;

        Ok(if found.token.is_empty() {
            found.access_token
        } else {
            found.token
        })
    }
}

fn accepted() -> HeaderMap {
    let types = INDEXES.iter().chain(&MANIFESTS);
    types
        .map(|name| (ACCEPT, HeaderValue::from_static(name)))
        .collect()
}

/// Reads a challenge of any text.
#[cfg(any(test, feature = "fuzz"))]
pub(super) fn read_challenge(header: &str) {
    drop(Challenge::read(header));
}

/// Where a response redirects to, of any address and header.
#[cfg(any(test, feature = "fuzz"))]
pub(super) fn redirect_target(from: &str, location: &str) -> Option<String> {
    redirected(&parse(from).ok()?, location)
        .ok()
        .map(|uri| uri.to_string())
}

fn parse(address: &str) -> Result<Uri, RegistryError> {
    let wrong = || RegistryError::Address(address.to_owned());
    let uri: Uri = address.parse().map_err(|_| wrong())?;
    let is_usable = matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    if is_usable { Ok(uri) } else { Err(wrong()) }
}

/// The target of a redirect: a URL, or a path of the same host. Never from https to http.
fn redirected(from: &Uri, location: &str) -> Result<Uri, RegistryError> {
    let whole = match location.strip_prefix('/') {
        Some(path) if !path.starts_with('/') => {
            format!(
                "{}://{}/{path}",
                from.scheme_str().unwrap_or("https"),
                connection::authority(from)
            )
        }
        _ => location.to_owned(),
    };
    let to = parse(&whole)?;

    let weaker = from.scheme_str() == Some("https") && to.scheme_str() == Some("http");
    if weaker {
        Err(RegistryError::Address(whole))
    } else {
        Ok(to)
    }
}

fn header_value(text: &str) -> Result<HeaderValue, RegistryError> {
    HeaderValue::from_str(text).map_err(|_| RegistryError::Challenge("unprintable".to_owned()))
}

/// Encodes the fields of a form or a query.
fn encode(fields: &[(&str, String)]) -> String {
    fields
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)))
        .collect::<Vec<_>>()
        .join("&")
}

/// A text as the value of a query.
fn escaped(text: &str) -> String {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let escaped = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(escaped).collect()
}
