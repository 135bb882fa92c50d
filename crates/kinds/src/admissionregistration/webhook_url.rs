//! The address of a webhook: a URL, or a path of a service.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::names;

use crate::strategy::Errors;

const FORM: &str = "; desired format: https://host[/path]";

/// Validates a URL, which has a host and a path and nothing else.
pub(crate) fn validate_url(url: &str, at: &Path<'_>, errors: &mut Errors) {
    let parts = match Parts::parse(url) {
        Ok(parts) => parts,
        Err(fault) => {
            let detail = format!(
                "url must be a valid URL: parse {}: {fault}{FORM}",
                Quoted(url)
            );
            return errors.push(FieldError::required(at, detail));
        }
    };

    if parts.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(FieldError::invalid_str(at, &parts.scheme, detail));
    }

    if parts.host.is_empty() {
        errors.push(FieldError::invalid_str(
            at,
            "",
            format!("host must be specified{FORM}"),
        ));
    }

    let refused = [
        (parts.user, "user information is not permitted in the URL"),
        (parts.fragment, "fragments are not permitted in the URL"),
        (parts.query, "query parameters are not permitted in the URL"),
    ];

    for (found, detail) in refused {
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            errors.push(FieldError::invalid_str(at, found, detail));
        }
    }
}

struct Parts<'u> {
    scheme: String,
    user: Option<&'u str>,
    host: &'u str,
    query: Option<&'u str>,
    fragment: Option<&'u str>,
}

impl<'u> Parts<'u> {
    /// The error is the text of Go's parser.
    fn parse(url: &'u str) -> Result<Parts<'u>, String> {
        if url.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }

        let (rest, fragment) = url
            .split_once('#')
            .map_or((url, None), |(rest, part)| (rest, Some(part)));
        let (scheme, rest) = split_scheme(rest)?;

        let (rest, query) = rest
            .split_once('?')
            .map_or((rest, None), |(rest, part)| (rest, Some(part)));
        let (user, host) = match rest.strip_prefix("//") {
            None => {
                let segment = rest.split('/').next().unwrap_or_default();
                if scheme.is_empty() && segment.contains(':') {
                    return Err("first path segment in URL cannot contain colon".to_owned());
                }
                (None, "")
            }
            Some(rest) => {
                let authority = rest.split('/').next().unwrap_or_default();
                authority
                    .rsplit_once('@')
                    .map_or((None, authority), |(user, host)| (Some(user), host))
            }
        };
        check_host(host)?;

        Ok(Parts {
            scheme: scheme.to_lowercase(),
            user,
            host,
            query,
            fragment,
        })
    }
}

fn split_scheme(url: &str) -> Result<(&str, &str), String> {
    for (place, byte) in url.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if place > 0 => {}
            b':' if place == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&url[..place], &url[place + 1..])),
            _ => break,
        }
    }
    Ok(("", url))
}

fn check_host(host: &str) -> Result<(), String> {
    if let Some(bad) = host.chars().find(|character| {
        matches!(
            character,
            ' ' | '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}'
        )
    }) {
        return Err(format!(
            "invalid character {} in host name",
            Quoted(&bad.to_string())
        ));
    }

    let port = match host.rfind(']') {
        Some(end) => &host[end + 1..],
        None => host.find(':').map_or("", |place| &host[place..]),
    };

    let digits = port.strip_prefix(':');
    if !port.is_empty()
        && digits.is_none_or(|digits| !digits.bytes().all(|byte| byte.is_ascii_digit()))
    {
        return Err(format!("invalid port {} after host", Quoted(port)));
    }

    Ok(())
}

/// Validates the service of a webhook. Name and namespace are swapped in errors, as upstream has
/// it.
pub(crate) fn validate_service(
    (name, namespace): (&str, &str),
    path: Option<&str>,
    port: i32,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if namespace.is_empty() {
        errors.push(FieldError::required(&at.field("name"), ""));
    }
    if name.is_empty() {
        errors.push(FieldError::required(&at.field("namespace"), ""));
    }

    let messages = names::port_number(port.into());
    if !messages.is_empty() {
        let detail = format!("port is not valid: {}", messages.join(", "));
        errors.push(FieldError::invalid(
            &at.field("port"),
            port.to_string(),
            detail,
        ));
    }

    if let Some(path) = path.filter(|path| !matches!(*path, "" | "/")) {
        validate_path(path, &at.field("path"), errors);
    }
}

fn validate_path(path: &str, at: &Path<'_>, errors: &mut Errors) {
    let mut refuse = |detail: String| errors.push(FieldError::invalid_str(at, path, detail));
    if path == "//" {
        return refuse("segment[0] may not be empty".to_owned());
    }
    if !path.starts_with('/') {
        refuse("must start with a '/'".to_owned());
    }

    let mut rest = path.chars();
    rest.next();

    let rest = rest.as_str();
    for (index, step) in rest
        .strip_suffix('/')
        .unwrap_or(rest)
        .split('/')
        .enumerate()
    {
        if step.is_empty() {
            refuse(format!("segment[{index}] may not be empty"));
            continue;
        }
        for message in names::dns1123_subdomain(step) {
            refuse(format!("segment[{index}]: {message}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::check_causes;

    #[test]
    fn url_has_only_a_host_and_a_path() {
        let check = |url: &str, expected: &[&str]| {
            let mut errors = Errors::new();
            validate_url(url, &Path::Root.field("u"), &mut errors);
            check_causes(&errors, expected);
        };

        check("https://example.com/a", &[]);
        check("https://[::1]:8443/", &[]);
        check(
            "http://example.com",
            &["u: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired"],
        );

        check(
            "https://",
            &["u: Invalid value: \"\": host must be specified"],
        );

        check(
            "https://a@b/c?d#e",
            &[
                "u: Invalid value: \"a\": user",
                "u: Invalid value: \"e\": frag",
                "u: Invalid value: \"d\": query",
            ],
        );

        check(
            ":x",
            &[
                "u: Required value: url must be a valid URL: parse \":x\": missing protocol scheme; desired",
            ],
        );

        check(
            "https://a:b/",
            &[
                "u: Required value: url must be a valid URL: parse \"https://a:b/\": invalid port \":b\" after host",
            ],
        );
    }

    #[test]
    fn service_path_segments_are_names() {
        let check = |path: &str, expected: &[&str]| {
            let mut errors = Errors::new();
            validate_service(
                ("s", "n"),
                Some(path),
                443,
                &Path::Root.field("s"),
                &mut errors,
            );

            check_causes(&errors, expected);
        };

        for good in ["", "/", "/a", "/a/b.c/"] {
            check(good, &[]);
        }

        check(
            "//",
            &["s.path: Invalid value: \"//\": segment[0] may not be empty"],
        );

        check(
            "/a//b",
            &["s.path: Invalid value: \"/a//b\": segment[1] may not be empty"],
        );

        check(
            "/A",
            &["s.path: Invalid value: \"/A\": segment[0]: a lowercase RFC 1123 subdomain"],
        );

        check(
            "a/b",
            &[
                "s.path: Invalid value: \"a/b\": must start with a '/'",
                "s.path: Invalid value: \"a/b\": segment[0] may",
            ],
        );
    }
}
