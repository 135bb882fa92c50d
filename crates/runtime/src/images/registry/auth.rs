//! Registry authentication: credentials, challenges, and which credentials apply to an image.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::RegistryError;
use crate::images::reference::Reference;

/// Credentials of a registry.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Credentials {
    User {
        name: String,
        password: String,
    },
    /// A refresh token.
    Identity(String),
    /// A bearer token.
    Bearer(String),
}

impl std::fmt::Debug for Credentials {
    /// Secrets stay out of logs.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Credentials::User { name, .. } => write!(out, "User({name})"),
            Credentials::Identity(_) => write!(out, "Identity"),
            Credentials::Bearer(_) => write!(out, "Bearer"),
        }
    }
}

/// A `WWW-Authenticate` challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

impl Challenge {
    /// Reads a `WWW-Authenticate` header.
    pub(super) fn read(header: &str) -> Result<Self, RegistryError> {
        let unknown = || RegistryError::Challenge(header.to_owned());
        let (scheme, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));

        let mut parameters = parameters(rest);
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => Ok(Challenge::Basic),
            "bearer" => Ok(Challenge::Bearer {
                realm: parameters.remove("realm").ok_or_else(unknown)?,
                service: parameters.remove("service"),
                scope: parameters.remove("scope"),
            }),
            _ => Err(unknown()),
        }
    }
}

/// `name="value"` pairs with commas between them; values may have commas inside their quotes.
fn parameters(mut text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    while let Some((name, rest)) = text.split_once('=') {
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        let (value, rest) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(',').unwrap_or((rest, "")),
        };
        found.insert(name, value.to_owned());
        text = rest;
    }
    found
}

/// The value of an `Authorization` header.
pub(super) fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{name}:{password}")))
}

/// Credentials by registry and repository, as `docker login` and secrets for image pulls keep them.
#[derive(Clone, Debug, Default)]
pub struct Keyring(Vec<(String, Credentials)>);

/// An entry of such a file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
    registrytoken: String,
}

impl Keyring {
    /// Reads `{"auths": {"registry": {…}}}`, or the older form without `auths`.
    pub fn read(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct File {
            auths: BTreeMap<String, Entry>,
        }

        let entries = match serde_json::from_slice::<File>(bytes) {
            Ok(file) => file.auths,
            Err(_) => serde_json::from_slice::<BTreeMap<String, Entry>>(bytes)?,
        };

        let usable = entries
            .into_iter()
            .filter_map(|(scope, entry)| Some((normalize_scope(&scope), entry.credentials()?)));
        let mut all: Vec<_> = usable.collect();

        // The most specific scope first.
        all.sort_by(|(one, _), (other, _)| other.cmp(one));

        Ok(Self(all))
    }

    /// The credentials for an image, the most specific first.
    pub fn for_image(&self, image: &Reference) -> Vec<Credentials> {
        let fitting = self.0.iter().filter(|(scope, _)| fits(scope, image));
        fitting
            .map(|(_, credentials)| credentials.clone())
            .collect()
    }
}

impl Entry {
    fn credentials(self) -> Option<Credentials> {
        credentials(
            &self.username,
            &self.password,
            &self.auth,
            &self.identitytoken,
            &self.registrytoken,
        )
    }
}

/// The credentials of a set of fields: tokens take precedence over a user.
pub(crate) fn credentials(
    name: &str,
    password: &str,
    auth: &str,
    identity: &str,
    registry: &str,
) -> Option<Credentials> {
    if !registry.is_empty() {
        return Some(Credentials::Bearer(registry.to_owned()));
    }
    if !identity.is_empty() {
        return Some(Credentials::Identity(identity.to_owned()));
    }

    if !name.is_empty() {
        return Some(Credentials::User {
            name: name.to_owned(),
            password: password.to_owned(),
        });
    }

    let decoded = String::from_utf8(STANDARD.decode(auth.trim()).ok()?).ok()?;
    let (name, password) = decoded.split_once(':')?;
    let password = password.trim_end_matches('\0');

    Some(Credentials::User {
        name: name.to_owned(),
        password: password.to_owned(),
    })
}

/// Normalizes an address to a registry with an optional path.
fn normalize_scope(text: &str) -> String {
    let bare = text
        .trim_start_matches("https://")
        .trim_start_matches("http://");
    let (host, path) = bare.split_once('/').unwrap_or((bare, ""));
    let path = path.trim_end_matches('/');

    let host = if host == "index.docker.io" {
        "docker.io"
    } else {
        host
    };

    // `/v1/` and `/v2/` are not part of any repository's name.
    if path.is_empty() || path == "v1" || path == "v2" {
        host.to_owned()
    } else {
        format!("{host}/{path}")
    }
}

/// Whether credentials for a scope apply to an image. Labels of the host may be `*`.
fn fits(scope: &str, image: &Reference) -> bool {
    let (host, path) = scope.split_once('/').unwrap_or((scope, ""));
    let parts_fit = |(wanted, found): (&str, &str)| wanted == "*" || wanted == found;
    let same_length = host.split('.').count() == image.registry.split('.').count();
    let host_fits = same_length
        && host
            .split('.')
            .zip(image.registry.split('.'))
            .all(parts_fit);

    host_fits
        && (path.is_empty()
            || image.repository == path
            || image.repository.starts_with(&format!("{path}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let check = |header: &str, expected: Option<Challenge>| {
            assert_eq!(Challenge::read(header).ok(), expected, "{header}");
        };
        let bearer = |service: Option<&str>, scope: Option<&str>| {
            let (service, scope) = (service.map(str::to_owned), scope.map(str::to_owned));
            Some(Challenge::Bearer {
                realm: "https://a/token".to_owned(),
                service,
                scope,
            })
        };

        let scope = "repository:x/y:pull,push";
        check(
            &format!(r#"Bearer realm="https://a/token",service="r",scope="{scope}""#),
            bearer(Some("r"), Some(scope)),
        );

        check(
            r#"bearer realm="https://a/token", service=r"#,
            bearer(Some("r"), None),
        );

        check(r#"Basic realm="x""#, Some(Challenge::Basic));
        check("Basic", Some(Challenge::Basic));
        check("Bearer", None);
        check("Negotiate", None);
    }

    #[test]
    fn credentials_are_for_their_registry_and_repository_only() {
        let file = br#"{"auths": {
            "https://index.docker.io/v1/": {"auth": "aHViOnB3"},
            "h.io": {"username": "all", "password": "x"},
            "h.io/team": {"identitytoken": "t"},
            "*.wild.io": {"registrytoken": "b"},
            "h.io:5000": {"username": "port", "password": "x"},
            "empty.io": {}
        }}"#;

        let keyring = Keyring::read(file).unwrap();
        let check = |image: &str, expected: &[&str]| {
            let found = keyring.for_image(&image.parse().unwrap());
            let found: Vec<String> = found
                .iter()
                .map(|credentials| format!("{credentials:?}"))
                .collect();
            assert_eq!(found, expected, "{image}");
        };

        check("nginx", &["User(hub)"]);
        check("h.io/x", &["User(all)"]);
        check("h.io/team/x", &["Identity", "User(all)"]);
        check("h.io/teams/x", &["User(all)"]);
        check("h.io:5000/x", &["User(port)"]);
        check("a.wild.io/x", &["Bearer"]);
        check("wild.io/x", &[]);
        check("a.b.wild.io/x", &[]);
        check("empty.io/x", &[]);
        check("evilh.io/x", &[]);
    }
}
