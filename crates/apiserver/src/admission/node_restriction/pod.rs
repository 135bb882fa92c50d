//! Pods: a node creates mirror pods of its static pods, and writes the status of its own pods.

use coracle_api::Value;
use coracle_api::go_text::Quoted;
use coracle_kinds::Part;
use coracle_kinds::builtin;

use super::{Write, is_on};
use crate::ApiError;
use crate::admission::Operation;

const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) fn check(write: &Write<'_>) -> Result<(), ApiError> {
    let node = Quoted(write.node);
    match (write.attributes.cx.part, write.attributes.operation) {
        (Part::Main, Operation::Create) => create(write),
        (Part::Main, Operation::Delete) => {
            if is_on(&*write.pod(write.name())?, write.node) {
                return Ok(());
            }
            Err(write.refused(&format!(
                "node {node} can only delete pods with spec.nodeName set to itself"
            )))
        }
        (Part::Main, Operation::Update) => Err(write.refused(&format!(
            "unexpected operation \"UPDATE\", node {node} can only create and delete mirror pods"
        ))),
        (Part::Status, _) => status(write),
        (Part::Eviction, _) => {
            if is_on(&*write.pod(write.name())?, write.node) {
                return Ok(());
            }
            let node = write.node;
            Err(write.refused(&format!(
                "node {node} can only evict pods with spec.nodeName set to itself"
            )))
        }
        (part, _) => Err(write.refused(&format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            Quoted(part.name())
        ))),
    }
}

fn create(write: &Write<'_>) -> Result<(), ApiError> {
    let (Some(pod), node) = (write.object, Quoted(write.node)) else {
        return Ok(());
    };

    let refuse = |why: String| Err(write.refused(&why));
    if pod.meta().annotation(MIRROR).is_none() {
        let why = format!(
            "pod does not have \"{MIRROR}\" annotation, node {node} can only create mirror pods"
        );
        return refuse(why);
    }

    if !is_on(pod, write.node) {
        return refuse(format!(
            "node {node} can only create pods with spec.nodeName set to itself"
        ));
    }

    let owners = pod
        .at(&["metadata", "ownerReferences"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    let owner = match owners {
        [owner] => owner,
        [] => {
            return refuse(format!(
                "node {node} can only create pods with an owner reference set to itself"
            ));
        }
        _ => {
            return refuse(format!(
                "node {node} can only create pods with a single owner reference set to itself"
            ));
        }
    };
    let text = |name| owner.get(name).and_then(Value::as_str).unwrap_or_default();

    let is = |name| owner.get(name).and_then(Value::as_bool) == Some(true);

    if (text("apiVersion"), text("kind"), text("name")) != ("v1", "Node", write.node) {
        return refuse(format!(
            "node {node} can only create pods with an owner reference set to itself"
        ));
    }

    if !is("controller") {
        return refuse(format!(
            "node {node} can only create pods with a controller owner reference set to itself"
        ));
    }

    if is("blockOwnerDeletion") {
        return refuse(format!(
            "node {node} must not set blockOwnerDeletion on an owner reference"
        ));
    }

    let nodes = builtin("", "v1", "nodes");
    let own = write.attributes.lookup(nodes, write.node);

    let own = own.ok_or_else(|| ApiError::not_found(nodes, write.node))?;
    if text("uid") != own.meta().uid() {
        let (node, found) = (write.node, own.meta().uid());
        return refuse(format!(
            "node {node} UID mismatch: expected {} got {found}",
            text("uid")
        ));
    }

    match api_object(pod) {
        Some(what) => refuse(format!(
            "node {node} can not create pods that reference {what}"
        )),
        None => Ok(()),
    }
}

/// What of the API a pod needs, if it needs anything: a static pod must not.
fn api_object(pod: &Value) -> Option<&'static str> {
    let needs = crate::authz::node::Needs::of_spec(pod);
    [
        (!needs.account.is_empty(), "serviceaccounts"),
        (!needs.secrets.is_empty(), "secrets"),
        (!needs.config_maps.is_empty(), "configmaps"),
        (
            pod.at(&["spec", "resourceClaims"])
                .and_then(Value::as_array)
                .is_some_and(|list| !list.is_empty()),
            "resourceclaims",
        ),
        (!needs.claims.is_empty(), "persistentvolumeclaims"),
    ]
    .into_iter()
    .find_map(|(needed, what)| needed.then_some(what))
}

fn status(write: &Write<'_>) -> Result<(), ApiError> {
    let node = Quoted(write.node);
    let (Some(old), Some(new)) = (write.attributes.old, write.object) else {
        return Err(write.refused("unexpected operation \"DELETE\""));
    };
    if !is_on(old, write.node) {
        return Err(write.refused(&format!(
            "node {node} can only update pod status for pods with spec.nodeName set to itself"
        )));
    }

    let differs = |path: &[&str]| old.at(path) != new.at(path);
    for (path, what) in [
        (&["metadata", "labels"][..], "labels through pod status"),
        (
            &["status", "resourceClaimStatuses"],
            "resource claim statues",
        ),
        (
            &["status", "extendedResourceClaimStatus"],
            "extended resource claim status",
        ),
    ] {
        if differs(path) {
            return Err(write.refused(&format!("node {node} cannot update {what}")));
        }
    }

    Ok(())
}

/// A claim: only the status of a resize.
pub(super) fn check_claim(write: &Write<'_>) -> Result<(), ApiError> {
    if write.attributes.cx.part != Part::Status {
        return Err(write.refused("may only update PVC status"));
    }

    let (Some(old), Some(new)) = (write.attributes.old, write.object) else {
        return Ok(());
    };
    let rest = |claim: &Value| {
        let mut claim = claim.clone();
        for name in ["resourceVersion", "managedFields"] {
            claim.meta_mut().members().remove(name);
        }

        if let Some(status) = claim
            .as_object_mut()
            .map(|claim| claim.object_mut("status"))
        {
            for name in [
                "capacity",
                "conditions",
                "allocatedResourceStatuses",
                "allocatedResources",
            ] {
                status.remove(name);
            }
        }

        claim
    };

    if rest(old) == rest(new) {
        return Ok(());
    }

    Err(write.refused(&format!(
        "node {} is not allowed to update fields other than status.quantity and status.conditions",
        Quoted(write.node)
    )))
}
