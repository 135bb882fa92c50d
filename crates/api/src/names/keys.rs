//! Keys and values inside objects: labels, configuration keys, environment variables, ports,
//! headers.

use super::dns::{NO_MORE_THAN_253, SUBDOMAIN_LENGTH, is_bounded, is_dns1123_subdomain};
use super::{Messages, is_lower_alphanumeric, unless};

/// A label or annotation key, a resource or finalizer name: `app`, `example.com/app`.
pub fn qualified_name(key: &str) -> Messages {
    let mut parts = key.split('/');
    let (first, second, more) = (parts.next().unwrap_or(""), parts.next(), parts.next());
    if more.is_some() {
        return vec![QUALIFIED_NAME];
    }

    let (mut messages, name) = match second {
        None => (Messages::new(), first),
        Some(name) => (prefix_part(first), name),
    };

    messages.extend(unless([
        (!name.is_empty(), "name part must be non-empty"),
        (
            name.len() <= LABEL_LENGTH,
            "name part must be no more than 63 bytes",
        ),
        (is_label_text(name), NAME_PART),
    ]));

    messages
}

fn prefix_part(prefix: &str) -> Messages {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty"];
    }
    unless([
        (
            prefix.len() <= SUBDOMAIN_LENGTH,
            "prefix part must be no more than 253 bytes",
        ),
        (is_dns1123_subdomain(prefix), PREFIX_PART),
    ])
}

/// The value of a label; may be empty.
pub fn label_value(value: &str) -> Messages {
    unless([
        (value.len() <= LABEL_LENGTH, "must be no more than 63 bytes"),
        (value.is_empty() || is_label_text(value), LABEL_VALUE),
    ])
}

/// A key of a ConfigMap or Secret, which becomes a file name.
pub fn config_map_key(key: &str) -> Messages {
    let of_allowed = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || is_inner(byte));
    let mut messages = unless([
        (key.len() <= SUBDOMAIN_LENGTH, NO_MORE_THAN_253),
        (of_allowed, CONFIG_MAP_KEY),
    ]);
    messages.extend(not_a_parent_directory(key));
    messages
}

/// An identifier of the language C.
pub fn c_identifier(name: &str) -> Messages {
    unless([(is_word(name, |byte| byte == b'_'), C_IDENTIFIER)])
}

/// The name of an environment variable under the strict rule.
pub fn env_var_name(name: &str) -> Messages {
    let mut messages = unless([(is_word(name, is_inner), ENV_VAR_NAME)]);
    messages.extend(not_a_parent_directory(name));
    messages
}

/// The name of an environment variable as v1.36 allows it in pods.
pub fn relaxed_env_var_name(name: &str) -> Messages {
    unless([
        (
            !name.is_empty(),
            "environment variable name must be non-empty",
        ),
        (
            name.bytes()
                .all(|byte| (b' '..=b'~').contains(&byte) && byte != b'='),
            RELAXED_ENV_VAR_NAME,
        ),
    ])
}

/// A port's name, which is a service name of RFC 6335: `http`, `dns-tcp`.
pub fn port_name(name: &str) -> Messages {
    let charset = !name.is_empty()
        && name
            .bytes()
            .all(|byte| is_lower_alphanumeric(byte) || byte == b'-');

    unless([
        (name.len() <= 15, "must be no more than 15 characters"),
        (
            charset,
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            name.bytes().any(|byte| byte.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (
            !name.starts_with('-') && !name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ])
}

/// A port's number, not zero.
pub fn port_number(port: i64) -> Messages {
    unless([(
        (1..=65535).contains(&port),
        "must be between 1 and 65535, inclusive",
    )])
}

/// `1%`, `93%`.
pub fn percent(text: &str) -> Messages {
    let is_percent = text.strip_suffix('%').is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    unless([(is_percent, PERCENT)])
}

/// The name of an HTTP header, more strictly than in RFC 7230.
pub fn http_header_name(name: &str) -> Messages {
    let of_allowed = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    unless([(of_allowed, HTTP_HEADER_NAME)])
}

/// A decimal integer: no sign but minus, no leading zero.
pub fn decimal_integer(text: &str) -> Messages {
    if text.is_empty() {
        return vec!["must be non-empty"];
    }
    let digits = text.strip_prefix('-').unwrap_or(text);
    let natural = digits.starts_with(|first: char| ('1'..='9').contains(&first))
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    unless([(
        natural || text == "0",
        "must be a valid decimal integer in canonical form",
    )])
}

fn is_label_text(text: &str) -> bool {
    is_bounded(
        text.as_bytes(),
        |byte| byte.is_ascii_alphanumeric(),
        is_inner,
    )
}

fn is_inner(byte: u8) -> bool {
    matches!(byte, b'-' | b'_' | b'.')
}

/// Letters, digits and some others, but no digit first.
fn is_word(name: &str, others: impl Fn(u8) -> bool) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || others(byte))
}

/// Refuses file names that are, or look like, a parent directory.
fn not_a_parent_directory(name: &str) -> Option<&'static str> {
    match name {
        "." => Some("must not be '.'"),
        ".." => Some("must not be '..'"),
        _ if name.starts_with("..") => Some("must not start with '..'"),
        _ => None,
    }
}

const LABEL_LENGTH: usize = 63;
const QUALIFIED_NAME: &str = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const PREFIX_PART: &str = "prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_MAP_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const C_IDENTIFIER: &str = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')";
const ENV_VAR_NAME: &str = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[-._a-zA-Z][-._a-zA-Z0-9]*')";
const RELAXED_ENV_VAR_NAME: &str = "a valid environment variable name must consist only of printable ASCII characters other than '='";
const PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
const HTTP_HEADER_NAME: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
