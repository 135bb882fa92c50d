//! `pods/resize`: requests and limits of CPU and memory, of containers and of the pod, while it
//! runs.

use coracle_api::field_error::FieldError;
use coracle_api::{Map, Path, Value};
use k8s_openapi::api::core::v1::{
    Container, ContainerResizePolicy, Pod, PodSpec, PodStatus, ResourceRequirements,
};

use super::annotation::MIRROR;
use super::validate::resources::Amounts;
use super::{part, qos, same};
use crate::strategy::{Errors, SPEC};
use crate::validate::items;

/// Prepares the write: everything but resources and resize policies is carried over. Where the
/// containers are not the same, validation reports it.
pub(super) fn shape(new: &mut Value, old: &Value) {
    let count = |pod: &Value, list: &str| {
        pod.at(&["spec", list])
            .and_then(Value::as_array)
            .map_or(0, <[_]>::len)
    };

    if ["containers", "initContainers"]
        .iter()
        .any(|list| count(new, list) != count(old, list))
    {
        return;
    }

    let sent = new
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();

    part::keep_but_spec(new, old);

    let mut spec = old
        .get("spec")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    put(&mut spec, "resources", sent.get("resources"));

    for list in ["containers", "initContainers"] {
        let containers = sent.get(list).map(|sent| merged(sent, spec.get(list)));
        put(&mut spec, list, containers.as_ref());
    }

    if let Some(pod) = new.as_object_mut() {
        pod.insert("spec", spec);
    }
}

fn merged(sent: &Value, old: Option<&Value>) -> Value {
    let (Some(sent_list), Some(old_list)) = (sent.as_array(), old.and_then(Value::as_array)) else {
        return sent.clone();
    };
    if sent_list
        .iter()
        .zip(old_list)
        .any(|(sent, old)| sent.get("name") != old.get("name"))
    {
        return sent.clone();
    }

    let merge = |(sent, old): (&Value, &Value)| {
        let mut container = old.as_object().cloned().unwrap_or_default();
        for name in ["resources", "resizePolicy"] {
            put(&mut container, name, sent.get(name));
        }
        Value::Object(container)
    };

    Value::Array(sent_list.iter().zip(old_list).map(merge).collect())
}

fn put(into: &mut Map, name: &str, value: Option<&Value>) {
    match value {
        Some(value) => into.insert(name, value.clone()),
        None => into.remove(name),
    };
}

/// Why a pod can never be resized; upstream reports this error alone.
pub(super) fn impossible(old: &Pod) -> Option<FieldError> {
    let nowhere = Path::Root.field("");
    let annotations = old.metadata.annotations.as_ref();
    if annotations.is_some_and(|annotations| annotations.contains_key(MIRROR)) {
        return Some(FieldError::forbidden(
            &nowhere,
            "static pods cannot be resized",
        ));
    }
    let os = old.spec.as_ref().and_then(|spec| spec.os.as_ref());
    let windows = os.is_some_and(|os| os.name == "windows");
    windows.then(|| FieldError::forbidden(&nowhere, "windows pods cannot be resized"))
}

/// Validates the change of a spec that has been validated by itself.
pub(super) fn validate_update(
    new: &PodSpec,
    old: &PodSpec,
    status: &PodStatus,
    errors: &mut Errors,
) {
    if qos::class(new) != qos::class(old) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        let shown = status.qos_class.as_deref().unwrap_or_default();
        errors.push(FieldError::invalid_str(&SPEC, shown, detail));
    }

    let running = items(&status.container_statuses).iter().find(|container| {
        container
            .state
            .as_ref()
            .is_some_and(|state| state.running.is_some())
    });

    if running.is_some_and(|container| container.resources.is_none()) {
        errors.push(FieldError::forbidden(
            &SPEC,
            "Pod running on node without support for resize",
        ));
    }

    let mut rest = new.clone();
    same::align(&mut rest, old);
    validate_pod_resources(&mut rest, old, errors);

    if !validate_same_containers(new, old, errors) {
        return;
    }

    for (index, (new, old)) in items(&new.init_containers)
        .iter()
        .zip(items(&old.init_containers))
        .enumerate()
    {
        validate_not_removed(new, old, &SPEC.field("initContainers").index(index), errors);
    }

    for (index, (new, old)) in new.containers.iter().zip(&old.containers).enumerate() {
        validate_not_removed(new, old, &SPEC.field("containers").index(index), errors);
    }

    validate_only_cpu_and_memory(&mut rest, old, errors);

    if errors.is_empty() && rest != *old {
        errors.push(FieldError::forbidden(
            &SPEC,
            "only cpu and memory resources are mutable",
        ));
    }
}

/// Validates the resources of the pod as a whole, and puts them back.
fn validate_pod_resources(rest: &mut PodSpec, old: &PodSpec, errors: &mut Errors) {
    let at = SPEC.field("resources");

    if !is_set(old.resources.as_ref()) && !is_set(rest.resources.as_ref()) {
        return;
    }

    if let Some(before) = &old.resources {
        let Some(now) = &rest.resources else {
            errors.push(FieldError::forbidden(
                &at,
                "pod-level resources cannot be removed",
            ));
            return;
        };

        if removed(now.requests.as_ref(), before.requests.as_ref()) {
            let detail = "pod-level resource requests cannot be removed";
            errors.push(FieldError::forbidden(&at.field("requests"), detail));
        }

        if removed(now.limits.as_ref(), before.limits.as_ref()) {
            let detail = "pod-level resource limits cannot be removed";
            errors.push(FieldError::forbidden(&at.field("limits"), detail));
        }
    }

    if let Some(given) = &mut rest.resources {
        put_back_resources(given, old.resources.as_ref());
        if old.resources.is_none() && *given == ResourceRequirements::default() {
            rest.resources = None;
        }
    }

    if rest.resources != old.resources {
        let detail = "only cpu and memory resources are mutable at pod-level";
        errors.push(FieldError::forbidden(&SPEC, detail));
    }
}

fn is_set(resources: Option<&ResourceRequirements>) -> bool {
    let any =
        |amounts: &Option<Amounts>| amounts.as_ref().is_some_and(|amounts| !amounts.is_empty());
    resources.is_some_and(|resources| any(&resources.requests) || any(&resources.limits))
}

/// Validates that the containers are the same, in the same order.
fn validate_same_containers(new: &PodSpec, old: &PodSpec, errors: &mut Errors) -> bool {
    let before = errors.len();
    let lists = [
        (&new.containers[..], &old.containers[..], "containers"),
        (
            items(&new.init_containers),
            items(&old.init_containers),
            "initContainers",
        ),
    ];

    for (new, old, name) in lists {
        let at = SPEC.field(name);
        if new.len() != old.len() {
            errors.push(FieldError::forbidden(
                &at,
                format!("{name} may not be added or removed on resize"),
            ));
            continue;
        }

        for (index, _) in new
            .iter()
            .zip(old)
            .enumerate()
            .filter(|(_, (new, old))| new.name != old.name)
        {
            let detail = format!("{name} may not be renamed or reordered on resize");
            errors.push(FieldError::forbidden(
                &at.index(index).field("name"),
                detail,
            ));
        }
    }

    errors.len() == before
}

fn validate_not_removed(new: &Container, old: &Container, at: &Path<'_>, errors: &mut Errors) {
    let none = ResourceRequirements::default();
    let (new, old) = (
        new.resources.as_ref().unwrap_or(&none),
        old.resources.as_ref().unwrap_or(&none),
    );

    let at = at.field("resources");
    if removed(new.requests.as_ref(), old.requests.as_ref()) {
        errors.push(FieldError::forbidden(
            &at.field("requests"),
            "resource requests cannot be removed",
        ));
    }

    if removed(new.limits.as_ref(), old.limits.as_ref()) {
        errors.push(FieldError::forbidden(
            &at.field("limits"),
            "resource limits cannot be removed",
        ));
    }
}

fn removed(new: Option<&Amounts>, old: Option<&Amounts>) -> bool {
    old.into_iter()
        .flatten()
        .any(|(name, _)| new.is_none_or(|new| !new.contains_key(name)))
}

/// Validates that nothing but CPU and memory changes, and puts those back.
fn validate_only_cpu_and_memory(rest: &mut PodSpec, old: &PodSpec, errors: &mut Errors) {
    for (container, old) in rest.containers.iter_mut().zip(&old.containers) {
        put_back(container, old);
        if container != old {
            errors.push(FieldError::forbidden(
                &SPEC,
                "only cpu and memory resources are mutable",
            ));
        }
    }

    let list = SPEC.field("initContainers");
    let pairs = rest
        .init_containers
        .iter_mut()
        .flatten()
        .zip(items(&old.init_containers));

    for (index, (container, old)) in pairs.enumerate() {
        let at = list.index(index);
        let modified = container != old;
        put_back(container, old);

        if container != old {
            let detail = "only cpu and memory resources for init or sidecar containers are mutable";
            errors.push(FieldError::forbidden(&at, detail));
        }

        let plain = container.restart_policy.as_deref() != Some("Always");
        let restarting =
            |policy: &&ContainerResizePolicy| policy.restart_policy == "RestartContainer";
        for _ in items(&container.resize_policy)
            .iter()
            .filter(restarting)
            .filter(|_| modified && plain)
        {
            let detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized";
            errors.push(FieldError::forbidden(&at, detail));
        }
    }
}

fn put_back(container: &mut Container, old: &Container) {
    let mut given = container.resources.take().unwrap_or_default();
    put_back_resources(&mut given, old.resources.as_ref());
    // Upstream omits claims here, so that a container which has some cannot be resized.
    given.claims = None;
    let none = ResourceRequirements::default();
    // Absent and empty resources are the same.
    container.resources = if given == none && old.resources.is_none() {
        None
    } else {
        Some(given)
    };
}

/// Restores CPU and memory to the old values.
fn put_back_resources(given: &mut ResourceRequirements, old: Option<&ResourceRequirements>) {
    put_back_amounts(
        &mut given.requests,
        old.and_then(|old| old.requests.as_ref()),
    );
    put_back_amounts(&mut given.limits, old.and_then(|old| old.limits.as_ref()));
}

fn put_back_amounts(amounts: &mut Option<Amounts>, old: Option<&Amounts>) {
    let mut rest = amounts.take().unwrap_or_default();
    for name in ["cpu", "memory"] {
        match old.and_then(|old| old.get(name)) {
            Some(amount) => rest.insert(name.to_owned(), amount.clone()),
            None => rest.remove(name),
        };
    }
    *amounts = (!rest.is_empty()).then_some(rest);
}
