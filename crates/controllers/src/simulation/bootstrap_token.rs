//! Bootstrap tokens: in the end cluster-info has the signature of every token that may sign, and of
//! no other, while tokens expire.

use std::collections::BTreeSet;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_api::time::Time;
use coracle_client::{Access, Resource};
use coracle_testkit::objects::object;
use coracle_testkit::simulation::actions::{delete_any, patch};
use coracle_testkit::simulation::{History, Objects, Others, Process, Scenario};

use super::holds;
use crate::bootstrap_token::secret::signing_token;
use crate::bootstrap_token::{cleaner, signer};

struct Tokens;

fn secrets(others: &Others) -> Access {
    let secrets = Resource::builtin("", "v1", "secrets");
    others.client.resource(&secrets).namespace("kube-system")
}

fn config_maps(others: &Others) -> Access {
    let config_maps = Resource::builtin("", "v1", "configmaps");
    others
        .client
        .resource(&config_maps)
        .namespace("kube-public")
}

/// Creates a token, which may expire soon.
async fn make(others: &Others) {
    let id = format!("abcde{}", others.rng.below(8));
    let mut entries = vec![
        ("token-id", id.clone()),
        ("token-secret", "0123456789abcdef".to_owned()),
    ];
    if others.rng.percent(80) {
        entries.push(("usage-bootstrap-signing", "true".to_owned()));
    }
    if others.rng.percent(40) {
        let lifetime = i64::try_from(others.rng.below(120)).unwrap();
        let at = others.client.world().now().plus_seconds(lifetime);
        entries.push(("expiration", Time(at).text().to_string()));
    }

    let data = entries
        .iter()
        .map(|(name, text)| format!("{name}: {}", STANDARD.encode(text)));
    let data = data.collect::<Vec<_>>().join(", ");
    let secret = object(&format!(
        "{{apiVersion: v1, kind: Secret, type: bootstrap.kubernetes.io/token, metadata: {{name: bootstrap-token-{id}}}, \
         data: {{{data}}}}}"
    ));
    // It may exist.
    drop(secrets(others).create(&secret).await);
}

#[async_trait(?Send)]
impl Scenario for Tokens {
    fn begin(&self, process: &Process) {
        let context = super::context(process);
        let (signer, cleaner) = (context.clone(), context.clone());
        context
            .tasks
            .spawn(async move { signer::run(&signer).await });
        context
            .tasks
            .spawn(async move { cleaner::run(&cleaner).await });
    }

    async fn prepare(&self, others: &Others) {
        for name in ["kube-system", "kube-public"] {
            let namespaces = Resource::builtin("", "v1", "namespaces");
            let namespace =
                format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}}}}}");
            drop(
                others
                    .client
                    .resource(&namespaces)
                    .create(&object(&namespace))
                    .await,
            );
        }
        let info = "{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-info}, data: {kubeconfig: first}}";
        config_maps(others).create(&object(info)).await.unwrap();
        make(others).await;
    }

    async fn act(&self, others: &Others) {
        match others.rng.below(10) {
            0..=4 => make(others).await,
            5 | 6 => delete_any(others, &secrets(others)).await,
            7 => {
                let changed = format!(
                    r#"{{"data":{{"kubeconfig":"{}"}}}}"#,
                    others.rng.below(1000)
                );
                patch(&config_maps(others), "cluster-info", &changed).await;
            }
            8 => {
                let wrong = r#"{"data":{"jws-kubeconfig-abcde1":"wrong"}}"#;
                patch(&config_maps(others), "cluster-info", wrong).await;
            }
            _ => {
                let none = r#"{"data":{"jws-kubeconfig-abcde2":null}}"#;
                patch(&config_maps(others), "cluster-info", none).await;
            }
        }
    }

    fn always(&self, _: &History) -> Result<(), String> {
        Ok(())
    }

    fn settled(&self, objects: &Objects) -> Result<(), String> {
        let tokens = objects.of("secrets").filter_map(|secret| {
            let token = signing_token(secret)?;
            Some(format!("jws-kubeconfig-{}", token.id))
        });
        let tokens: BTreeSet<String> = tokens.collect();

        let info = objects
            .of("configmaps")
            .find(|map| map.meta().name() == "cluster-info");
        let data = info
            .and_then(|info| info.get("data"))
            .and_then(Value::as_object);
        let entries = data.into_iter().flat_map(|data| data.iter());
        let signatures = entries.filter(|(name, _)| name.starts_with("jws-"));
        let mut signed = BTreeSet::new();
        for (name, text) in signatures {
            if text.as_str() == Some("wrong") {
                return Err(format!("{name} is still wrong"));
            }
            signed.insert(name.to_owned());
        }

        match signed == tokens {
            true => Ok(()),
            false => Err(format!("signed by {signed:?}, tokens are {tokens:?}")),
        }
    }
}

#[test]
fn every_token_signs_and_expired_ones_go() {
    holds(&Tokens);
}
