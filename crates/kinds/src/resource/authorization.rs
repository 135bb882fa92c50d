//! What of a claim's status a user may change, beyond the status as a whole: allocation and
//! reservation with the subresource `binding`, devices driver by driver with the subresource
//! `driver`. Neither subresource exists but for this.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::names::dns1123_subdomain;
use coracle_api::{Path, Value};

use crate::access::{Attributes, ResourceTarget};
use crate::strategy::{Context, Errors};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

/// The key of a token's extra values that names the node of its pod.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";

/// Whether the user may change the status as asked.
pub(super) async fn check(new: &Value, old: &Value, cx: &Context<'_>) -> Errors {
    let mut errors = Errors::new();
    let part = |claim: &Value, name: &str| {
        let found = claim.at(&["status", name]).filter(|found| !is_empty(found));
        found.cloned()
    };
    let changed = |name| part(new, name) != part(old, name);

    if changed("allocation") || changed("reservedFor") {
        let verb = cx.update_verb;
        if let Err(refused) = allowed(verb, "binding", "", "", cx).await {
            let why = format!(
                "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"{verb}\" permission: {refused}"
            );
            errors.push(FieldError::forbidden(&STATUS.field("allocation"), why));
        }
    }

    if part(new, "allocation").is_some() {
        check_devices(new, old, cx, &mut errors).await;
    }

    errors
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(<[Value]>::is_empty)
}

async fn check_devices(new: &Value, old: &Value, cx: &Context<'_>, errors: &mut Errors) {
    let drivers = changed_drivers(new, old);
    if drivers.is_empty() {
        return;
    }

    let mut verbs = vec![format!("arbitrary-node:{}", cx.update_verb)];
    if is_on_node_of(new, cx) {
        verbs.insert(0, format!("associated-node:{}", cx.update_verb));
    }

    for driver in drivers {
        let mut refused = None;
        for verb in &verbs {
            match allowed(verb, "driver", cx.namespace, &driver, cx).await {
                Ok(()) => {
                    refused = None;
                    break;
                }
                Err(why) => refused = refused.or(Some(why)),
            }
        }

        if let Some(refused) = refused {
            let why = format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {refused}",
                verbs.join(" ")
            );
            errors.push(FieldError::forbidden(&STATUS.field("devices"), why));
        }
    }
}

/// The drivers of devices whose status was added, changed or removed.
fn changed_drivers(new: &Value, old: &Value) -> BTreeSet<String> {
    let devices = |claim: &Value| -> BTreeMap<[String; 4], Value> {
        let list = claim.at(&["status", "devices"]).and_then(Value::as_array);
        let key = |device: &Value| {
            let part = |name: &str| {
                let found = device.get(name).and_then(Value::as_str);
                found.unwrap_or_default().to_owned()
            };
            [
                part("driver"),
                part("pool"),
                part("device"),
                part("shareID"),
            ]
        };
        let list = list.into_iter().flatten();
        list.map(|device| (key(device), device.clone())).collect()
    };

    let (new, mut old) = (devices(new), devices(old));
    let mut drivers = BTreeSet::new();
    for (key, device) in new {
        if old.remove(&key).as_ref() != Some(&device) {
            drivers.insert(key[0].clone());
        }
    }

    drivers.extend(old.into_keys().map(|[driver, ..]| driver));
    drivers
}

/// Whether the user is a service account whose token is bound to the node of the allocation.
fn is_on_node_of(claim: &Value, cx: &Context<'_>) -> bool {
    let nodes = cx.user.extra.get(NODE_NAME);
    match nodes.map(Vec::as_slice) {
        Some([node]) => {
            cx.user.name.starts_with("system:serviceaccount:")
                && dns1123_subdomain(node).is_empty()
                && allocated_node(claim) == Some(node)
        }
        _ => false,
    }
}

/// The only node of the allocation, as the scheduler names it.
fn allocated_node(claim: &Value) -> Option<&str> {
    let path = ["status", "allocation", "nodeSelector", "nodeSelectorTerms"];
    let [term] = claim.at(&path)?.as_array()? else {
        return None;
    };
    let expressions = term.get("matchExpressions").and_then(Value::as_array);
    if expressions.is_some_and(|expressions| !expressions.is_empty()) {
        return None;
    }

    let [field] = term.get("matchFields")?.as_array()? else {
        return None;
    };
    let is = |name: &str, expected: &str| field.get(name).and_then(Value::as_str) == Some(expected);
    if !is("key", "metadata.name") || !is("operator", "In") {
        return None;
    }

    match field.get("values")?.as_array()? {
        [node] => node.as_str(),
        _ => None,
    }
}

async fn allowed(
    verb: &str,
    subresource: &str,
    namespace: &str,
    name: &str,
    cx: &Context<'_>,
) -> Result<(), String> {
    let target = ResourceTarget {
        group: &cx.resource.group,
        version: &cx.resource.version,
        resource: &cx.resource.plural,
        subresource,
        namespace,
        name,
        ..ResourceTarget::default()
    };
    if cx
        .cluster
        .authorize(Attributes::on(cx.user, verb, target))
        .await
    {
        return Ok(());
    }

    let place = match namespace {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace {}", Quoted(namespace)),
    };
    let object = match name {
        "" => String::new(),
        name => format!(" {}", Quoted(name)),
    };
    Err(format!(
        "resourceclaims.resource.k8s.io{object} is forbidden: User {} cannot {verb} resource \"resourceclaims/{subresource}\" in API group \"resource.k8s.io\" {place}",
        Quoted(&cx.user.name)
    ))
}
