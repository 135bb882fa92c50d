//! What a service account token secret lacks. Pure.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::{Map, Value};

/// The annotations that name the account.
pub const ACCOUNT_NAME: &str = "kubernetes.io/service-account.name";
pub const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

const TOKEN: &str = "token";
const NAMESPACE: &str = "namespace";
const AUTHORITY: &str = "ca.crt";

/// All that was observed of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A secret, from the cache.
    Secret {
        secret: Arc<Value>,
        /// The UID of its account, if cached.
        account: Option<String>,
        /// The CA that the secret should contain.
        authority: Option<String>,
    },
    /// An account that names a deleted secret.
    Reference,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Fill the secret.
    Fill,
    /// The account is not cached: read it from the server, and delete the secret if there is none.
    VerifyAccount,
    /// Remove the reference from the account.
    Forget,
}

/// Decides what the key needs.
pub fn plan(observed: &Observed) -> Plan {
    let Observed::Secret {
        secret,
        account,
        authority,
    } = observed
    else {
        return Plan::Forget;
    };

    if account_of(secret).is_empty() {
        return Plan::Keep;
    }

    match account {
        Some(uid) if is_account(secret, uid) => {
            match missing_parts(secret, authority.as_deref()).any() {
                true => Plan::Fill,
                false => Plan::Keep,
            }
        }
        _ => Plan::VerifyAccount,
    }
}

/// The account that a secret names.
pub fn account_of(secret: &Value) -> &str {
    secret.meta().annotation(ACCOUNT_NAME).unwrap_or_default()
}

/// Whether an account is the one that a secret names: without UID, any account of that name is.
pub fn is_account(secret: &Value, uid: &str) -> bool {
    let named = secret.meta().annotation(ACCOUNT_UID).unwrap_or_default();
    named.is_empty() || named == uid
}

/// The missing parts of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missing {
    pub token: bool,
    namespace: bool,
    authority: bool,
}

impl Missing {
    /// Whether it lacks anything.
    pub fn any(self) -> bool {
        self.token || self.namespace || self.authority
    }
}

/// Finds the missing parts. Existing ones stay, except for a CA that is not the cluster's.
pub fn missing_parts(secret: &Value, authority: Option<&str>) -> Missing {
    let kept = |name: &str| {
        secret
            .at(&["data", name])
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    Missing {
        token: kept(TOKEN).is_empty(),
        namespace: kept(NAMESPACE).is_empty(),
        authority: authority.is_some_and(|authority| kept(AUTHORITY) != STANDARD.encode(authority)),
    }
}

/// The secret with its missing parts filled in; `token` is a new one, if that was missing.
pub fn filled(
    mut secret: Value,
    account: &Value,
    authority: Option<&str>,
    token: Option<&str>,
) -> Value {
    let missing_parts = missing_parts(&secret, authority);
    let namespace = secret.meta().namespace().to_string();
    if let Some(members) = secret.as_object_mut() {
        let data: &mut Map = members.object_mut("data");
        let mut put =
            |name: &'static str, text: &str| drop(data.insert(name, STANDARD.encode(text)));
        if let Some(authority) = authority.filter(|_| missing_parts.authority) {
            put(AUTHORITY, authority);
        }

        if missing_parts.namespace {
            put(NAMESPACE, &namespace);
        }
        if let Some(token) = token {
            put(TOKEN, token);
        }
    }

    secret
        .meta_mut()
        .set_annotation(ACCOUNT_NAME, Some(account.meta().name()));
    secret
        .meta_mut()
        .set_annotation(ACCOUNT_UID, Some(account.meta().uid()));

    secret
}

/// The account without its reference to a secret; `None` if it has none.
pub fn without_reference(mut account: Value, secret: &str) -> Option<Value> {
    let named = account.get("secrets").and_then(Value::as_array)?;
    let is_it = |entry: &Value| entry.get("name").and_then(Value::as_str) == Some(secret);
    let kept: Vec<Value> = named
        .iter()
        .filter(|entry| !is_it(entry))
        .cloned()
        .collect();

    if kept.len() == named.len() {
        return None;
    }

    account.as_object_mut()?.insert("secrets", kept);

    Some(account)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn object(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn secret(uid: &str, data: &str) -> Value {
        object(&format!(
            r#"{{"metadata":{{"name":"s","namespace":"ns","annotations":{{"{ACCOUNT_NAME}":"robot","{ACCOUNT_UID}":"{uid}"}}}},
            "data":{{{data}}}}}"#
        ))
    }

    fn whole() -> String {
        format!(
            r#""token":"dA==","namespace":"bnM=","ca.crt":"{}""#,
            STANDARD.encode("PEM")
        )
    }

    #[test]
    fn a_secret_is_filled_where_its_account_is_there_and_it_lacks_something() {
        let check = |secret: Value, account: Option<&str>, expected: Plan| {
            let (account, authority) = (account.map(str::to_string), Some("PEM".to_string()));
            let observed = Observed::Secret {
                secret: secret.into(),
                account,
                authority,
            };
            assert_eq!(plan(&observed), expected, "{observed:?}");
        };

        check(secret("u", ""), Some("u"), Plan::Fill);
        check(secret("", ""), Some("u"), Plan::Fill);
        check(secret("u", &whole()), Some("u"), Plan::Keep);
        check(
            secret("u", r#""token":"dA==","namespace":"bnM=""#),
            Some("u"),
            Plan::Fill,
        );

        check(
            secret("u", &whole().replace("UEVN", "b2xk")),
            Some("u"),
            Plan::Fill,
        );

        // The account may be new or replaced: the cache cannot decide that.
        check(secret("u", &whole()), None, Plan::VerifyAccount);
        check(secret("old", &whole()), Some("u"), Plan::VerifyAccount);
        check(object(r#"{"metadata":{"name":"s"}}"#), None, Plan::Keep);
    }

    #[test]
    fn missing_secret_data_is_filled_in_and_the_rest_is_kept() {
        let account = object(r#"{"metadata":{"name":"robot","uid":"u"}}"#);
        let done = filled(
            secret("", r#""extra":"eA==""#),
            &account,
            Some("PEM"),
            Some("t"),
        );

        assert_eq!(
            done.at(&["data", "token"]).and_then(Value::as_str),
            Some("dA==")
        );

        assert_eq!(
            done.at(&["data", "namespace"]).and_then(Value::as_str),
            Some("bnM=")
        );

        assert_eq!(
            done.at(&["data", "ca.crt"]).and_then(Value::as_str),
            Some("UEVN")
        );

        assert_eq!(
            done.at(&["data", "extra"]).and_then(Value::as_str),
            Some("eA==")
        );

        assert_eq!(done.meta().annotation(ACCOUNT_UID), Some("u"));
        assert!(!missing_parts(&done, Some("PEM")).any());

        // Without a CA, existing ones are left alone.
        let other = filled(
            secret("u", r#""namespace":"eA==","ca.crt":"eA==""#),
            &account,
            None,
            Some("t"),
        );

        assert_eq!(
            other.at(&["data", "ca.crt"]).and_then(Value::as_str),
            Some("eA==")
        );

        assert_eq!(
            other.at(&["data", "namespace"]).and_then(Value::as_str),
            Some("eA==")
        );
    }

    #[test]
    fn an_account_forgets_the_secret_that_has_gone_and_no_other() {
        let account =
            object(r#"{"metadata":{"name":"robot"},"secrets":[{"name":"a"},{"name":"b"}]}"#);
        let left = without_reference(account.clone(), "a").unwrap();
        assert_eq!(
            left.get("secrets"),
            object(r#"{"secrets":[{"name":"b"}]}"#).get("secrets")
        );

        assert_eq!(without_reference(account, "c"), None);
        assert_eq!(
            without_reference(object(r#"{"metadata":{"name":"robot"}}"#), "a"),
            None
        );
    }
}
