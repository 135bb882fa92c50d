//! Service account tokens: those that the API issues, bound to an account and perhaps to a pod, a
//! node or a secret, and legacy ones that are stored in a secret.
//!
//! That a signature is valid never changes and is cached. Whether the account and the bound object
//! still exist is looked up in the watch cache every time: deleting a pod invalidates its token.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::go_text::Quoted;
use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use coracle_base::sync::Mutex;
use coracle_metrics::{Alpha, Counter, Registry, metrics};
use ring::digest;

use super::claims::{self, Bound, Claims};
use super::jwt::Unverified;
use super::key::VerifyingKey;
use super::{Finding, LAST_USED, Recognised, TokenAuthenticator, UsedSecrets};
use crate::authn::{User, service_account_groups};
use crate::cache::Caches;

/// The issuer of tokens that are stored in secrets.
pub(super) const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// An old token whose secret has this label is no longer good.
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// So many signatures are remembered.
const REMEMBERED: usize = 4096;

metrics! {
    /// Uses of tokens of service accounts.
    struct TokenMetrics {
        valid: Arc<Counter> = counter(
            Alpha,
            "serviceaccount_valid_tokens_total",
            "Number of uses of valid tokens of pods.",
        ),
        stale: Arc<Counter> = counter(
            Alpha,
            "serviceaccount_stale_tokens_total",
            "Number of uses of tokens of pods that the client should have replaced.",
        ),
        legacy: Arc<Counter> = counter(
            Alpha,
            "serviceaccount_legacy_tokens_total",
            "Number of uses of tokens of Secrets.",
        ),
        legacy_auto: Arc<Counter> = counter(
            Alpha,
            "serviceaccount_legacy_auto_token_uses_total",
            "Number of uses of tokens of Secrets that were created with their service account.",
        ),
        legacy_manual: Arc<Counter> = counter(
            Alpha,
            "serviceaccount_legacy_manual_token_uses_total",
            "Number of uses of tokens of Secrets that were created by hand.",
        ),
        legacy_invalid: Arc<Counter> = counter(
            Alpha,
            "serviceaccount_invalid_legacy_auto_token_uses_total",
            "Number of uses of tokens of Secrets that have been marked invalid.",
        ),
    }
}

pub struct ServiceAccountTokens {
    caches: Arc<Caches>,
    keys: Vec<VerifyingKey>,
    /// All accepted issuers; the first issues new tokens.
    issuers: Vec<String>,
    audiences: Vec<String>,
    /// The claims of tokens whose signatures were valid, by their digests.
    verified: Mutex<HashMap<[u8; 32], Arc<Map>>>,
    used: Arc<UsedSecrets>,
    metrics: TokenMetrics,
}

impl ServiceAccountTokens {
    pub fn new(
        caches: Arc<Caches>,
        keys: Vec<VerifyingKey>,
        issuers: Vec<String>,
        audiences: Vec<String>,
        used: Arc<UsedSecrets>,
        registry: &Registry,
    ) -> ServiceAccountTokens {
        ServiceAccountTokens {
            caches,
            keys,
            issuers,
            audiences,
            verified: Mutex::default(),
            used,
            metrics: TokenMetrics::new(registry),
        }
    }

    /// The claims of the token, if this server's keys signed it; `None`: it has another issuer.
    fn verified(&self, token: &str) -> Result<Option<Arc<Map>>, String> {
        let digest = digest::digest(&digest::SHA256, token.as_bytes());
        let digest: [u8; 32] = digest.as_ref().try_into().expect("SHA-256 has 32 bytes");
        let known = || self.verified.lock();
        if let Some(claims) = known().get(&digest) {
            return Ok(Some(claims.clone()));
        }

        let Some(unverified) = Unverified::parse(token) else {
            return Ok(None);
        };

        let issuer = unverified.issuer();
        if issuer != LEGACY_ISSUER && !self.issuers.iter().any(|own| own == issuer) {
            return Ok(None);
        }

        let claims = Arc::new(unverified.verified(&self.keys)?);
        let mut known = known();
        if known.len() >= REMEMBERED {
            known.clear();
        }

        known.insert(digest, claims.clone());

        Ok(Some(claims))
    }

    fn authenticate_claims(
        &self,
        token: &str,
        wanted: &[String],
        now: Timestamp,
    ) -> Result<Option<Recognised>, String> {
        let Some(map) = self.verified(token)? else {
            return Ok(None);
        };
        let own = match claims::audiences(&map) {
            // Tokens of old are for the API.
            none if none.is_empty() => self.audiences.clone(),
            some => some,
        };

        let audiences: Vec<String> = wanted
            .iter()
            .filter(|audience| own.contains(audience))
            .cloned()
            .collect();

        if audiences.is_empty() && !self.audiences.is_empty() {
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                list(&own),
                list(wanted)
            ));
        }

        let user = match map.str("iss") {
            Some(LEGACY_ISSUER) => self.of_secret(token, &map, now)?,
            _ => self.bound(&map, now)?,
        };

        Ok(Some(Recognised {
            user: Arc::new(user),
            audiences,
        }))
    }

    /// The user of a token of today.
    fn bound(&self, map: &Map, now: Timestamp) -> Result<User, String> {
        let claims =
            Claims::read(map).map_err(|claim| format!("the claim {claim} cannot be read"))?;
        claims.check_time(now)?;
        let (namespace, account) = (&claims.namespace, &claims.account);
        let found = self.lookup("serviceaccounts", &format!("{namespace}/{}", account.name));

        let found =
            found.ok_or_else(|| format!("serviceaccounts {} not found", Quoted(&account.name)))?;
        if found.meta().uid() != account.uid {
            let uid = found.meta().uid();
            return Err(format!(
                "service account UID ({uid}) does not match claim ({})",
                account.uid
            ));
        }

        if claims::is_gone(&found, now) {
            return Err(format!(
                "service account {namespace}/{} has been deleted",
                account.name
            ));
        }

        let within = |bound: &Bound| format!("{namespace}/{}", bound.name);
        if let Some(secret) = &claims.secret {
            self.check_bound("secret", "secrets", &within(secret), secret, now)?;
        }

        if let Some(pod) = &claims.pod {
            self.check_bound("pod", "pods", &within(pod), pod, now)?;
        } else if let Some(node) = &claims.node {
            self.check_bound("node", "minions", &node.name, node, now)?;
        }

        // Tokens of pods name when clients should have replaced them.
        match claims.warn_after {
            None | Some(0) => {}
            Some(at) if now.unix_seconds() > at => self.metrics.stale.inc(),
            Some(_) => self.metrics.valid.inc(),
        }

        Ok(bound_user(&claims))
    }

    /// Whether the object that a token is bound to still exists.
    fn check_bound(
        &self,
        what: &str,
        prefix: &str,
        key: &str,
        bound: &Bound,
        now: Timestamp,
    ) -> Result<(), String> {
        let invalidated = || "service account token has been invalidated".to_string();
        let found = self.lookup(prefix, key).ok_or_else(invalidated)?;
        let uid = found.meta().uid();
        if uid != bound.uid {
            return Err(format!(
                "{what} UID ({uid}) does not match service account {what} ref claim ({})",
                bound.uid
            ));
        }

        if claims::is_gone(&found, now) {
            Err(invalidated())
        } else {
            Ok(())
        }
    }

    /// The user of a token that is stored in a secret, as long as it is.
    fn of_secret(&self, token: &str, map: &Map, now: Timestamp) -> Result<User, String> {
        let claim = |name: &str, called: &str| match map.str(name) {
            Some(text) if !text.is_empty() => Ok(text.to_string()),
            _ => Err(format!("{called} claim is missing")),
        };
        let subject = claim("sub", "sub")?;

        let namespace = claim("kubernetes.io/serviceaccount/namespace", "namespace")?;
        let secret = claim("kubernetes.io/serviceaccount/secret.name", "secretName")?;
        let name = claim(
            "kubernetes.io/serviceaccount/service-account.name",
            "serviceAccountName",
        )?;

        let uid = claim(
            "kubernetes.io/serviceaccount/service-account.uid",
            "serviceAccountUID",
        )?;

        if subject != format!("system:serviceaccount:{namespace}:{name}") {
            return Err("sub claim is invalid".to_string());
        }

        let kept = self.lookup("secrets", &format!("{namespace}/{secret}"));
        let kept = kept.filter(|kept| !kept.meta().is_being_deleted());
        let kept = kept.ok_or("Token has been invalidated")?;
        let content = kept
            .at(&["data", "token"])
            .and_then(Value::as_str)
            .unwrap_or_default();

        let content = STANDARD.decode(content).unwrap_or_default();
        if !same(&content, token.as_bytes()) {
            return Err("Token does not match server's copy".to_string());
        }

        let account = self.lookup("serviceaccounts", &format!("{namespace}/{name}"));
        let account =
            account.ok_or_else(|| format!("serviceaccounts {} not found", Quoted(&name)))?;
        if account.meta().is_being_deleted() {
            return Err(format!(
                "ServiceAccount {namespace}/{name} has been deleted"
            ));
        }

        if account.meta().uid() != uid {
            let found = account.meta().uid();
            return Err(format!(
                "ServiceAccount UID ({found}) does not match claim ({uid})"
            ));
        }

        // A token that is refused for its age is used, too.
        let used = kept.meta().label(LAST_USED).unwrap_or_default();
        let [today, tomorrow] = [0, 86_400].map(|later| Time(now.plus_seconds(later)).to_string());
        if used.is_empty() || !(today.starts_with(used) || tomorrow.starts_with(used)) {
            self.used.note(format!("{namespace}/{secret}"));
        }

        if kept
            .meta()
            .label(INVALID_SINCE)
            .is_some_and(|since| !since.is_empty())
        {
            self.metrics.legacy_invalid.inc();
            return Err(format!(
                "the token in secret {namespace}/{secret} for service account {namespace}/{name} has been marked invalid. \
                 Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the \
                 '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            ));
        }

        let secrets = account.get("secrets").and_then(Value::as_array);
        let is_own = |reference: &Value| {
            reference.get("name").and_then(Value::as_str) == Some(secret.as_str())
        };
        match secrets.unwrap_or_default().iter().any(is_own) {
            true => self.metrics.legacy_auto.inc(),
            false => self.metrics.legacy_manual.inc(),
        }
        self.metrics.legacy.inc();

        Ok(User {
            name: subject,
            uid,
            groups: service_account_groups(&namespace).to_vec(),
            ..User::default()
        })
    }

    fn lookup(&self, prefix: &str, key: &str) -> Option<Value> {
        let cache = self.caches.get(prefix)?;
        Some(cache.get(key)?.value(cache.storage_version().of))
    }
}

impl TokenAuthenticator for ServiceAccountTokens {
    fn find(&self, token: &str, audiences: &[String], now: Timestamp) -> Finding {
        match self.authenticate_claims(token, audiences, now) {
            Ok(Some(found)) => Finding::Known(found),
            Ok(None) => Finding::Unknown,
            Err(why) => Finding::Wrong(why),
        }
    }
}

fn bound_user(claims: &Claims) -> User {
    let mut extra = BTreeMap::new();
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            extra.insert(format!("authentication.kubernetes.io/{name}"), vec![value]);
        }
    };

    if !claims.id.is_empty() {
        add("credential-id", format!("JTI={}", claims.id));
    }

    for (what, bound) in [("pod", &claims.pod), ("node", &claims.node)] {
        if let Some(bound) = bound {
            add(&format!("{what}-name"), bound.name.clone());
            add(&format!("{what}-uid"), bound.uid.clone());
        }
    }

    User {
        name: format!(
            "system:serviceaccount:{}:{}",
            claims.namespace, claims.account.name
        ),
        uid: claims.account.uid.clone(),
        groups: service_account_groups(&claims.namespace).to_vec(),
        extra,
    }
}

/// Compares in constant time.
pub(super) fn same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

fn list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| Quoted(text).to_string()).collect();
    format!("[{}]", quoted.join(" "))
}
