//! DNS names: of most objects, of services, of hosts.

use super::{Messages, is_lower_alphanumeric, unless};

/// A label of RFC 1123: `my-name`, `123-abc`.
pub fn dns1123_label(name: &str) -> Messages {
    let is_label = is_dns1123_label(name);
    let dots_only = !is_label && is_dns1123_subdomain(name);
    unless([
        (name.len() <= LABEL_LENGTH, NO_MORE_THAN_63),
        (!dots_only, "must not contain dots"),
        (is_label || dots_only, DNS1123_LABEL),
    ])
}

/// Labels of RFC 1123, separated by dots: `example.com`.
pub fn dns1123_subdomain(name: &str) -> Messages {
    unless([
        (name.len() <= SUBDOMAIN_LENGTH, NO_MORE_THAN_253),
        (is_dns1123_subdomain(name), DNS1123_SUBDOMAIN),
    ])
}

/// Like [`dns1123_subdomain`], with underscores: a pod's search domains.
pub fn dns1123_subdomain_with_underscore(name: &str) -> Messages {
    unless([
        (name.len() <= SUBDOMAIN_LENGTH, NO_MORE_THAN_253),
        (
            name.split('.').all(is_label_with_underscore),
            DNS1123_SUBDOMAIN_WITH_UNDERSCORE,
        ),
    ])
}

/// A label of RFC 1035, which starts with a letter: the name of a service.
pub fn dns1035_label(name: &str) -> Messages {
    let is_label =
        is_dns1123_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase());
    unless([
        (name.len() <= LABEL_LENGTH, NO_MORE_THAN_63),
        (is_label, DNS1035_LABEL),
    ])
}

/// All hosts below a domain: `*.example.com`.
pub fn wildcard_dns1123_subdomain(name: &str) -> Messages {
    unless([
        (name.len() <= SUBDOMAIN_LENGTH, NO_MORE_THAN_253),
        (
            name.strip_prefix("*.").is_some_and(is_dns1123_subdomain),
            WILDCARD_DNS1123_SUBDOMAIN,
        ),
    ])
}

/// A domain of at least three labels: `controller.example.com`. The caller reports an empty one as
/// required.
pub fn fully_qualified_name(name: &str) -> Messages {
    let messages = dns1123_subdomain(name);
    if !messages.is_empty() {
        return messages;
    }
    let segments = name.split('.').count();
    unless([(
        segments >= 3,
        "should be a domain with at least three segments separated by dots",
    )])
}

/// A domain of at least two labels, perhaps with a dot at its end. The caller reports an empty one
/// as required.
pub fn fully_qualified_domain_name(name: &str) -> Messages {
    let name = name.strip_suffix('.').unwrap_or(name);
    let messages = dns1123_subdomain(name);
    if !messages.is_empty() {
        return messages;
    }
    if name.split('.').count() < 2 {
        return vec!["should be a domain with at least two segments separated by dots"];
    }

    name.split('.')
        .map(dns1123_label)
        .find(|messages| !messages.is_empty())
        .unwrap_or_default()
}

pub(super) fn is_dns1123_subdomain(name: &str) -> bool {
    name.split('.').all(is_dns1123_label)
}

fn is_dns1123_label(name: &str) -> bool {
    is_bounded(name.as_bytes(), is_lower_alphanumeric, |byte| byte == b'-')
}

fn is_label_with_underscore(name: &str) -> bool {
    let name = name.strip_prefix('_').unwrap_or(name);
    is_bounded(name.as_bytes(), is_lower_alphanumeric, |byte| {
        byte == b'-' || byte == b'_'
    })
}

/// Whether a text is not empty, has only inner characters, and outer ones at both ends.
pub(super) fn is_bounded(
    name: &[u8],
    outer: impl Fn(u8) -> bool,
    inner: impl Fn(u8) -> bool,
) -> bool {
    let ends = name.first().zip(name.last());
    ends.is_some_and(|(first, last)| outer(*first) && outer(*last))
        && name.iter().all(|byte| outer(*byte) || inner(*byte))
}

const LABEL_LENGTH: usize = 63;
pub(super) const SUBDOMAIN_LENGTH: usize = 253;
const NO_MORE_THAN_63: &str = "must be no more than 63 characters";
pub(super) const NO_MORE_THAN_253: &str = "must be no more than 253 characters";
const DNS1123_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const DNS1123_SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS1123_SUBDOMAIN_WITH_UNDERSCORE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
const DNS1035_LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const WILDCARD_DNS1123_SUBDOMAIN: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
