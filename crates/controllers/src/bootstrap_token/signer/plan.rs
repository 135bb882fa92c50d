//! The signatures of the ConfigMap. Pure.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::time::Timestamp;

use super::detached_signature::sign;
use crate::bootstrap_token::secret::{Expiration, expiration, signing_token};

/// The entry that is signed.
const SIGNED: &str = "kubeconfig";
/// The prefix of the entries with signatures; the ID of the token follows.
const SIGNATURE: &str = "jws-kubeconfig-";

/// All that was observed.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    pub config_map: Arc<Value>,
    /// The secrets of all tokens.
    pub tokens: Vec<Arc<Value>>,
}

/// What to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The ConfigMap with other signatures.
    pub update: Option<Value>,
    /// When the first token expires, whose signature then goes.
    pub wake_after: Option<Duration>,
}

/// Decides which signatures the ConfigMap needs.
pub fn plan(observed: &Observed, now: Timestamp) -> Plan {
    let data = observed.config_map.get("data").and_then(Value::as_object);
    let Some((data, signed)) = data.and_then(|data| Some((data, data.get(SIGNED)?.as_str()?)))
    else {
        return Plan::default();
    };

    let valid = observed.tokens.iter().filter_map(|secret| {
        let expiration = expiration(secret);
        let token = signing_token(secret)?;
        (!expiration.is_over(now)).then_some((token, expiration))
    });
    let (mut signatures, mut wake_after) = (BTreeMap::new(), None::<Duration>);
    for (token, expiration) in valid {
        if let Expiration::At(at) = expiration {
            let left = at.since(now).to_std().unwrap_or_default();
            wake_after = Some(wake_after.map_or(left, |first| first.min(left)));
        }
        let signature = sign(signed, &token);
        signatures.insert(format!("{SIGNATURE}{}", token.id), signature);
    }

    let known = data.iter().filter(|(name, _)| name.starts_with(SIGNATURE));
    let known: BTreeMap<String, String> = known
        .map(|(name, text)| {
            (
                name.to_owned(),
                text.as_str().unwrap_or_default().to_owned(),
            )
        })
        .collect();
    if known == signatures {
        return Plan {
            update: None,
            wake_after,
        };
    }

    let mut update = Value::clone(&observed.config_map);
    if let Some(data) = update.as_object_mut().map(|map| map.object_mut("data")) {
        for name in known.keys() {
            data.remove(name);
        }
        for (name, signature) in signatures {
            data.insert(name, signature);
        }
    }
    Plan {
        update: Some(update),
        wake_after,
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;
    use coracle_api::time::Time;

    use super::*;
    use crate::bootstrap_token::secret::tests::secret;

    fn token(id: &str, expiration: &str) -> Value {
        secret(
            id,
            &[
                ("token-id", id),
                ("token-secret", "0123456789abcdef"),
                ("usage-bootstrap-signing", "true"),
                ("expiration", expiration),
            ],
        )
    }

    fn config_map(data: &str) -> Value {
        yaml::decode(format!("{{metadata: {{name: cluster-info}}, data: {{{data}}}}}").as_bytes())
            .unwrap()
    }

    fn planned(data: &str, tokens: &[Value]) -> Plan {
        let observed = Observed {
            config_map: Arc::new(config_map(data)),
            tokens: tokens.iter().cloned().map(Arc::new).collect(),
        };
        plan(&observed, Time::parse("2026-01-01T00:00:00Z").unwrap().0)
    }

    /// The entries of the planned ConfigMap, without the texts of new signatures.
    fn entries(plan: &Plan) -> Vec<String> {
        let data = plan.update.as_ref().unwrap().get("data").unwrap();
        let entries = data.as_object().unwrap().iter();
        let mut entries: Vec<String> = entries
            .map(|(name, text)| match text.as_str().unwrap() {
                text if text.starts_with("eyJ") => format!("{name}: signature"),
                text => format!("{name}: {text}"),
            })
            .collect();
        entries.sort();
        entries
    }

    #[test]
    fn every_valid_token_signs_and_no_other() {
        let tokens = [
            token("aaaaaa", ""),
            token("bbbbbb", "2026-01-01T01:00:00Z"),
            token("cccccc", "2025-01-01T00:00:00Z"),
        ];
        let plan = planned(
            "kubeconfig: k, other: o, jws-kubeconfig-dddddd: old",
            &tokens,
        );
        assert_eq!(
            entries(&plan),
            [
                "jws-kubeconfig-aaaaaa: signature",
                "jws-kubeconfig-bbbbbb: signature",
                "kubeconfig: k",
                "other: o"
            ]
        );
        assert_eq!(plan.wake_after, Some(Duration::from_secs(3600)));
    }

    #[test]
    fn what_is_signed_already_is_not_written() {
        let tokens = [token("aaaaaa", "")];
        let signed = planned("kubeconfig: k", &tokens).update.unwrap();
        let signature = signed.at(&["data", "jws-kubeconfig-aaaaaa"]).unwrap();
        let signature = signature.as_str().unwrap();

        let again = format!("kubeconfig: k, jws-kubeconfig-aaaaaa: {signature}");
        assert_eq!(planned(&again, &tokens), Plan::default());
        let changed = format!("kubeconfig: other, jws-kubeconfig-aaaaaa: {signature}");
        assert!(planned(&changed, &tokens).update.is_some());
    }

    #[test]
    fn without_a_kubeconfig_nothing_is_signed() {
        let tokens = [token("aaaaaa", "")];
        assert_eq!(
            planned("other: o, jws-kubeconfig-dddddd: old", &tokens),
            Plan::default()
        );
    }

    #[test]
    fn without_tokens_there_is_no_signature() {
        let plan = planned("kubeconfig: k, jws-kubeconfig-dddddd: old", &[]);
        assert_eq!(entries(&plan), ["kubeconfig: k"]);
    }
}
