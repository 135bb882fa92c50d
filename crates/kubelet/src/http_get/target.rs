//! The request of a probe or hook.

use coracle_base::net::authority;
use k8s_openapi::api::core::v1::{Container, HTTPGetAction};

use super::{PortError, resolve_port};

/// The version in the `User-Agent` header.
const VERSION: &str = "1.36";

/// A request to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) secure: bool,
    /// A name or an address, without brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Path and query as they are sent.
    pub(super) path: String,
    /// Without `Host`.
    pub(super) headers: Vec<(String, String)>,
    /// Value of `Host` if it is not the authority.
    pub(super) host_header: Option<String>,
}

impl Target {
    /// The request of an action; sent to the pod if the action has no host. `purpose` is part of
    /// the user agent: `probe`, `lifecycle`.
    pub(crate) fn of(
        action: &HTTPGetAction,
        container: &Container,
        pod_ip: &str,
        purpose: &str,
    ) -> Result<Target, PortError> {
        let host = action
            .host
            .clone()
            .filter(|host| !host.is_empty())
            .unwrap_or_else(|| pod_ip.to_owned());

        let given = action.http_headers.iter().flatten();
        let given: Vec<_> = given
            .map(|header| (header.name.clone(), header.value.clone()))
            .collect();
        let first = |name: &str| {
            given
                .iter()
                .find(|(given, _)| given.eq_ignore_ascii_case(name))
        };

        let mut headers = given.clone();
        if first("User-Agent").is_none() {
            headers.push(("User-Agent".to_owned(), format!("kube-{purpose}/{VERSION}")));
        }

        if first("Accept").is_none() {
            headers.push(("Accept".to_owned(), "*/*".to_owned()));
        }

        // A header with an empty value is not sent.
        let nothing = |name: &str| first(name).is_some_and(|(_, value)| value.is_empty());
        for name in ["Accept", "User-Agent"] {
            if nothing(name) {
                headers.retain(|(given, _)| !given.eq_ignore_ascii_case(name));
            }
        }

        headers.retain(|(name, _)| !name.eq_ignore_ascii_case("Host"));

        Ok(Target {
            secure: action
                .scheme
                .as_deref()
                .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https")),
            host,
            port: resolve_port(&action.port, container)?,
            path: path_of(action.path.as_deref().unwrap_or_default()),
            headers,
            host_header: first("Host")
                .map(|(_, value)| value.clone())
                .filter(|value| !value.is_empty()),
        })
    }

    /// The same request without TLS, and without credentials.
    pub(crate) fn plain(&self) -> Target {
        let mut plain = Target {
            secure: false,
            ..self.clone()
        };
        plain
            .headers
            .retain(|(name, _)| !name.eq_ignore_ascii_case("Authorization"));
        plain
    }

    pub(crate) fn authority(&self) -> String {
        authority(&self.host, self.port)
    }

    pub(super) fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Resolves a `Location`; none: the scheme is not supported.
    pub(super) fn redirect(&self, location: &str) -> Option<Target> {
        let (secure, rest) = match location.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, Some(rest)),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, Some(rest)),
            Some((scheme, _)) if scheme.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
                return None;
            }
            _ => (self.secure, location.strip_prefix("//")),
        };

        let Some(rest) = rest else {
            return Some(Target {
                path: self.resolve(location),
                ..self.clone()
            });
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, port) = host_and_port(&rest[..end], if secure { 443 } else { 80 })?;
        let path = path_of(&rest[end..]);

        // A configured `Host` header applies to the original host only.
        Some(Target {
            secure,
            host,
            port,
            path,
            headers: self.headers.clone(),
            host_header: None,
        })
    }

    /// Resolves a path relative to this one.
    fn resolve(&self, location: &str) -> String {
        let own = self.path.split('?').next().unwrap_or_default();
        let (path, query) = match location.find('?') {
            Some(at) => location.split_at(at),
            None => (location, ""),
        };

        let path = match path {
            "" => own.to_owned(),
            path if path.starts_with('/') => path.to_owned(),
            path => format!(
                "{}/{path}",
                own.rsplit_once('/').map_or("", |(folder, _)| folder)
            ),
        };

        path_of(&format!("{}{query}", without_dots(&path)))
    }
}

/// A path and its query, encoded. The host of an absolute URL is dropped, as upstream does.
fn path_of(given: &str) -> String {
    let given = given.split('#').next().unwrap_or_default();
    let named = given
        .split_once("://")
        .map(|(_, rest)| rest)
        .or_else(|| given.strip_prefix("//"));

    let path = match named {
        Some(rest) => rest.find(['/', '?']).map_or("", |at| &rest[at..]),
        None => given,
    };

    let mut encoded = String::with_capacity(path.len() + 1);
    if !path.starts_with('/') {
        encoded.push('/');
    }

    for byte in path.bytes() {
        match byte {
            b'!'..=b'~'
                if !matches!(
                    byte,
                    b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'\\' | b'^' | b'|'
                ) =>
            {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }

    encoded
}

fn host_and_port(authority: &str, default_port: u16) -> Option<(String, u16)> {
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':').unwrap_or_default())
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };

    let port = if port.is_empty() {
        default_port
    } else {
        port.parse().ok()?
    };

    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }

    if path.ends_with("/.") || path.ends_with("/..") {
        parts.push("");
    }

    format!("/{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(action: &str) -> Target {
        let container: Container =
            serde_json::from_str(r#"{"name":"c","ports":[{"name":"web","containerPort":8080}]}"#)
                .unwrap();
        Target::of(
            &serde_json::from_str(action).unwrap(),
            &container,
            "10.1.2.3",
            "probe",
        )
        .unwrap()
    }

    fn describe(target: &Target) -> String {
        let headers: Vec<String> = target
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        format!("{} {}", target.url(), headers.join(" | "))
    }

    #[track_caller]
    fn check(action: &str, expected: &str) {
        assert_eq!(describe(&target(action)), expected, "{action}");
    }

    const DEFAULT_HEADERS: &str = "User-Agent: kube-probe/1.36 | Accept: */*";

    #[test]
    fn a_request_goes_to_the_pod_or_to_the_host_that_is_named() {
        check(
            r#"{"port":"web","path":"/health?deep=1#top"}"#,
            &format!("http://10.1.2.3:8080/health?deep=1 {DEFAULT_HEADERS}"),
        );

        check(
            r#"{"port":80}"#,
            &format!("http://10.1.2.3:80/ {DEFAULT_HEADERS}"),
        );
        check(
            r#"{"port":80,"path":"health"}"#,
            &format!("http://10.1.2.3:80/health {DEFAULT_HEADERS}"),
        );

        check(
            r#"{"port":80,"path":"/a b/ü"}"#,
            &format!("http://10.1.2.3:80/a%20b/%C3%BC {DEFAULT_HEADERS}"),
        );

        check(
            r#"{"port":443,"scheme":"HTTPS","host":"fd00::1"}"#,
            &format!("https://[fd00::1]:443/ {DEFAULT_HEADERS}"),
        );

        check(
            r#"{"port":80,"path":"http://elsewhere/x"}"#,
            &format!("http://10.1.2.3:80/x {DEFAULT_HEADERS}"),
        );
    }

    #[test]
    fn configured_headers_are_sent_and_defaults_are_added() {
        check(
            r#"{"port":80,"httpHeaders":[{"name":"X-A","value":"1"},{"name":"x-a","value":"2"},{"name":"user-agent","value":"me"}]}"#,
            "http://10.1.2.3:80/ X-A: 1 | x-a: 2 | user-agent: me | Accept: */*",
        );
        check(
            r#"{"port":80,"httpHeaders":[{"name":"Accept","value":""},{"name":"User-Agent","value":""}]}"#,
            "http://10.1.2.3:80/ ",
        );
        let named = target(r#"{"port":80,"httpHeaders":[{"name":"Host","value":"shop.example"}]}"#);
        assert_eq!(named.host_header.as_deref(), Some("shop.example"));
        assert_eq!(
            describe(&named),
            format!("http://10.1.2.3:80/ {DEFAULT_HEADERS}")
        );
    }

    #[test]
    fn a_redirect_is_resolved_relative_to_the_request() {
        let from = target(r#"{"port":80,"path":"/a/b?q=1"}"#);
        let check = |location: &str, expected: Option<&str>| {
            assert_eq!(
                from.redirect(location)
                    .map(|target| target.url())
                    .as_deref(),
                expected,
                "{location}"
            );
        };

        check("/c", Some("http://10.1.2.3:80/c"));
        check("c", Some("http://10.1.2.3:80/a/c"));
        check("../c?x", Some("http://10.1.2.3:80/c?x"));
        check("?x=2", Some("http://10.1.2.3:80/a/b?x=2"));
        check("https://10.1.2.3/c", Some("https://10.1.2.3:443/c"));
        check("//other:81", Some("http://other:81/"));
        check("http://[fd00::1]:8080/x", Some("http://[fd00::1]:8080/x"));
        check("ftp://10.1.2.3/", None);
    }
}
