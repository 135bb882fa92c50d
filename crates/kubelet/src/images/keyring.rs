//! Registry credentials from Secrets of the types `kubernetes.io/dockerconfigjson` and
//! `kubernetes.io/dockercfg`.
//!
//! A credential applies to a registry or to a path in it: `registry.example/team`. `*` in the host
//! matches within one label. Of the credentials that match an image, the longest come first.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_cri::v1::AuthConfig;
use k8s_openapi::api::core::v1::Secret;
use serde_json::Value;

use super::records::{PullSecret, sha256_hex};

/// The default registry, as credentials name it.
const DEFAULT: &str = "index.docker.io";

/// All credentials of a pod.
#[derive(Default)]
pub(crate) struct Keyring {
    entries: Vec<(RegistryPath, Credential)>,
}

/// A credential, and the Secret that has it.
#[derive(Clone)]
pub(super) struct Credential {
    pub(super) auth: AuthConfig,
    pub(super) secret: PullSecret,
}

/// What a credential applies to.
struct RegistryPath {
    host: String,
    port: String,
    path: String,
}

impl Keyring {
    /// Adds the credentials of a Secret; unknown formats are ignored.
    pub(super) fn add(&mut self, secret: &Secret) {
        let data = |name: &str| {
            let bytes = &secret.data.as_ref()?.get(name)?.0;
            serde_json::from_slice::<Value>(bytes).ok()
        };

        let json = data(".dockerconfigjson")
            .and_then(|mut config| config.get_mut("auths").map(Value::take));
        let entries = json.or_else(|| data(".dockercfg"));
        for (path, entry) in entries.iter().filter_map(Value::as_object).flatten() {
            if let Some(auth) = auth(entry) {
                let secret = source(secret, &auth, entry);
                let credential = Credential { auth, secret };
                self.entries.push((RegistryPath::parse(path), credential));
            }
        }

        // Longer locations are more specific.
        self.entries.sort_by_key(|(path, _)| {
            std::cmp::Reverse((path.host.len() + path.path.len(), path.path.clone()))
        });
    }

    /// The credentials that match an image, the most specific first.
    pub(super) fn lookup(&self, image: &str) -> Vec<Credential> {
        let image = RegistryPath::parse(&complete(image));
        self.entries
            .iter()
            .filter(|(path, _)| path.covers(&image))
            .map(|(_, credential)| credential.clone())
            .collect()
    }
}

/// The Secret of a credential, with upstream's digest of it.
fn source(secret: &Secret, auth: &AuthConfig, entry: &Value) -> PullSecret {
    let email = entry.get("email").and_then(Value::as_str);
    let mut hashed = coracle_api::Map::new();
    for (name, text) in [
        ("username", auth.username.as_str()),
        ("password", &auth.password),
        ("email", email.unwrap_or_default()),
        ("identitytoken", &auth.identity_token),
    ] {
        if !text.is_empty() {
            hashed.insert(name, text);
        }
    }

    let hashed = coracle_api::codec::json::to_vec(&hashed.into());
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    PullSecret {
        namespace: text(&secret.metadata.namespace),
        name: text(&secret.metadata.name),
        uid: text(&secret.metadata.uid),
        credential_hash: sha256_hex(&hashed),
    }
}

fn auth(entry: &Value) -> Option<AuthConfig> {
    let text = |name: &str| {
        entry
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };

    let mut auth = AuthConfig {
        username: text("username"),
        password: text("password"),
        ..Default::default()
    };

    let both = STANDARD
        .decode(text("auth").trim())
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());

    if let Some((user, password)) = both.as_deref().and_then(|both| both.split_once(':')) {
        auth.username = user.to_owned();
        auth.password = password.trim_end_matches('\0').to_owned();
    }

    auth.identity_token = text("identitytoken");

    (!auth.username.is_empty() || !auth.identity_token.is_empty()).then_some(auth)
}

/// The image with its registry, without tag and digest.
fn complete(image: &str) -> String {
    let image = image.split('@').next().unwrap_or_default();
    let (first, rest) = image.split_once('/').unwrap_or(("", image));
    let has_registry = first.contains(['.', ':']) || first == "localhost";
    let untagged = |path: &str| path.split(':').next().unwrap_or_default().to_owned();
    match (has_registry, first) {
        (true, "docker.io") => format!("{DEFAULT}/{}", untagged(rest)),
        (true, registry) => format!("{registry}/{}", untagged(rest)),
        (false, "") => format!("{DEFAULT}/library/{}", untagged(rest)),
        (false, _) => format!("{DEFAULT}/{}", untagged(image)),
    }
}

impl RegistryPath {
    fn parse(text: &str) -> RegistryPath {
        let text = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (registry, path) = text.split_once('/').unwrap_or((text, ""));
        let (host, port) = registry.split_once(':').unwrap_or((registry, ""));
        let path = path.trim_end_matches('/');

        // Old clients wrote the address of the registry's API.
        let path = if matches!(path, "v1" | "v2") {
            ""
        } else {
            path
        };

        let host = if host == "docker.io" { DEFAULT } else { host };
        RegistryPath {
            host: host.to_owned(),
            port: port.to_owned(),
            path: path.to_owned(),
        }
    }

    fn covers(&self, image: &RegistryPath) -> bool {
        let labels = |host: &str| host.split('.').map(str::to_owned).collect::<Vec<_>>();
        let (own, image_name) = (labels(&self.host), labels(&image.host));
        own.len() == image_name.len()
            && own
                .iter()
                .zip(&image_name)
                .all(|(own, image_name)| glob(own, image_name))
            && self.port == image.port
            && image.path.starts_with(&self.path)
    }
}

/// Matches `*` against any characters. Each part between two stars is matched at its first
/// occurrence, which leaves the most for the rest: a pattern from a Secret cannot cause
/// backtracking.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let (between, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    let Some(mut open) = text.strip_prefix(first) else {
        return false;
    };

    for part in between.split('*') {
        match open.find(part) {
            Some(at) => open = &open[at + part.len()..],
            None => return false,
        }
    }

    open.ends_with(last)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;

    use super::*;

    fn keyring(file: &str, json: &str) -> Keyring {
        let data = Some(BTreeMap::from([(
            file.to_owned(),
            ByteString(json.as_bytes().to_vec()),
        )]));
        let mut keyring = Keyring::default();
        keyring.add(&Secret {
            data,
            ..Secret::default()
        });
        keyring
    }

    fn check(keyring: &Keyring, image: &str, users: &[&str]) {
        let found: Vec<String> = keyring
            .lookup(image)
            .into_iter()
            .map(|credential| credential.auth.username)
            .collect();
        assert_eq!(found, users, "{image}");
    }

    #[test]
    fn the_most_specific_credential_comes_first() {
        let json = r#"{"auths":{
            "https://index.docker.io/v1/":{"auth":"aHViOnB3"},
            "r.example:5000":{"username":"all","password":"p"},
            "r.example:5000/team":{"username":"team","password":"p"},
            "*.example":{"username":"star","password":"p"},
            "*.*.example":{"username":"stars","password":"p"}}}"#;
        let ring = keyring(".dockerconfigjson", json);
        check(&ring, "nginx", &["hub"]);

        check(&ring, "docker.io/library/nginx:1", &["hub"]);
        check(&ring, "team/app@sha256:00", &["hub"]);

        check(&ring, "r.example:5000/team/app:1", &["team", "all"]);
        check(&ring, "r.example:5000/other", &["all"]);
        check(&ring, "r.example/team/app", &["star"]);
        check(&ring, "a.b.example/x", &["stars"]);
        check(&ring, "other.org/x", &[]);
    }

    #[test]
    fn stars_stand_for_any_characters() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(glob(pattern, text), expected, "{pattern} {text}");
        };
        check("r", "r", true);
        check("*", "", true);
        check("*", "any", true);
        check("a*", "a", true);
        check("a*b", "ab", true);
        check("a*b", "axxb", true);

        check("a*b", "a", false);
        check("ab*b", "ab", false);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "a-c-b", false);
        check("*ab*", "aab", true);
        check("a**b", "ab", true);
    }

    #[test]
    fn a_hostile_pattern_is_matched_in_linear_time() {
        assert!(glob(&"*".repeat(1 << 20), "r.example"));
        assert!(!glob(&"*a".repeat(100), &"a".repeat(99)));
        assert!(!glob(&("*a".repeat(60) + "b"), &"a".repeat(255)));
    }

    #[test]
    fn the_older_form_is_read_too() {
        let ring = keyring(".dockercfg", r#"{"r.example":{"auth":"dTpwOnc="}}"#);
        let auth = ring.lookup("r.example/x").swap_remove(0).auth;
        assert_eq!(
            (auth.username.as_str(), auth.password.as_str()),
            ("u", "p:w")
        );
        check(&keyring(".dockercfg", "nonsense"), "r.example/x", &[]);
    }
}
