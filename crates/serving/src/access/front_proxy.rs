//! Front proxies: servers that forward requests, and name their users in headers.

use std::collections::BTreeMap;

use coracle_api::codec::json;
use coracle_api::time::Timestamp;
use coracle_client::{ProxiedUser, ProxyHeaders};
use http::HeaderMap;
use rustls::pki_types::CertificateDer;

use super::{Authorities, BadAuthority, Certified, User};

/// The front proxies that a port trusts.
pub struct FrontProxies {
    authorities: Authorities,
    /// Their common names; empty: any that the authority has signed.
    names: Vec<String>,
    headers: ProxyHeaders,
}

impl FrontProxies {
    /// Those with a certificate of a CA in PEM.
    pub fn new(
        pem: &[u8],
        names: Vec<String>,
        headers: ProxyHeaders,
    ) -> Result<FrontProxies, BadAuthority> {
        Ok(FrontProxies {
            authorities: Authorities::new(pem)?,
            names,
            headers,
        })
    }

    /// As the API server publishes them; `None`: there are none.
    pub(crate) fn published(
        data: &BTreeMap<String, String>,
    ) -> Option<Result<FrontProxies, BadAuthority>> {
        let pem = data.get("requestheader-client-ca-file")?;
        let list = |name: &str| {
            let text = data.get(name).map_or("[]", String::as_str);
            let list = json::parse(text.as_bytes()).ok();
            let list = list.as_ref().and_then(|list| list.as_array());
            let texts = list.unwrap_or_default().iter();
            texts
                .filter_map(|text| text.as_str().map(str::to_owned))
                .collect::<Vec<String>>()
        };

        let headers = ProxyHeaders::named(
            &list("requestheader-username-headers"),
            &list("requestheader-uid-headers"),
            &list("requestheader-group-headers"),
            &list("requestheader-extra-headers-prefix"),
        );
        let names = list("requestheader-allowed-names");
        Some(FrontProxies::new(pem.as_bytes(), names, headers))
    }

    /// Whether a chain of certificates is that of a front proxy.
    pub(crate) fn include(&self, chain: &[CertificateDer<'_>], now: Timestamp) -> bool {
        if chain.is_empty() {
            return false;
        }
        let name = match self.authorities.verify(chain, now) {
            Certified::User(proxy) => proxy.name.clone(),
            Certified::Anonymous => String::new(),
            Certified::Refused(_) => return false,
        };
        self.names.is_empty() || self.names.contains(&name)
    }

    /// The user that a front proxy names.
    pub(crate) fn user(&self, headers: &HeaderMap) -> Option<User> {
        let ProxiedUser {
            name,
            uid,
            mut groups,
            extra,
        } = self.headers.user(headers)?;
        let known = ["system:authenticated", "system:unauthenticated"];
        if !groups.iter().any(|group| known.contains(&group.as_str())) {
            groups.push(known[0].to_owned());
        }

        Some(User {
            name,
            uid,
            groups,
            extra,
        })
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

    use super::*;

    fn authority() -> (String, Issuer<'static, KeyPair>) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        (pem, Issuer::new(params, key))
    }

    fn certificate(name: &str, issuer: &Issuer<'_, KeyPair>) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        params.signed_by(&key, issuer).unwrap().der().clone()
    }

    #[test]
    fn headers_count_beside_a_certificate_of_the_published_authority_and_name() {
        let (pem, issuer) = authority();
        let (_, other) = authority();
        let published = |names: &str| {
            let data = [
                ("requestheader-client-ca-file", pem.as_str()),
                ("requestheader-allowed-names", names),
                ("requestheader-username-headers", r#"["X-Remote-User"]"#),
                ("requestheader-group-headers", r#"["X-Remote-Group"]"#),
                (
                    "requestheader-extra-headers-prefix",
                    r#"["X-Remote-Extra-"]"#,
                ),
            ];
            let data = data.map(|(name, text)| (name.to_owned(), text.to_owned()));
            FrontProxies::published(&data.into()).unwrap().unwrap()
        };
        let now = Timestamp::from_unix(1_800_000_000, 0);
        let includes = |names: &str, name: &str, issuer: &Issuer<'_, KeyPair>| {
            published(names).include(&[certificate(name, issuer)], now)
        };

        assert!(includes(r#"["proxy"]"#, "proxy", &issuer));
        assert!(includes("[]", "anybody", &issuer));
        assert!(!includes(r#"["proxy"]"#, "anybody", &issuer));
        assert!(!includes(r#"["proxy"]"#, "proxy", &other));
        assert!(!published("[]").include(&[], now));
        assert!(FrontProxies::published(&BTreeMap::new()).is_none());

        let mut headers = HeaderMap::new();
        assert_eq!(published("[]").user(&headers), None);
        headers.insert("x-remote-user", HeaderValue::from_static("jane"));
        headers.insert("x-remote-group", HeaderValue::from_static("sailors"));
        let user = published("[]").user(&headers).unwrap();
        assert_eq!(
            (user.name.as_str(), user.groups.join(",").as_str()),
            ("jane", "sailors,system:authenticated")
        );
    }
}
