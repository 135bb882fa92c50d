//! The record of which tokens that are kept in secrets are still used: a ConfigMap that says since
//! when there is one, and a label of each secret.

use coracle_api::time::Time;
use coracle_api::{Map, Value};
use coracle_kinds::Part;
use tracing::warn;

use super::{MANAGER, keep};
use crate::ApiError;
use crate::authn::token::{LAST_USED, UsedSecrets};
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-apiserver-legacy-service-account-token-tracking";
const KEY: &str = "kube-system/kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";

pub(super) async fn run(loopback: &Loopback, used: &UsedSecrets, hook: &Hook) {
    let listening = loopback
        .cache(resource("", "v1", "configmaps"))
        .notifier_of(KEY);
    let notifiers = [&*listening.notifier];
    let since = keep(hook, &notifiers, async || ensure(loopback).await);

    let labels = async {
        loop {
            for key in used.take().await {
                if let Err(error) = label(loopback, &key).await {
                    warn!(
                        secret = key,
                        error = error.message,
                        "cannot label secret with the last use of its token"
                    );
                }
            }
        }
    };

    tokio::join!(since, labels);
}

async fn ensure(loopback: &Loopback) -> Result<(), ApiError> {
    let config_maps = resource("", "v1", "configmaps");
    let Some(mut found) = loopback.get(config_maps, KEY) else {
        let created = config_map(&today(loopback));
        return loopback
            .ensure(config_maps, NAMESPACE, MANAGER, &created)
            .await;
    };

    let since = found.at(&["data", SINCE]).and_then(Value::as_str);
    if since.is_some_and(is_date) {
        return Ok(());
    }
    if let Some(found) = found.as_object_mut() {
        found
            .object_mut("data")
            .insert(SINCE, today(loopback).as_str());
    }
    loopback
        .update(config_maps, NAMESPACE, Part::Main, MANAGER, &found)
        .await
        .map(drop)
}

async fn label(loopback: &Loopback, key: &str) -> Result<(), ApiError> {
    let secrets = resource("", "v1", "secrets");
    let Some(mut secret) = loopback.get(secrets, key) else {
        return Ok(());
    };

    let today = today(loopback);
    if secret.meta().label(LAST_USED) == Some(&today) {
        return Ok(());
    }
    {
        let mut metadata = secret.meta_mut();
        let labels = metadata.members().object_mut("labels");
        labels.insert(LAST_USED, today.as_str());
    }
    let namespace = secret.meta().namespace().to_owned();
    loopback
        .update(secrets, &namespace, Part::Main, MANAGER, &secret)
        .await
        .map(drop)
}

fn today(loopback: &Loopback) -> String {
    Time((loopback.registry.now)())
        .to_string()
        .chars()
        .take("2006-01-02".len())
        .collect()
}

/// Whether a text is a day: `2006-01-02`.
fn is_date(text: &str) -> bool {
    Time::parse(&format!("{text}T00:00:00Z")).is_ok()
}

fn config_map(since: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name", NAME);
    metadata.insert("namespace", NAMESPACE);
    let mut data = Map::new();
    data.insert(SINCE, since);
    let mut object = Map::new();
    object.insert("apiVersion", "v1");
    object.insert("kind", "ConfigMap");
    object.insert("metadata", metadata);
    object.insert("data", data);
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_told_from_other_texts() {
        for (text, expected) in [
            ("2026-02-28", true),
            ("2026-02-30", false),
            ("", false),
            ("yesterday", false),
        ] {
            assert_eq!(is_date(text), expected, "{text}");
        }
    }
}
