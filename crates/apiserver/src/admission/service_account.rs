//! ServiceAccount: a pod runs as a service account that exists, with its token mounted.
//!
//! A new pod that names no account gets the namespace's `default`, a token volume mounted in every
//! container that has no mount at that path, and the account's image pull secrets. A mirror pod is
//! not changed, and may not use any of these.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use coracle_api::codec::json;
use coracle_api::{Map, Value, names, typed};
use coracle_kinds::Part;
use coracle_kinds::builtin;
use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, ServiceAccount as Account};

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const DEFAULT: &str = "default";
const VOLUME: &str = "kube-api-access-";
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
const MIRROR: &str = "kubernetes.io/config.mirror";
const MOUNTABLE_ONLY: &str = "kubernetes.io/enforce-mountable-secrets";

/// How long to wait for a namespace's `default` account, which a controller creates just after the
/// namespace.
const PATIENCE: Duration = Duration::from_millis(1500);

/// A token that is renewed every hour, the authority of the server, and the namespace.
static TOKEN_VOLUME: LazyLock<Value> = LazyLock::new(|| {
    let text = r#"{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},
        {"configMap":{"items":[{"key":"ca.crt","path":"ca.crt"}],"name":"kube-root-ca.crt"}},
        {"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"},"path":"namespace"}]}}]}"#;
    json::parse(text.as_bytes()).expect("it is JSON")
});

pub(super) struct ServiceAccount;

#[async_trait]
impl Plugin for ServiceAccount {
    async fn admit(&self, pod: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.does(Operation::Create, "", "pods") && pod.meta().annotation(MIRROR).is_none()
        {
            let name = match account_name(pod) {
                "" => DEFAULT.to_owned(),
                name => name.to_owned(),
            };
            let account = account(&name, pod, attributes).await?;
            let volume = names::generate(VOLUME, attributes.cx.cluster.random());
            equip(pod, &name, &account, &volume);
        }
        self.validate(Some(pod), attributes).await
    }

    async fn validate(
        &self,
        pod: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(pod) = pod else { return Ok(()) };
        let debugs = attributes.operation == Operation::Update
            && attributes.cx.part == Part::EphemeralContainers
            && attributes.is_of("", "pods");
        if !debugs && !attributes.does(Operation::Create, "", "pods") {
            return Ok(());
        }

        if pod.meta().annotation(MIRROR).is_some() && !debugs {
            return check_mirror(&spec(pod)?).map_err(|why| attributes.forbidden(pod, why));
        }

        let name = account_name(pod);
        if name.is_empty() {
            let (namespace, name) = (attributes.cx.namespace, pod.meta().name());
            let why = format!("no service account specified for pod {namespace}/{name}");
            return Err(attributes.forbidden(pod, &why));
        }

        let account = account(name, pod, attributes).await?;
        let enforced = account
            .metadata
            .annotations
            .as_ref()
            .and_then(|all| all.get(MOUNTABLE_ONLY));

        if !enforced.is_some_and(|flag| is_true(flag)) {
            return Ok(());
        }

        if debugs {
            // Upstream refuses this with an error that is no status.
            return check_debuggers(&spec(pod)?, &account).map_err(ApiError::unexplained);
        }

        check_secrets(&spec(pod)?, &account).map_err(|why| attributes.forbidden(pod, &why))
    }
}

/// The typed spec, for the few pods that need it.
fn spec(pod: &Value) -> Result<PodSpec, ApiError> {
    let view = typed::view::<Pod>(pod).map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(view.spec.unwrap_or_default())
}

fn account_name(pod: &Value) -> &str {
    pod.at(&["spec", "serviceAccountName"])
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// What Go reads as true.
fn is_true(flag: &str) -> bool {
    matches!(flag, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

async fn account(
    name: &str,
    pod: &Value,
    attributes: &Attributes<'_>,
) -> Result<Account, ApiError> {
    let accounts = builtin("", "v1", "serviceaccounts");
    let mut found = attributes.lookup(accounts, name);
    if found.is_none() && name == DEFAULT {
        found = tokio::time::timeout(PATIENCE, appears(attributes))
            .await
            .ok()
            .flatten();
    }

    let view = found.and_then(|found| typed::view(&found).ok());
    view.ok_or_else(|| {
        let namespace = attributes.cx.namespace;
        let why = format!(
            "error looking up service account {namespace}/{name}: serviceaccount \"{name}\" not found"
        );
        attributes.forbidden(pod, &why)
    })
}

/// Waits for the namespace's `default` account.
async fn appears(attributes: &Attributes<'_>) -> Option<Arc<Value>> {
    let accounts = builtin("", "v1", "serviceaccounts");
    let key = format!("{}/{DEFAULT}", attributes.cx.namespace);
    attributes.cx.cluster.appears(accounts, &key).await
}

/// Gives a new pod what its account has for it.
fn equip(pod: &mut Value, name: &str, account: &Account, volume: &str) {
    let Some(spec) = pod.as_object_mut().map(|pod| pod.object_mut("spec")) else {
        return;
    };
    spec.insert("serviceAccountName", name);
    spec.insert("serviceAccount", name);

    let own = spec
        .get("automountServiceAccountToken")
        .and_then(Value::as_bool);
    if own
        .or(account.automount_service_account_token)
        .unwrap_or(true)
    {
        mount_token(spec, volume);
    }

    let has_secrets = spec
        .get("imagePullSecrets")
        .and_then(Value::as_array)
        .is_some_and(|list| !list.is_empty());

    let secrets = account.image_pull_secrets.as_deref().unwrap_or_default();
    if !has_secrets && !secrets.is_empty() {
        let reference = |name: &str| {
            let mut reference = Map::new();
            if !name.is_empty() {
                reference.insert("name", name);
            }
            Value::Object(reference)
        };

        let secrets: Vec<Value> = secrets
            .iter()
            .map(|secret| reference(&secret.name))
            .collect();
        spec.insert("imagePullSecrets", secrets);
    }
}

/// Mounts a token in every container that has nothing at its place. A volume that is called like
/// one is taken for one.
fn mount_token(spec: &mut Map, volume: &str) {
    let volumes = spec
        .get("volumes")
        .and_then(Value::as_array)
        .unwrap_or_default();

    let called = |volume: &Value| {
        volume
            .get("name")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };

    let known = volumes
        .iter()
        .filter_map(called)
        .find(|name| name.starts_with(VOLUME));
    let name = known.clone().unwrap_or_else(|| volume.to_owned());

    let mut mount = Map::new();
    mount.insert("mountPath", MOUNT_PATH);
    mount.insert("name", name.as_str());
    mount.insert("readOnly", true);

    let mut needed = false;
    for list in ["initContainers", "containers"] {
        let containers = spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();

        for container in containers.filter_map(Value::as_object_mut) {
            let mounts = container
                .get("volumeMounts")
                .and_then(Value::as_array)
                .unwrap_or_default();

            let is_there =
                |mount: &Value| mount.get("mountPath").and_then(Value::as_str) == Some(MOUNT_PATH);
            if mounts.iter().any(is_there) {
                continue;
            }

            needed = true;
            append(container, "volumeMounts", Value::Object(mount.clone()));
        }
    }

    if needed && known.is_none() {
        let mut volume = Map::new();
        volume.insert("name", name.as_str());
        volume.insert("projected", TOKEN_VOLUME.clone());
        append(spec, "volumes", Value::Object(volume));
    }
}

fn append(to: &mut Map, list: &str, item: Value) {
    match to.get_mut(list).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => {
            to.insert(list, vec![item]);
        }
    }
}

/// A pod that mirrors what a node runs by itself has no rights of its own.
fn check_mirror(spec: &PodSpec) -> Result<(), &'static str> {
    if spec
        .service_account_name
        .as_deref()
        .is_some_and(|name| !name.is_empty())
    {
        return Err("a mirror pod may not reference service accounts");
    }

    if references_secrets(spec) {
        return Err("a mirror pod may not reference secrets");
    }

    let mut projected = spec
        .volumes
        .iter()
        .flatten()
        .filter_map(|volume| volume.projected.as_ref());

    if projected.any(|projected| {
        projected
            .sources
            .iter()
            .flatten()
            .any(|source| source.service_account_token.is_some())
    }) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections");
    }

    Ok(())
}

fn references_secrets(spec: &PodSpec) -> bool {
    let in_container = |env: &[k8s_openapi::api::core::v1::EnvVar],
                        from: &[k8s_openapi::api::core::v1::EnvFromSource]| {
        from.iter().any(|from| from.secret_ref.is_some())
            || env.iter().any(|env| {
                env.value_from
                    .as_ref()
                    .is_some_and(|from| from.secret_key_ref.is_some())
            })
    };

    let containers = spec
        .containers
        .iter()
        .chain(spec.init_containers.iter().flatten());

    let ephemeral = spec.ephemeral_containers.iter().flatten();
    spec.image_pull_secrets
        .as_ref()
        .is_some_and(|secrets| !secrets.is_empty())
        || containers.into_iter().any(|container| {
            in_container(
                container.env.as_deref().unwrap_or_default(),
                container.env_from.as_deref().unwrap_or_default(),
            )
        })
        || ephemeral.into_iter().any(|container| {
            in_container(
                container.env.as_deref().unwrap_or_default(),
                container.env_from.as_deref().unwrap_or_default(),
            )
        })
        || spec.volumes.iter().flatten().any(volume_references_secret)
}

fn volume_references_secret(volume: &k8s_openapi::api::core::v1::Volume) -> bool {
    let projected = volume
        .projected
        .as_ref()
        .and_then(|projected| projected.sources.as_ref());

    volume.secret.is_some()
        || projected.is_some_and(|sources| sources.iter().any(|source| source.secret.is_some()))
        || volume.azure_file.is_some()
        || volume
            .cephfs
            .as_ref()
            .is_some_and(|ceph| ceph.secret_ref.is_some())
        || volume
            .cinder
            .as_ref()
            .is_some_and(|cinder| cinder.secret_ref.is_some())
        || volume
            .flex_volume
            .as_ref()
            .is_some_and(|flex| flex.secret_ref.is_some())
        || volume
            .rbd
            .as_ref()
            .is_some_and(|rbd| rbd.secret_ref.is_some())
        || volume.scale_io.is_some()
        || volume
            .iscsi
            .as_ref()
            .is_some_and(|iscsi| iscsi.secret_ref.is_some())
        || volume
            .storageos
            .as_ref()
            .is_some_and(|storage| storage.secret_ref.is_some())
        || volume
            .csi
            .as_ref()
            .is_some_and(|csi| csi.node_publish_secret_ref.is_some())
}

/// The secrets that pods of the account may mount.
fn mountable(account: &Account) -> BTreeSet<&str> {
    let secrets = account.secrets.iter().flatten();
    secrets
        .map(|secret| secret.name.as_deref().unwrap_or_default())
        .collect()
}

fn check_secrets(spec: &PodSpec, account: &Account) -> Result<(), String> {
    let (known, name) = (
        mountable(account),
        account.metadata.name.as_deref().unwrap_or_default(),
    );

    for volume in spec.volumes.iter().flatten() {
        let Some(secret) = volume
            .secret
            .as_ref()
            .map(|source| source.secret_name.as_deref().unwrap_or_default())
        else {
            continue;
        };

        if !known.contains(secret) {
            return Err(format!(
                "volume with secret.secretName=\"{secret}\" is not allowed because service account {name} does not reference that secret"
            ));
        }
    }

    for container in spec.init_containers.iter().flatten() {
        check_container(container, "init container", &known, name)?;
    }

    for container in &spec.containers {
        check_container(container, "container", &known, name)?;
    }

    let pull: BTreeSet<&str> = account
        .image_pull_secrets
        .iter()
        .flatten()
        .map(|secret| secret.name.as_str())
        .collect();

    for (index, secret) in spec.image_pull_secrets.iter().flatten().enumerate() {
        if !pull.contains(secret.name.as_str()) {
            return Err(format!(
                "imagePullSecrets[{index}].name=\"{}\" is not allowed because service account {name} does not reference that imagePullSecret",
                secret.name
            ));
        }
    }

    Ok(())
}

fn check_debuggers(spec: &PodSpec, account: &Account) -> Result<(), String> {
    let (known, name) = (
        mountable(account),
        account.metadata.name.as_deref().unwrap_or_default(),
    );

    for container in spec.ephemeral_containers.iter().flatten() {
        let plain = Container {
            name: container.name.clone(),
            env: container.env.clone(),
            env_from: container.env_from.clone(),
            ..Container::default()
        };
        check_container(&plain, "ephemeral container", &known, name)?;
    }

    Ok(())
}

fn check_container(
    container: &Container,
    called: &str,
    known: &BTreeSet<&str>,
    account: &str,
) -> Result<(), String> {
    let refuse = |what: String, secret: &str| {
        Err(format!(
            "{called} {} with {what} referencing secret.secretName=\"{secret}\" is not allowed because service account {account} does not reference that secret",
            container.name
        ))
    };

    for env in container.env.iter().flatten() {
        let secret = env
            .value_from
            .as_ref()
            .and_then(|from| from.secret_key_ref.as_ref());
        if let Some(secret) = secret.filter(|secret| !known.contains(secret.name.as_str())) {
            return refuse(format!("envVar {}", env.name), &secret.name);
        }
    }

    for from in container.env_from.iter().flatten() {
        if let Some(secret) = from
            .secret_ref
            .as_ref()
            .filter(|secret| !known.contains(secret.name.as_str()))
        {
            return refuse("envFrom".to_owned(), &secret.name);
        }
    }

    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(text: &str) -> Account {
        typed::from_tree(&json::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_token_is_mounted_where_nothing_else_is() {
        let check = |spec: &str, account_text: &str, mounts: usize, volumes: usize| {
            let mut pod = json::parse(format!(r#"{{"spec":{spec}}}"#).as_bytes()).unwrap();
            equip(
                &mut pod,
                "sa",
                &account(account_text),
                "kube-api-access-abcde",
            );

            let spec = pod.get("spec").unwrap();
            let list = |value: &Value, name: &str| {
                value
                    .get(name)
                    .and_then(Value::as_array)
                    .map_or(0, <[Value]>::len)
            };

            let containers = spec.get("containers").unwrap().as_array().unwrap();
            assert_eq!(list(&containers[0], "volumeMounts"), mounts, "{spec:?}");
            assert_eq!(list(spec, "volumes"), volumes, "{spec:?}");
            assert_eq!(spec.get("serviceAccount").unwrap().as_str(), Some("sa"));
        };

        let plain = r#"{"metadata":{}}"#;
        check(r#"{"containers":[{"name":"c"}]}"#, plain, 1, 1);
        check(
            r#"{"automountServiceAccountToken":false,"containers":[{"name":"c"}]}"#,
            plain,
            0,
            0,
        );

        check(
            r#"{"containers":[{"name":"c"}]}"#,
            r#"{"metadata":{},"automountServiceAccountToken":false}"#,
            0,
            0,
        );

        let there = format!(
            r#"{{"containers":[{{"name":"c","volumeMounts":[{{"name":"v","mountPath":"{MOUNT_PATH}"}}]}}]}}"#
        );
        check(&there, plain, 1, 0);
        check(
            r#"{"containers":[{"name":"c"}],"volumes":[{"name":"kube-api-access-mine"}]}"#,
            plain,
            1,
            1,
        );
    }

    #[test]
    fn an_account_can_restrict_the_secrets_that_its_pods_mount() {
        let check = |spec: &str, expected: Result<(), &str>| {
            let spec: PodSpec = typed::from_tree(&json::parse(spec.as_bytes()).unwrap()).unwrap();
            let account = account(r#"{"metadata":{"name":"sa"},"secrets":[{"name":"known"}]}"#);
            assert_eq!(
                check_secrets(&spec, &account),
                expected.map_err(str::to_owned)
            );
        };

        check(
            r#"{"containers":[],"volumes":[{"name":"v","secret":{"secretName":"known"}}]}"#,
            Ok(()),
        );

        check(
            r#"{"containers":[],"volumes":[{"name":"v","secret":{"secretName":"s"}}]}"#,
            Err(
                "volume with secret.secretName=\"s\" is not allowed because service account sa does not reference that secret",
            ),
        );

        check(
            r#"{"containers":[{"name":"c","envFrom":[{"secretRef":{"name":"s"}}]}]}"#,
            Err(
                "container c with envFrom referencing secret.secretName=\"s\" is not allowed because service account sa does not reference that secret",
            ),
        );

        check(
            r#"{"containers":[],"imagePullSecrets":[{"name":"s"}]}"#,
            Err(
                "imagePullSecrets[0].name=\"s\" is not allowed because service account sa does not reference that imagePullSecret",
            ),
        );
    }
}
