//! The identity of a pod of a StatefulSet: its name, its labels, its claims. Pure.

use coracle_api::owner::OwnerReference;
use coracle_api::{Map, Value};

use super::POD_REVISION;
use crate::pods::Owner;
use crate::template;
use crate::views::StatefulSet;

/// The label with the name of a pod, so that a Service can select it alone.
pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// The label with its ordinal.
pub(super) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// Builds the pod of this ordinal and revision; `None` if the template has no labels.
pub(super) fn new_pod(
    set: &StatefulSet,
    owner: &Owner,
    ordinal: usize,
    of: &Value,
    revision: &str,
) -> Option<Value> {
    let name = set.pod_name(ordinal);
    let mut pod = template::build_pod(of, &owner.key.namespace, "", owner.controller.reference())?;
    let mut meta = pod.meta_mut();
    meta.members().remove("generateName");
    meta.set_name(&name);

    meta.set_label(POD_NAME, Some(&name));
    meta.set_label(POD_INDEX, Some(&ordinal.to_string()));
    meta.set_label(POD_REVISION, Some(revision));
    let service = set
        .object
        .at(&["spec", "serviceName"])
        .and_then(Value::as_str)
        .unwrap_or_default();

    let spec = pod.as_object_mut()?.object_mut("spec");
    spec.insert("hostname", name.as_str());

    if !service.is_empty() {
        spec.insert("subdomain", service);
    }

    let templates = set
        .claim_templates()
        .iter()
        .map(|claim| claim.meta().name());

    let mut volumes: Vec<Value> = templates
        .clone()
        .map(|volume| claimed(set, volume, ordinal))
        .collect();

    let others = spec.items("volumes").iter().filter(|volume| {
        let name = volume
            .get("name")
            .and_then(Value::as_str)
            .unwrap_or_default();
        !templates.clone().any(|claim| claim == name)
    });
    volumes.extend(others.cloned());

    if !volumes.is_empty() {
        spec.insert("volumes", volumes);
    }

    Some(pod)
}

fn claimed(set: &StatefulSet, volume: &str, ordinal: usize) -> Value {
    let mut of = Map::new();
    of.insert("name", volume);
    of.object_mut("persistentVolumeClaim")
        .insert("claimName", claim_name(set, volume, ordinal));
    Value::Object(of)
}

/// The name of a pod's claim.
pub(super) fn claim_name(set: &StatefulSet, volume: &str, ordinal: usize) -> String {
    format!("{volume}-{}", set.pod_name(ordinal))
}

/// Builds the claims of the pod with this ordinal.
pub(super) fn claims(set: &StatefulSet, owner: &Owner, ordinal: usize) -> Vec<Value> {
    let labels = set
        .object
        .at(&["spec", "selector", "matchLabels"])
        .and_then(Value::as_object);

    let new = |template: &Value| {
        let mut claim = template.clone();
        if let Some(members) = claim.as_object_mut() {
            members.insert("apiVersion", "v1");
            members.insert("kind", "PersistentVolumeClaim");
            members.remove("status");
        }

        let name = claim_name(set, template.meta().name(), ordinal);
        let mut meta = claim.meta_mut();
        meta.members().remove("creationTimestamp");
        meta.set_name(&name);
        meta.set_namespace(&owner.key.namespace);

        for (key, value) in labels.into_iter().flat_map(Map::iter) {
            meta.set_label(key, value.as_str());
        }

        if let Some(owners) = owners(&claim, set, owner, None) {
            let owners: Vec<_> = owners.iter().map(OwnerReference::from_value).collect();
            claim.meta_mut().set_owner_references(owners);
        }

        claim
    };

    set.claim_templates().iter().map(new).collect()
}

/// The pod of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClaimPod<'a> {
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    /// Whether it is removed by scale-down.
    pub(super) is_surplus: bool,
}

/// The owners that a claim should have under the retention policy; `None` if it has them.
pub(super) fn owners(
    claim: &Value,
    set: &StatefulSet,
    owner: &Owner,
    pod: Option<ClaimPod<'_>>,
) -> Option<Vec<Value>> {
    let is_set = |one: &OwnerReference<'_>| {
        one.kind == "StatefulSet"
            && one.api_version == "apps/v1"
            && one.name == owner.key.name.as_str()
    };

    let is_pod = |one: &OwnerReference<'_>| {
        one.kind == "Pod" && one.api_version == "v1" && pod.is_some_and(|pod| pod.name == one.name)
    };
    let there: Vec<OwnerReference<'_>> = claim.meta().owner_references().collect();
    let is_stale = |one: &OwnerReference<'_>| {
        (is_set(one) && one.uid != owner.controller.uid.as_str())
            || (is_pod(one) && pod.is_some_and(|pod| pod.uid != one.uid))
    };

    // It is about to be deleted with an owner that no longer exists.
    if there.iter().any(is_stale) {
        return None;
    }

    let others: Vec<OwnerReference<'_>> = there
        .iter()
        .filter(|one| !is_set(one) && !is_pod(one))
        .copied()
        .collect();

    let (when_scaled, when_deleted) = set.deletes_claims();

    // Another controller manages it.
    let is_foreign = (when_scaled || when_deleted) && others.iter().any(|one| one.controller);
    let is_surplus = pod.is_some_and(|pod| pod.is_surplus);
    let mut wanted = others;

    let uid_and_name = pod.map(|pod| (pod.name, pod.uid));
    if !is_foreign && when_scaled && is_surplus {
        let (name, uid) = uid_and_name.unwrap_or_default();
        wanted.push(OwnerReference {
            api_version: "v1",
            kind: "Pod",
            name,
            uid,
            controller: true,
            block_owner_deletion: true,
        });
    } else if !is_foreign && when_deleted && !(when_scaled && is_surplus) {
        wanted.push(owner.controller.reference());
    }

    let same = wanted.len() == there.len() && wanted.iter().all(|one| there.contains(one));
    (!same).then(|| wanted.iter().map(OwnerReference::to_value).collect())
}

/// Whether a claim has an owner of this pod's name that no longer exists: it is garbage collected,
/// and a new one must be created first.
pub(super) fn is_stale(claim: &Value, set: &StatefulSet, ordinal: usize) -> bool {
    let name = set.pod_name(ordinal);
    let mut owners = claim.meta().owner_references();
    set.deletes_claims().0 && owners.any(|one| one.kind == "Pod" && one.name == name)
}
