//! Names that become part of a path, and paths in objects.

use super::dns::dns1123_subdomain;
use super::{Messages, unless};

/// A name that can be one URL path segment: role bindings and others whose names are otherwise
/// unrestricted.
pub fn path_segment_name(name: &str) -> Messages {
    match name {
        "." => vec!["may not be '.'"],
        ".." => vec!["may not be '..'"],
        _ => path_segment_prefix(name),
    }
}

/// A `generateName` for [`path_segment_name`].
pub fn path_segment_prefix(name: &str) -> Messages {
    unless([
        (!name.contains('/'), "may not contain '/'"),
        (!name.contains('%'), "may not contain '%'"),
    ])
}

/// An absolute path: HTTP probes, ingress paths, host paths.
pub fn absolute_path(path: &str) -> Messages {
    unless([(path.starts_with('/'), "must be an absolute path")])
}

/// A relative path that does not leave its directory: volume items, subPath.
pub fn relative_path(path: &str) -> Messages {
    let mut messages = unless([(!path.starts_with('/'), "must be a relative path")]);
    messages.extend(path_without_backsteps(path));
    messages
}

/// A path without `..` segments.
pub fn path_without_backsteps(path: &str) -> Messages {
    unless([(
        path.split('/').all(|segment| segment != ".."),
        "must not contain '..'",
    )])
}

/// `acme.io/foo`, the form of signer names. The caller reports an empty one as required.
pub fn domain_prefixed_path(path: &str) -> Messages {
    let Some((host, path)) = path
        .split_once('/')
        .filter(|(host, path)| !host.is_empty() && !path.is_empty())
    else {
        return vec!["must be a domain-prefixed path (such as \"acme.io/foo\")"];
    };
    let mut messages = dns1123_subdomain(host);

    let of_allowed = path
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte));
    messages.extend(unless([(of_allowed, INVALID_PATH)]));

    messages
}

const INVALID_PATH: &str =
    "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
