//! Tokens: a kubelet requests tokens only for pods on its node, bound to the pod, for audiences
//! that the pod names.

use coracle_api::Value;
use coracle_api::go_text::Quoted;
use coracle_kinds::Part;
use coracle_kinds::builtin;

use super::{Write, is_on};
use crate::ApiError;
use crate::authz::{Attributes, ResourceTarget};

pub(super) async fn check(write: &Write<'_>) -> Result<(), ApiError> {
    let Some(request) = write
        .object
        .filter(|_| write.attributes.cx.part == Part::Token)
    else {
        return Ok(());
    };

    let text = |name| {
        request
            .at(&["spec", "boundObjectRef", name])
            .and_then(Value::as_str)
            .unwrap_or_default()
    };

    if text("apiVersion") != "v1" || text("kind") != "Pod" || text("name").is_empty() {
        return Err(write.refused("node requested token not bound to a pod"));
    }
    if text("uid").is_empty() {
        return Err(write.refused("node requested token with a pod binding without a uid"));
    }

    let pod = write.pod(text("name"))?;
    if text("uid") != pod.meta().uid() {
        return Err(write.refused(&format!(
            "the UID in the bound object reference ({}) does not match the UID in record. The object might have been deleted and then recreated",
            text("uid")
        )));
    }

    if !is_on(&pod, write.node) {
        return Err(
            write.refused("node requested token bound to a pod scheduled on a different node")
        );
    }

    check_audience(write, request, &pod).await
}

async fn check_audience(write: &Write<'_>, request: &Value, pod: &Value) -> Result<(), ApiError> {
    let audiences = request
        .at(&["spec", "audiences"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    let audience = match audiences {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return Err(write.refused("node may only request 0 or 1 audiences")),
    };

    let volumes = pod
        .at(&["spec", "volumes"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    if volumes
        .iter()
        .any(|volume| names(write, pod, volume, audience))
    {
        return Ok(());
    }

    let cx = &write.attributes.cx;
    let user = cx.user;
    let target_resource = ResourceTarget {
        version: "v1",
        resource: audience,
        namespace: cx.namespace,
        name: write.attributes.name,
        ..ResourceTarget::default()
    };

    let verb = "request-serviceaccounts-token-audience";
    if cx
        .cluster
        .authorize(Attributes::on(user, verb, target_resource))
        .await
    {
        return Ok(());
    }

    Err(write.refused(&format!(
        "audience {} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        Quoted(audience),
        user.name
    )))
}

/// Whether a volume needs a token for this audience.
fn names(write: &Write<'_>, pod: &Value, volume: &Value, audience: &str) -> bool {
    let sources = volume
        .at(&["projected", "sources"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    let tokens = sources
        .iter()
        .filter_map(|source| source.get("serviceAccountToken"));
    let of = |token: &Value| {
        token
            .get("audience")
            .and_then(Value::as_str)
            .unwrap_or_default()
            == audience
    };

    if tokens.into_iter().any(of) {
        return true;
    }

    let driver = driver(write, pod, volume);
    let driver = driver.and_then(|name| {
        write
            .attributes
            .lookup(builtin("storage.k8s.io", "v1", "csidrivers"), &name)
    });

    let requests = driver
        .as_ref()
        .and_then(|driver| driver.at(&["spec", "tokenRequests"])?.as_array());

    requests.unwrap_or_default().iter().any(of)
}

/// The CSI driver of a volume.
fn driver(write: &Write<'_>, pod: &Value, volume: &Value) -> Option<String> {
    if let Some(driver) = volume.at(&["csi", "driver"]).and_then(Value::as_str) {
        return Some(driver.to_string());
    }

    let claim = match volume
        .at(&["persistentVolumeClaim", "claimName"])
        .and_then(Value::as_str)
    {
        Some(claim) => claim.to_string(),
        None => {
            volume.get("ephemeral")?;
            format!("{}-{}", pod.meta().name(), volume.get("name")?.as_str()?)
        }
    };

    let claim = write
        .attributes
        .lookup(builtin("", "v1", "persistentvolumeclaims"), &claim)?;
    let volume = claim.at(&["spec", "volumeName"])?.as_str()?;
    let volume = write
        .attributes
        .lookup(builtin("", "v1", "persistentvolumes"), volume)?;

    Some(volume.at(&["spec", "csi", "driver"])?.as_str()?.to_string())
}
