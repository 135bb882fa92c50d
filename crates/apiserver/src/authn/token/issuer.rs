//! Issues service account tokens, and the documents with which others verify them.

use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};

use super::claims::{Bound, Claims};
use super::jwt;
use super::key::{SigningKey, VerifyingKey};
use super::service_account::LEGACY_ISSUER;

/// The expiration that kubelets request for tokens of pods.
const PROJECTED_SECONDS: i64 = 3607;

/// How long such a token is really valid, so that programs that never read it again do not break.
const EXTENDED_SECONDS: i64 = 365 * 24 * 60 * 60;

/// A legacy token, which is valid as long as it is stored in that secret; it has no expiration and
/// no audience.
pub fn kept_token(
    key: &SigningKey,
    namespace: &str,
    account: &Bound,
    secret: &str,
) -> Option<String> {
    let mut claims = Map::new();
    claims.insert("iss", LEGACY_ISSUER);
    claims.insert("kubernetes.io/serviceaccount/namespace", namespace);
    claims.insert("kubernetes.io/serviceaccount/secret.name", secret);
    claims.insert(
        "kubernetes.io/serviceaccount/service-account.name",
        account.name.as_str(),
    );

    claims.insert(
        "kubernetes.io/serviceaccount/service-account.uid",
        account.uid.as_str(),
    );

    claims.insert(
        "sub",
        format!("system:serviceaccount:{namespace}:{}", account.name),
    );

    jwt::signed(&claims, key)
}

pub struct Issuer {
    /// The issuer name.
    pub name: String,
    pub key: SigningKey,
    /// The API's own.
    pub audiences: Vec<String>,
    /// Whether tokens of pods are valid longer than their nominal expiration.
    pub extends: bool,
    /// The longest validity of a token, in seconds.
    pub max_seconds: Option<i64>,
    /// Where others find the keys.
    pub jwks_uri: String,
    /// With what they verify.
    pub keys: Vec<VerifyingKey>,
}

/// The claims of a token to issue.
pub struct TokenSpec {
    pub namespace: String,
    pub account: Bound,
    pub pod: Option<Bound>,
    pub node: Option<Bound>,
    pub secret: Option<Bound>,
    pub audiences: Vec<String>,
    pub seconds: i64,
}

impl Issuer {
    /// A token of that moment; `id` is its own.
    pub fn issue(&self, order: TokenSpec, id: String, now: Timestamp) -> Option<String> {
        let now = now.unix_seconds();
        let for_the_api = order
            .audiences
            .iter()
            .all(|audience| self.audiences.contains(audience));

        let extended = self.extends
            && order.pod.is_some()
            && order.seconds == PROJECTED_SECONDS
            && for_the_api;

        let (lives, warn_after) = match extended {
            true => {
                let most = self
                    .max_seconds
                    .map_or(EXTENDED_SECONDS, |most| most.min(EXTENDED_SECONDS));
                (most, Some(now + order.seconds))
            }
            false => (order.seconds, None),
        };

        let claims = Claims {
            subject: format!(
                "system:serviceaccount:{}:{}",
                order.namespace, order.account.name
            ),
            audiences: order.audiences,
            id,
            expires: Some(now + lives),
            not_before: Some(now),
            issued: Some(now),
            namespace: order.namespace,
            account: order.account,
            pod: order.pod,
            node: order.node,
            secret: order.secret,
            warn_after,
        };

        jwt::signed(&claims.to_map(&self.name), &self.key)
    }

    /// `/.well-known/openid-configuration`; there is none where our name is no address.
    pub fn configuration(&self) -> Option<Value> {
        if !self.name.starts_with("https://") || self.name.contains(['?', '#']) {
            return None;
        }

        let list = |texts: &[&str]| texts.iter().map(Value::string).collect::<Vec<_>>();
        let mut algorithms: Vec<&str> = self.keys.iter().map(|key| key.algorithm.name()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();

        let mut document = Map::new();
        document.insert("issuer", self.name.as_str());
        document.insert("jwks_uri", self.jwks_uri.as_str());
        document.insert("response_types_supported", list(&["id_token"]));
        document.insert("subject_types_supported", list(&["public"]));
        document.insert("id_token_signing_alg_values_supported", list(&algorithms));

        Some(Value::Object(document))
    }

    /// `/openid/v1/jwks`.
    pub fn key_set(&self) -> Option<Value> {
        self.configuration()?;
        let mut document = Map::new();
        document.insert(
            "keys",
            self.keys
                .iter()
                .map(|key| key.shown.clone())
                .collect::<Vec<_>>(),
        );
        Some(Value::Object(document))
    }
}
