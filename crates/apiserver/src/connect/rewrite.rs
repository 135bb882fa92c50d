//! The headers of a proxied response: those of one connection are removed, and a redirect to a path
//! of the backend becomes one below the proxy's path.

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Uri};

/// Headers that are about one connection, not about what is sent over it.
const OF_ONE_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
];

/// CORS headers, which only the server itself may set.
const OF_THIS_SERVER: [HeaderName; 4] = [
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_ALLOW_HEADERS,
    header::ACCESS_CONTROL_ALLOW_METHODS,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
];

/// Removes hop-by-hop headers, also those that `Connection` names.
pub(crate) fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok())
        .collect();

    for name in named
        .iter()
        .chain(&OF_ONE_CONNECTION)
        .chain([&header::UPGRADE])
    {
        headers.remove(name);
    }
}

/// Removes the CORS headers of a backend.
pub(crate) fn remove_cors(headers: &mut HeaderMap) {
    for name in &OF_THIS_SERVER {
        headers.remove(name);
    }
}

/// The location of a backend's redirect, as the client reaches it: `prefix` is the path of the
/// proxy, `requested` the URL that was requested from the backend.
pub(super) fn location(
    value: &HeaderValue,
    host: &str,
    prefix: &str,
    requested: &str,
) -> Option<HeaderValue> {
    let text = value.to_str().ok()?;
    let uri: Uri = text.parse().ok()?;
    if uri
        .authority()
        .is_some_and(|authority| authority.as_str() != host)
    {
        return None;
    }

    let path = match uri.path() {
        path if path.starts_with('/') => path.to_owned(),
        relative => format!(
            "{}/{relative}",
            requested.rsplit_once('/').map_or("", |(folder, _)| folder)
        ),
    };

    let query = uri
        .query()
        .map(|query| format!("?{query}"))
        .unwrap_or_default();

    HeaderValue::from_str(&format!("{}{path}{query}", prefix.trim_end_matches('/'))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_below_the_proxy() {
        let check = |given: &str, expected: Option<&str>| {
            let value = HeaderValue::from_str(given).unwrap();
            let prefix = "/api/v1/namespaces/a/pods/b/proxy";
            let found = location(&value, "10.0.0.7:8080", prefix, "/x/y");
            let found = found.map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(found.as_deref(), expected, "{given}");
        };

        check(
            "/login?to=1",
            Some("/api/v1/namespaces/a/pods/b/proxy/login?to=1"),
        );

        check(
            "http://10.0.0.7:8080/",
            Some("/api/v1/namespaces/a/pods/b/proxy/"),
        );

        check("https://elsewhere.example/", None);
    }

    #[test]
    fn hop_by_hop_headers_are_not_forwarded() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-once"),
            ("x-once", "1"),
            ("x-kept", "1"),
            ("te", "trailers"),
        ] {
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }

        remove_hop_by_hop(&mut headers);
        assert_eq!(
            headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
            ["x-kept"]
        );
    }
}
