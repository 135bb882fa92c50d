//! The fields of a new pod that the server sets.

use coracle_api::time::Timestamp;
use coracle_api::{Map, Value, typed};
use k8s_openapi::api::core::v1::{AppArmorProfile, PodSpec};

use super::annotation::APP_ARMOR_PREFIX;
use super::condition::Condition;
use super::qos;
use super::validate::security;
use crate::strategy::Errors;

/// Prepares a new pod: its status, selectors completed from its labels, profiles from its
/// annotations.
pub(super) fn new_pod(pod: &mut Value, now: Timestamp) {
    let class = pod
        .get("spec")
        .and_then(|spec| typed::from_tree::<PodSpec>(spec).ok());
    let class = class.as_ref().map_or("BestEffort", qos::class);
    let Some(members) = pod.as_object_mut() else {
        return;
    };

    let mut status = Map::new();
    status.insert("phase", "Pending");
    status.insert("qosClass", class);
    members.insert("status", status);

    if pod
        .at(&["spec", "schedulingGates"])
        .and_then(Value::as_array)
        .is_some_and(|gates| !gates.is_empty())
    {
        let message = "Scheduling is blocked due to non-empty scheduling gates";
        Condition {
            of: "PodScheduled",
            status: "False",
            reason: "SchedulingGated",
            message,
        }
        .set(pod, now);
    }

    complete_selectors(pod);
    profiles_from_annotations(pod);
}

/// Adds the pod's own values of `matchLabelKeys` to selectors.
fn complete_selectors(pod: &mut Value) {
    let Some(labels) = pod.meta().labels().cloned() else {
        return;
    };

    let Some(spec) = pod.as_object_mut().and_then(|pod| pod.get_mut("spec")) else {
        return;
    };
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = member(spec, "affinity").and_then(|all| member(all, affinity)) else {
            continue;
        };
        for weighted in list(affinity, "preferredDuringSchedulingIgnoredDuringExecution") {
            if let Some(term) = member(weighted, "podAffinityTerm") {
                complete(term, &labels);
            }
        }

        for term in list(affinity, "requiredDuringSchedulingIgnoredDuringExecution") {
            complete(term, &labels);
        }
    }

    for constraint in list(spec, "topologySpreadConstraints") {
        complete(constraint, &labels);
    }
}

/// A term without a selector matches nothing, and is left so.
fn complete(term: &mut Value, labels: &Map) {
    let mut expressions = Vec::new();
    for (keys, operator) in [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")] {
        let keys = term
            .get(keys)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);

        for (key, value) in keys.filter_map(|key| Some((key, labels.get(key)?))) {
            let mut expression = Map::new();
            expression.insert("key", key);
            expression.insert("operator", operator);
            expression.insert("values", vec![value.clone()]);
            expressions.push(Value::Object(expression));
        }
    }

    if let Some(selector) = member(term, "labelSelector").and_then(Value::as_object_mut)
        && !expressions.is_empty()
    {
        let given = selector.get_or_insert_with("matchExpressions", || Value::Array(Vec::new()));
        if let Some(given) = given.as_array_mut() {
            given.append(&mut expressions);
        }
    }
}

/// The AppArmor profile of a container that only has the annotation.
struct Annotated {
    /// The list of containers, and the index in it.
    list: &'static str,
    index: usize,
    annotation: String,
    /// Absent: the annotation is invalid.
    profile: Option<AppArmorProfile>,
}

/// Containers whose annotation differs from the pod's own field.
fn annotated(pod: &Value) -> Vec<Annotated> {
    let windows = pod.at(&["spec", "os", "name"]).and_then(Value::as_str) == Some("windows");
    let (Some(annotations), false) = (pod.meta().annotations(), windows) else {
        return Vec::new();
    };
    let of_pod = pod.at(&["spec", "securityContext", "appArmorProfile"]);
    let of_pod: Option<AppArmorProfile> = of_pod.and_then(|profile| typed::from_tree(profile).ok());

    let mut found = Vec::new();
    for name in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod
            .at(&["spec", name])
            .and_then(Value::as_array)
            .into_iter()
            .flatten();

        for (index, container) in containers.enumerate() {
            let of = container
                .get("name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let annotation = format!("{APP_ARMOR_PREFIX}{of}");
            let Some(value) = annotations.str(&annotation) else {
                continue;
            };

            if container
                .at(&["securityContext", "appArmorProfile"])
                .is_some_and(|own| !own.is_null())
            {
                continue;
            }

            let profile = profile_of(value).filter(is_good);
            if profile.is_none() || profile != of_pod {
                found.push(Annotated {
                    list: name,
                    index,
                    annotation,
                    profile,
                });
            }
        }
    }

    found
}

fn profiles_from_annotations(pod: &mut Value) {
    for Annotated {
        list: name,
        index,
        profile,
        ..
    } in annotated(pod)
    {
        let profile = profile.and_then(|profile| typed::to_tree(&profile).ok());
        let spec = pod.as_object_mut().and_then(|pod| pod.get_mut("spec"));

        let container = spec
            .and_then(|spec| list(spec, name).nth(index))
            .and_then(Value::as_object_mut);
        if let (Some(profile), Some(container)) = (profile, container) {
            container
                .object_mut("securityContext")
                .insert("appArmorProfile", profile);
        }
    }
}

/// Warnings about annotations that became fields, or could not.
pub(super) fn notices(pod: &Value) -> Vec<String> {
    let text = |key: &str| {
        format!(
            "metadata.annotations[{key}]: deprecated since v1.30; use the \"appArmorProfile\" field instead"
        )
    };
    annotated(pod)
        .iter()
        .map(|found| text(&found.annotation))
        .collect()
}

/// The profile of an annotation value.
pub(super) fn profile_of(annotation: &str) -> Option<AppArmorProfile> {
    let of = |name: &str, file: Option<&str>| {
        Some(AppArmorProfile {
            type_: name.to_owned(),
            localhost_profile: file.map(str::to_owned),
        })
    };

    match annotation {
        "unconfined" => of("Unconfined", None),
        "runtime/default" => of("RuntimeDefault", None),
        other => {
            let file = other
                .strip_prefix("localhost/")
                .filter(|file| !file.is_empty())?;
            of("Localhost", Some(file))
        }
    }
}

fn is_good(profile: &AppArmorProfile) -> bool {
    let mut errors = Errors::new();
    security::validate_app_armor(Some(profile), &coracle_api::Path::Root, &mut errors);
    errors.is_empty()
}

fn member<'v>(of: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    of.as_object_mut()?.get_mut(name)
}

fn list<'v>(of: &'v mut Value, name: &str) -> impl Iterator<Item = &'v mut Value> {
    member(of, name)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}
