//! What a pod of a StatefulSet is, and what is its own: its name, its labels, its claims. Pure.

use coracle_api::owner::OwnerReference;
use coracle_api::{Map, Value};

use super::POD_REVISION;
use crate::pods::Owner;
use crate::template;
use crate::views::StatefulSet;

/// The label that says the name of a pod, so that a Service can select it alone.
pub(super) const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
/// The label that says its number.
pub(super) const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// A pod of this number and revision; `None`: the template has no labels.
pub(super) fn new_pod(
    set: &StatefulSet,
    owner: &Owner,
    ordinal: usize,
    of: &Value,
    revision: &str,
) -> Option<Value> {
    let name = set.pod_name(ordinal);
    let mut pod = template::pod(of, &owner.key.namespace, "", owner.controller.reference())?;
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

/// The claims that a pod of this number has.
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

/// Which pod a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClaimPod<'a> {
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    /// Whether it goes because there should be fewer.
    pub(super) is_surplus: bool,
}

/// The owners that a claim should have, so that it goes when the policy says; `None`: it has them.
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

    // It is about to go with an owner that is gone.
    if there.iter().any(is_stale) {
        return None;
    }

    let others: Vec<OwnerReference<'_>> = there
        .iter()
        .filter(|one| !is_set(one) && !is_pod(one))
        .copied()
        .collect();

    let (when_scaled, when_deleted) = set.deletes_claims();

    // Somebody else manages it: that is left to them.
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

/// Whether a claim has an owner of the name of a pod that is not there: it goes, and another must
/// come first.
pub(super) fn is_stale(claim: &Value, set: &StatefulSet, ordinal: usize) -> bool {
    let name = set.pod_name(ordinal);
    let mut owners = claim.meta().owner_references();
    set.deletes_claims().0 && owners.any(|one| one.kind == "Pod" && one.name == name)
}
