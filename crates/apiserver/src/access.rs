//! Access control as the server is configured: authenticators and authorizers, used by the chain
//! for every request and by the registry for some.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fs, io};

use coracle_kinds::rbac::Rule;
use coracle_metrics::Registry;

use crate::authn::Authentication;
use crate::authn::token::{
    BadTokenFile, BootstrapTokens, Issuer, KeyError, ServiceAccountTokens, SigningKey,
    StaticTokens, TokenAuthenticator, Tokens, UsedSecrets, VerifyingKey,
};
use crate::authz::{AlwaysAllow, AlwaysDeny, Authorization, Authorizer, Node, Rbac};
use crate::cache::Caches;

/// An authorizer: a value of `--authorization-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    AlwaysAllow,
    AlwaysDeny,
    Node,
    Rbac,
}

/// Whose tokens are good.
#[derive(Clone, Debug, Default)]
pub struct TokenConfig {
    pub static_file: Option<PathBuf>,
    /// Whether bootstrap tokens are.
    pub bootstrap: bool,
    /// What the API is called in tokens.
    pub audiences: Vec<String>,
    pub service_accounts: Option<ServiceAccountConfig>,
}

/// How service account tokens are issued and verified.
#[derive(Clone, Debug, Default)]
pub struct ServiceAccountConfig {
    /// Accepted issuers; the first issues new tokens.
    pub issuers: Vec<String>,
    pub signing_key_file: PathBuf,
    /// Further keys that verify.
    pub key_files: Vec<PathBuf>,
    /// Where others find the keys.
    pub jwks_uri: String,
    /// Whether tokens of pods are valid longer than their nominal expiration.
    pub extends: bool,
    /// The longest validity of a token, in seconds.
    pub max_seconds: Option<i64>,
}

/// Why token authentication cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("{}: {error}", file.display())]
    Read { file: PathBuf, error: io::Error },
    #[error("{}: {error}", file.display())]
    Key { file: PathBuf, error: KeyError },
    #[error("{}: {error}", file.display())]
    Static { file: PathBuf, error: BadTokenFile },
}

pub struct Access {
    pub authentication: Authentication,
    pub authorization: Authorization,
    /// Also used for escalation checks, whether or not it authorizes requests.
    pub rbac: Arc<Rbac>,
    pub tokens: Arc<Tokens>,
    /// Issues service account tokens; absent: none are issued.
    pub issuer: Option<Issuer>,
}

impl Access {
    /// The chain of these modes, over filled caches. `node_rules` are those of every node.
    pub fn new(
        authentication: Authentication,
        modes: &[Mode],
        tokens: Arc<Tokens>,
        issuer: Option<Issuer>,
        caches: &Arc<Caches>,
        node_rules: fn() -> Vec<Rule>,
    ) -> Access {
        let rbac = Arc::new(Rbac::new(caches));
        let authorizer = |mode: &Mode| -> Arc<dyn Authorizer> {
            match mode {
                Mode::AlwaysAllow => Arc::new(AlwaysAllow),
                Mode::AlwaysDeny => Arc::new(AlwaysDeny),
                Mode::Node => Arc::new(Node::new(caches, node_rules())),
                Mode::Rbac => rbac.clone(),
            }
        };

        let chain = modes.iter().map(authorizer).collect();
        Access {
            authentication,
            authorization: Authorization { chain },
            rbac,
            tokens,
            issuer,
        }
    }
}

impl TokenConfig {
    /// Reads the files: the token authenticators, and the token issuer.
    pub fn open(
        &self,
        caches: &Arc<Caches>,
        metrics: &Registry,
    ) -> Result<(Tokens, Option<Issuer>), TokenError> {
        let audiences = || self.audiences.clone();
        let mut known_to: Vec<Box<dyn TokenAuthenticator>> = Vec::new();
        let used = Arc::new(UsedSecrets::default());
        if let Some(file) = &self.static_file {
            let text = String::from_utf8_lossy(&read(file)?).into_owned();
            let tokens = StaticTokens::read(&text, audiences());
            let tokens = tokens.map_err(|error| TokenError::Static {
                file: file.clone(),
                error,
            })?;
            known_to.push(Box::new(tokens));
        }

        let issuer = self
            .service_accounts
            .as_ref()
            .map(|of| of.issuer(audiences()))
            .transpose()?;

        if let (Some(issuer), Some(of)) = (&issuer, &self.service_accounts) {
            let (keys, issuers) = (issuer.keys.clone(), of.issuers.clone());
            known_to.push(Box::new(ServiceAccountTokens::new(
                caches.clone(),
                keys,
                issuers,
                audiences(),
                used.clone(),
                metrics,
            )));
        }

        if self.bootstrap {
            known_to.push(Box::new(BootstrapTokens {
                caches: caches.clone(),
                audiences: audiences(),
            }));
        }

        Ok((
            Tokens {
                known_to,
                audiences: audiences(),
                used,
            },
            issuer,
        ))
    }
}

impl ServiceAccountConfig {
    fn issuer(&self, audiences: Vec<String>) -> Result<Issuer, TokenError> {
        let file = &self.signing_key_file;
        let wrong = |file: &PathBuf, error| TokenError::Key {
            file: file.clone(),
            error,
        };

        let pem = read(file)?;
        let key = SigningKey::read(&pem).map_err(|error| wrong(file, error))?;

        let mut keys = vec![key.public().clone()];
        for file in &self.key_files {
            for key in VerifyingKey::read(&read(file)?).map_err(|error| wrong(file, error))? {
                if !keys.iter().any(|known| known.id() == key.id()) {
                    keys.push(key);
                }
            }
        }

        Ok(Issuer {
            name: self.issuers.first().cloned().unwrap_or_default(),
            key,
            audiences,
            extends: self.extends,
            max_seconds: self.max_seconds,
            jwks_uri: self.jwks_uri.clone(),
            keys,
        })
    }
}

fn read(file: &PathBuf) -> Result<Vec<u8>, TokenError> {
    fs::read(file).map_err(|error| TokenError::Read {
        file: file.clone(),
        error,
    })
}
