//! The default roles and bindings: tables of rules and subjects, turned into objects.

use std::collections::BTreeSet;

use coracle_api::codec::yaml;
use coracle_api::gates::is_on;
use coracle_api::{Map, Value};

use super::GROUP;

const CLUSTER_ROLES: &str = include_str!("cluster_roles.yaml");
const ROLES: &str = include_str!("roles.yaml");
const CLUSTER_ROLE_BINDINGS: &str = include_str!("cluster_role_bindings.yaml");
const ROLE_BINDINGS: &str = include_str!("role_bindings.yaml");

pub(super) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// Which role is put together from those with the label `rbac.authorization.k8s.io/aggregate-to-…`,
/// and to which one it contributes in turn.
const AGGREGATED: [(&str, &str, &str); 3] = [
    ("admin", "rbac.authorization.k8s.io/aggregate-to-admin", ""),
    (
        "edit",
        "rbac.authorization.k8s.io/aggregate-to-edit",
        "rbac.authorization.k8s.io/aggregate-to-admin",
    ),
    (
        "view",
        "rbac.authorization.k8s.io/aggregate-to-view",
        "rbac.authorization.k8s.io/aggregate-to-edit",
    ),
];

/// Roles that contribute to one of those, by their names.
const CONTRIBUTES: &str = "system:aggregate-to-";

/// Every object with the plural of its resource, roles before bindings.
pub(super) fn all() -> Vec<(&'static str, Value)> {
    let aggregated = AGGREGATED.map(|(name, gathers, contributes)| {
        let mut role = object("ClusterRole", name, contributes);
        let mut labels = Map::new();
        labels.insert(gathers, "true");
        let mut selector = Map::new();
        selector.insert("matchLabels", labels);
        let mut rule = Map::new();
        rule.insert("clusterRoleSelectors", vec![Value::Object(selector)]);
        role.insert("aggregationRule", rule);

        ("clusterroles", Value::Object(role))
    });

    let cluster_roles = in_effect(table(CLUSTER_ROLES));
    let roles_now: BTreeSet<String> = cluster_roles.iter().map(|(name, _)| name.clone()).collect();
    let cluster_roles = cluster_roles.into_iter().map(|(name, rules)| {
        let label = match name.strip_prefix(CONTRIBUTES) {
            Some(to) => format!("rbac.authorization.k8s.io/aggregate-to-{to}"),
            None => String::new(),
        };
        (
            "clusterroles",
            with(object("ClusterRole", &name, &label), "rules", rules),
        )
    });

    let roles = table(ROLES)
        .into_iter()
        .map(|(name, rules)| ("roles", with(object("Role", &name, ""), "rules", rules)));
    let cluster_bindings = table(CLUSTER_ROLE_BINDINGS)
        .into_iter()
        .filter(|(name, _)| roles_now.contains(parts(name).1))
        .map(|(name, subjects)| {
            (
                "clusterrolebindings",
                binding("ClusterRoleBinding", "ClusterRole", &name, &subjects),
            )
        });

    let bindings = table(ROLE_BINDINGS).into_iter().map(|(name, subjects)| {
        (
            "rolebindings",
            binding("RoleBinding", "Role", &name, &subjects),
        )
    });

    aggregated
        .into_iter()
        .chain(cluster_roles)
        .chain(roles)
        .chain(cluster_bindings)
        .chain(bindings)
        .collect()
}

/// Without the rules whose gates are off, and without roles that have no others.
fn in_effect(table: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let is_in_effect = |rule: &Value| {
        let gates = rule.get("gate").and_then(Value::as_str).unwrap_or_default();
        let mut gates = gates.split('&').filter(|gate| !gate.is_empty());
        gates.all(is_on)
    };
    let roles = table.into_iter().filter_map(|(name, rules)| {
        let mut rules = rules.as_array().unwrap_or_default().to_vec();
        rules.retain(is_in_effect);
        for rule in rules.iter_mut().filter_map(Value::as_object_mut) {
            rule.remove("gate");
        }
        (!rules.is_empty()).then(|| (name, Value::from(rules)))
    });
    roles.collect()
}

/// The place of a binding, and its role.
fn parts(place: &str) -> (&str, &str) {
    match place.split_once(" = ") {
        Some(parts) => parts,
        None => (place, place.rsplit('/').next().unwrap_or(place)),
    }
}

fn table(text: &str) -> Vec<(String, Value)> {
    let table = yaml::decode(text.as_bytes()).expect("our own table is YAML");
    let table = table.as_object().expect("a table has names").clone();
    table
        .into_members()
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect()
}

/// `place` is NAMESPACE/NAME, or NAME alone.
fn object(kind: &str, place: &str, label: &str) -> Map {
    let (namespace, name) = place.split_once('/').unwrap_or(("", place));
    let mut labels = Map::new();
    labels.insert("kubernetes.io/bootstrapping", "rbac-defaults");

    if !label.is_empty() {
        labels.insert(label, "true");
    }

    let mut annotations = Map::new();
    annotations.insert(AUTO_UPDATE, "true");
    let mut metadata = Map::new();
    metadata.insert("name", name);

    if !namespace.is_empty() {
        metadata.insert("namespace", namespace);
    }

    metadata.insert("labels", labels);
    metadata.insert("annotations", annotations);
    let mut object = Map::new();
    object.insert("apiVersion", format!("{GROUP}/v1"));
    object.insert("kind", kind);
    object.insert("metadata", metadata);

    object
}

fn with(mut object: Map, name: &'static str, value: Value) -> Value {
    object.insert(name, value);
    Value::Object(object)
}

/// The name may be written as `NAME = ROLE`.
fn binding(kind: &str, role_kind: &str, place: &str, subjects: &Value) -> Value {
    let (place, role) = parts(place);
    let mut reference = Map::new();
    reference.insert("apiGroup", GROUP);
    reference.insert("kind", role_kind);
    reference.insert("name", role);
    let mut object = object(kind, place, "");
    object.insert("roleRef", reference);

    let subjects = subjects
        .as_array()
        .unwrap_or_default()
        .iter()
        .filter_map(Value::as_str)
        .map(subject);

    let subjects: Vec<Value> = subjects.collect();
    if !subjects.is_empty() {
        object.insert("subjects", subjects);
    }

    Value::Object(object)
}

/// `User NAME`, `Group NAME` or `ServiceAccount NAMESPACE/NAME`.
fn subject(text: &str) -> Value {
    let (kind, name) = text
        .split_once(' ')
        .expect("a subject has a kind and a name");
    let mut subject = Map::new();
    subject.insert("kind", kind);

    match name.split_once('/') {
        Some((namespace, name)) => {
            subject.insert("namespace", namespace);
            subject.insert("name", name);
        }
        None => {
            subject.insert("apiGroup", GROUP);
            subject.insert("name", name);
        }
    }

    Value::Object(subject)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_features_that_are_off_are_not_given() {
        assert!(
            table(CLUSTER_ROLES)
                .iter()
                .any(|(name, _)| name == OF_FEATURE)
        );
        let all = all();
        assert!(
            !all.iter()
                .any(|(_, object)| object.meta().name() == OF_FEATURE)
        );
        for (_, role) in &all {
            let rules = role.get("rules").and_then(Value::as_array);
            let mut rules = rules.unwrap_or_default().iter();
            assert!(rules.all(|rule| rule.get("gate").is_none()));
        }
    }

    const OF_FEATURE: &str = "system:controller:storage-version-migrator-controller";

    #[test]
    fn every_binding_leads_to_a_role() {
        let all = all();
        let has = |plural: &str, namespace: &str, name: &str| {
            all.iter().any(|(of, object)| {
                *of == plural
                    && object.meta().name() == name
                    && object.meta().namespace() == namespace
            })
        };

        let bindings = all.iter().filter(|(of, _)| of.ends_with("bindings"));
        for (of, binding) in bindings {
            let role = binding
                .at(&["roleRef", "name"])
                .and_then(Value::as_str)
                .unwrap();
            assert!(
                has(&of.replace("binding", ""), binding.meta().namespace(), role),
                "{role}"
            );
        }
    }
}
