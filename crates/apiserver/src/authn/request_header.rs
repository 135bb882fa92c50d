//! The front proxy: a server that forwards requests, names their user in headers, and authenticates
//! itself with a client certificate.
//!
//! The headers count only beside a certificate of the request header CA and, where names are
//! configured, with one of these common names. They are removed from all other requests.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use coracle_client::ProxyHeaders;

use super::certificate::{Authorities, VerifiedChain};
use super::{Authenticator, AuthnResult, Presented, User};
use crate::files::FromFiles;

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
        ProxyHeaders::named(
            &self.user_headers,
            &self.uid_headers,
            &self.group_headers,
            &self.extra_prefixes,
        )
    }
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
            Some(named) => {
                let user = User {
                    name: named.name,
                    uid: named.uid,
                    groups: named.groups,
                    extra: named.extra,
                };
                AuthnResult::Known(Arc::new(user.authenticated()))
            }
            None => AuthnResult::Unknown,
        }
    }
}
