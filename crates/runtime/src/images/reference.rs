//! Image references: parsing and normalization.
//!
//! `nginx` is `docker.io/library/nginx:latest`. The first part is a registry if it looks like a
//! host: it has a dot or a port, or is `localhost`. Grammar and error texts are upstream's.

use std::fmt;
use std::str::FromStr;

use super::digest::Digest;

const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_TAG: &str = "latest";
const LONGEST_NAME: usize = 255;

/// A normalized image reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub registry: String,
    pub repository: String,
    pub which: Which,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    Tag(String),
    /// A tag beside a digest is dropped.
    Digest(Digest),
}

/// The error for an invalid image reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    #[error("invalid reference format")]
    Format,
    #[error("invalid reference format: repository name must be lowercase")]
    UpperCase,
    #[error("repository name must not be more than {LONGEST_NAME} characters")]
    TooLong,
    #[error("invalid repository name, cannot specify 64-byte hexadecimal strings")]
    Id,
}

impl Reference {
    /// Registry and repository, without tag or digest.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }

    /// The same repository's image with this digest.
    pub fn at(&self, digest: Digest) -> Self {
        Self {
            which: Which::Digest(digest),
            ..self.clone()
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.which {
            Which::Tag(tag) => write!(out, "{}:{tag}", self.name()),
            Which::Digest(digest) => write!(out, "{}@{digest}", self.name()),
        }
    }
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        if Digest::from_hex(text).is_ok() {
            return Err(ReferenceError::Id);
        }

        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (
                rest,
                Some(
                    digest
                        .parse::<Digest>()
                        .map_err(|_| ReferenceError::Format)?,
                ),
            ),
            None => (text, None),
        };

        let (registry, rest) = match rest.split_once('/') {
            Some((first, rest)) if is_host(first) => (first, rest),
            _ => (DEFAULT_REGISTRY, rest),
        };

        let (path, tag) = match rest.split_once(':') {
            Some((path, tag)) => (path, Some(tag)),
            None => (rest, None),
        };
        check(registry, path, tag)?;

        let registry = if registry == "index.docker.io" {
            DEFAULT_REGISTRY
        } else {
            registry
        };

        let official = registry == DEFAULT_REGISTRY && !path.contains('/');
        let repository = if official {
            format!("library/{path}")
        } else {
            path.to_owned()
        };

        let which = match digest {
            Some(digest) => Which::Digest(digest),
            None => Which::Tag(tag.unwrap_or(DEFAULT_TAG).to_owned()),
        };

        Ok(Self {
            registry: registry.to_owned(),
            repository,
            which,
        })
    }
}

fn check(registry: &str, path: &str, tag: Option<&str>) -> Result<(), ReferenceError> {
    if !is_host_name(registry) || tag.is_some_and(|tag| !is_tag(tag)) {
        return Err(ReferenceError::Format);
    }

    if !path.split('/').all(is_component) {
        let lower = path.to_lowercase();
        let only_upper_case = lower != path && lower.split('/').all(is_component);
        return Err(if only_upper_case {
            ReferenceError::UpperCase
        } else {
            ReferenceError::Format
        });
    }

    if registry.len() + 1 + path.len() > LONGEST_NAME {
        return Err(ReferenceError::TooLong);
    }

    Ok(())
}

/// Whether the first part of a name is a registry, not a folder of the default one.
fn is_host(first: &str) -> bool {
    first.contains(['.', ':'])
        || first == "localhost"
        || first.bytes().any(|byte| byte.is_ascii_uppercase())
}

/// A host with or without a port: names, IPv4 addresses, IPv6 addresses in brackets.
fn is_host_name(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    };

    let port_is_good =
        port.is_none_or(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
    let label_is_good = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        label.bytes().all(inner)
            && !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
    };

    let host_is_good = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.split('.').all(label_is_good),
    };

    port_is_good && host_is_good
}

/// One part of a repository's path: words of lower-case letters and digits, joined by a dot, one or
/// two underscores, or any number of dashes.
fn is_component(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let joints = text
        .split(|char: char| char.is_ascii() && is_word(char as u8))
        .filter(|joint| !joint.is_empty());
    let good_joint =
        |joint: &str| matches!(joint, "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-');
    text.bytes().next().is_some_and(is_word)
        && text.bytes().last().is_some_and(is_word)
        && joints.into_iter().all(good_joint)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().next().is_some_and(is_word)
        && text
            .bytes()
            .all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_completed_as_upstream_completes_them() {
        let check = |text: &str, expected: &str| {
            assert_eq!(
                text.parse::<Reference>().map(|found| found.to_string()),
                Ok(expected.to_owned()),
                "{text}"
            );
        };

        let digest = Digest::of(b"");
        check("nginx", "docker.io/library/nginx:latest");
        check("nginx:1.27", "docker.io/library/nginx:1.27");
        check("a/b", "docker.io/a/b:latest");
        check("index.docker.io/nginx", "docker.io/library/nginx:latest");
        check("docker.io/nginx", "docker.io/library/nginx:latest");

        check("localhost/x", "localhost/x:latest");
        check("localhost:5000/x/y:t", "localhost:5000/x/y:t");
        check("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10");
        check("[::1]:5000/x", "[::1]:5000/x:latest");
        check("a__b/c.d-e---f", "docker.io/a__b/c.d-e---f:latest");
        check(
            &format!("nginx@{digest}"),
            &format!("docker.io/library/nginx@{digest}"),
        );

        check(
            &format!("nginx:1.27@{digest}"),
            &format!("docker.io/library/nginx@{digest}"),
        );

        check("Host/x", "Host/x:latest");
        check("x:5000", "docker.io/library/x:5000");
    }

    #[test]
    fn invalid_references_are_refused_with_upstreams_errors() {
        let check = |text: &str, expected: ReferenceError| {
            assert_eq!(text.parse::<Reference>(), Err(expected), "{text}");
        };
        for text in [
            "",
            "/x",
            "x/",
            "a//b",
            "x:",
            "x:-t",
            "-x",
            "x-",
            "a___b",
            "a..b",
            "x@sha256:12",
            "h.io:port/x",
            "[::1/x",
            "x y",
            "ä/b",
            "../x",
        ] {
            check(text, ReferenceError::Format);
        }

        check("docker.io/Nginx", ReferenceError::UpperCase);
        check(
            &"a/"
                .repeat(126)
                .trim_end_matches('/')
                .replace("a/a", "ab/a")
                .repeat(2),
            ReferenceError::TooLong,
        );

        check(&Digest::of(b"").hex(), ReferenceError::Id);
        check(&format!("x:{}", "t".repeat(129)), ReferenceError::Format);
    }
}
