//! The front proxy: a server that forwards requests, names their user in headers, and authenticates
//! itself with a client certificate.
//!
//! The headers count only beside a certificate of the request header CA and, where names are
//! configured, with one of these common names. They are removed from all other requests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName};

use super::certificate::{Authorities, VerifiedChain};
use super::{Authenticator, AuthnResult, Presented, User};
use crate::files::FromFiles;
use crate::request::decode_path;

/// A front proxy as the command line describes it.
#[derive(Clone, Debug, Default)]
pub struct FrontProxyConfig {
    pub authorities: PathBuf,
    pub names: Vec<String>,
    pub user_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    pub group_headers: Vec<String>,
    pub extra_prefixes: Vec<String>,
}

impl FrontProxyConfig {
    /// Names that cannot be those of headers name none.
    pub fn headers(&self) -> ProxyHeaders {
        let names = |texts: &[String]| {
            texts
                .iter()
                .filter_map(|text| text.trim().parse().ok())
                .collect()
        };

        ProxyHeaders {
            user: names(&self.user_headers),
            uid: names(&self.uid_headers),
            group: names(&self.group_headers),
            extra_prefixes: self
                .extra_prefixes
                .iter()
                .map(|prefix| prefix.trim().to_lowercase())
                .collect(),
        }
    }
}

/// The names of the headers.
#[derive(Clone, Debug, Default)]
pub struct ProxyHeaders {
    /// The first that is not empty counts.
    pub user: Vec<HeaderName>,
    pub uid: Vec<HeaderName>,
    /// All of them count.
    pub group: Vec<HeaderName>,
    /// In lower case.
    pub extra_prefixes: Vec<String>,
}

pub struct FrontProxy {
    pub authorities: Arc<FromFiles<Authorities>>,
    /// Common names of proxies; empty: any that the authority has signed.
    pub names: Vec<String>,
    pub headers: ProxyHeaders,
}

#[async_trait]
impl Authenticator for FrontProxy {
    async fn authenticate(&self, presented: &Presented<'_>) -> AuthnResult {
        let authorities = self.authorities.current(presented.now);
        let name = match presented.peer.proxy(&authorities, presented.now) {
            VerifiedChain::NoCertificate => return AuthnResult::Unknown,
            VerifiedChain::Wrong(why) => return AuthnResult::Wrong(why),
            VerifiedChain::NoCommonName => String::new(),
            VerifiedChain::Good(proxy) => proxy.name.clone(),
        };

        if !self.names.is_empty() && !self.names.contains(&name) {
            return AuthnResult::Wrong(format!(
                "x509: subject with cn={name} is not in the allowed list"
            ));
        }

        match self.headers.user(presented.headers) {
            Some(user) => AuthnResult::Known(Arc::new(user.authenticated())),
            None => AuthnResult::Unknown,
        }
    }
}

impl ProxyHeaders {
    /// The usual names.
    pub fn standard() -> ProxyHeaders {
        ProxyHeaders {
            user: vec![HeaderName::from_static("x-remote-user")],
            uid: vec![HeaderName::from_static("x-remote-uid")],
            group: vec![HeaderName::from_static("x-remote-group")],
            extra_prefixes: vec!["x-remote-extra-".to_string()],
        }
    }

    /// The user that the headers name.
    fn user(&self, headers: &HeaderMap) -> Option<User> {
        let first = |names: &[HeaderName]| {
            let mut texts = names
                .iter()
                .filter_map(|name| headers.get(name)?.to_str().ok());
            texts.find(|text| !text.is_empty()).map(str::to_string)
        };

        let groups = self.group.iter().flat_map(|name| headers.get_all(name));
        let groups = groups
            .filter_map(|value| value.to_str().ok())
            .filter(|group| !group.is_empty());

        Some(User {
            name: first(&self.user)?,
            uid: first(&self.uid).unwrap_or_default(),
            groups: groups.map(str::to_string).collect(),
            extra: self.extra(headers),
        })
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (name, value) in headers {
                if let (Some(key), Ok(value)) =
                    (name.as_str().strip_prefix(prefix.as_str()), value.to_str())
                {
                    extra
                        .entry(decode_path(key).into_owned())
                        .or_default()
                        .push(value.to_string());
                }
            }
        }

        extra
    }

    /// These and others.
    pub fn and(mut self, others: &ProxyHeaders) -> ProxyHeaders {
        self.user.extend_from_slice(&others.user);
        self.uid.extend_from_slice(&others.uid);
        self.group.extend_from_slice(&others.group);
        self.extra_prefixes
            .extend_from_slice(&others.extra_prefixes);
        self
    }

    /// Removes the headers, whichever client sent them.
    pub fn remove_from(&self, headers: &mut HeaderMap) {
        for name in self.user.iter().chain(&self.uid).chain(&self.group) {
            headers.remove(name);
        }

        let is_extra = |name: &HeaderName| {
            self.extra_prefixes
                .iter()
                .any(|prefix| name.as_str().starts_with(prefix))
        };

        let extra: Vec<HeaderName> = headers
            .keys()
            .filter(|name| is_extra(name))
            .cloned()
            .collect();

        for name in extra {
            headers.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers() -> ProxyHeaders {
        ProxyHeaders {
            user: vec![
                HeaderName::from_static("x-remote-user"),
                HeaderName::from_static("x-other-user"),
            ],
            uid: vec![HeaderName::from_static("x-remote-uid")],
            group: vec![HeaderName::from_static("x-remote-group")],
            extra_prefixes: vec!["x-remote-extra-".to_string()],
        }
    }

    #[test]
    fn the_headers_name_a_user_and_are_taken_away() {
        let mut sent = HeaderMap::new();
        for (name, value) in [
            ("x-remote-user", ""),
            ("x-other-user", "jane"),
            ("x-remote-group", "a"),
            ("x-remote-group", ""),
            ("x-remote-group", "b"),
            ("x-remote-extra-acme.com%2fproject", "one"),
            ("accept", "*/*"),
        ] {
            sent.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }

        let user = headers().user(&sent).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups.join(",")),
            ("jane", "a,b".to_string())
        );

        assert_eq!(user.extra["acme.com/project"], ["one"]);

        headers().remove_from(&mut sent);
        assert_eq!(
            sent.keys().map(HeaderName::as_str).collect::<Vec<_>>(),
            ["accept"]
        );

        assert_eq!(headers().user(&sent), None);
    }
}
