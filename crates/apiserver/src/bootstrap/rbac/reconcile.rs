//! Reconciles a default role or binding with its stored object.

use coracle_api::{Map, Value, typed};
use coracle_kinds::rbac::{Rule, covers};
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::defaults::AUTO_UPDATE;

pub(super) enum Reconciled {
    Unchanged,
    Changed(Value),
    /// It cannot be changed into what it should be.
    MustRecreate,
}

pub(super) fn reconcile(plural: &str, found: &Value, wanted: &Value) -> Reconciled {
    if found.meta().annotation(AUTO_UPDATE) == Some("false") {
        return Reconciled::Unchanged;
    }

    let is_binding = plural.ends_with("bindings");
    if is_binding && found.get("roleRef") != wanted.get("roleRef") {
        return Reconciled::MustRecreate;
    }

    let mut reconciled = found.clone();
    let object = reconciled
        .as_object_mut()
        .expect("a stored value is an object");
    add_members(
        object.object_mut("metadata"),
        wanted.get("metadata"),
        "labels",
    );

    add_members(
        object.object_mut("metadata"),
        wanted.get("metadata"),
        "annotations",
    );

    if is_binding {
        add_items(object, wanted, "subjects");
    } else {
        add_rules(object, wanted);
        add_selectors(object, wanted);
    }

    if reconciled == *found {
        Reconciled::Unchanged
    } else {
        Reconciled::Changed(reconciled)
    }
}

/// Values that are set already are kept.
fn add_members(metadata: &mut Map, wanted: Option<&Value>, name: &'static str) {
    let Some(wanted) = wanted.and_then(|wanted| wanted.get(name)?.as_object()) else {
        return;
    };
    for (key, value) in wanted.iter() {
        metadata
            .object_mut(name)
            .get_or_insert_with(key, || value.clone());
    }
}

fn add_items(object: &mut Map, wanted: &Value, name: &'static str) {
    let mut items = object.items(name).to_vec();
    let before = items.len();
    let wanted = wanted
        .get(name)
        .and_then(Value::as_array)
        .unwrap_or_default();

    items.extend(
        wanted
            .iter()
            .filter(|item| !object.items(name).contains(item))
            .cloned(),
    );

    if items.len() > before {
        object.insert(name, items);
    }
}

fn add_rules(object: &mut Map, wanted: &Value) {
    let read = |rules: &[Value]| -> Vec<Rule> {
        let rules = rules
            .iter()
            .filter_map(|rule| typed::from_tree::<PolicyRule>(rule).ok());
        rules.map(|rule| Rule::from(&rule)).collect()
    };
    let owned = read(object.items("rules"));

    let given = read(
        wanted
            .get("rules")
            .and_then(Value::as_array)
            .unwrap_or_default(),
    );

    let missing = covers::missing_rules(&owned, &given);
    if !missing.is_empty() {
        let mut rules = object.items("rules").to_vec();
        let tree = |rule: &Rule| {
            typed::to_tree(&PolicyRule::from(rule)).expect("a typed object has a tree")
        };
        rules.extend(missing.iter().map(tree));
        object.insert("rules", rules);
    }
}

/// Adds missing selectors to an aggregated role; from one that should not be aggregated, removes the
/// aggregation rule.
fn add_selectors(object: &mut Map, wanted: &Value) {
    match wanted.get("aggregationRule") {
        None => drop(object.remove("aggregationRule")),
        Some(rule) => add_items(
            object.object_mut("aggregationRule"),
            rule,
            "clusterRoleSelectors",
        ),
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn check(found: &str, wanted: &str, expected: &str) {
        let tree = |text: &str| yaml::decode(text.as_bytes()).unwrap();
        let shown = match reconcile("clusterroles", &tree(found), &tree(wanted)) {
            Reconciled::Unchanged => "as it should be".into(),
            Reconciled::Changed(object) => object,
            Reconciled::MustRecreate => "another".into(),
        };
        assert_eq!(shown, tree(expected), "{found}");
    }

    #[test]
    fn missing_rules_are_restored_and_added_ones_are_kept() {
        let wanted = "{metadata: {name: r, labels: {a: b}}, rules: [{apiGroups: [''], resources: [pods], verbs: [get, list]}]}";
        check(wanted, wanted, "as it should be");
        check(
            "{metadata: {name: r, labels: {a: c, d: e}}, rules: [{apiGroups: [''], resources: [pods, nodes], verbs: [get]}]}",
            wanted,
            "{metadata: {name: r, labels: {a: c, d: e}}, rules: [{apiGroups: [''], resources: [pods, nodes], verbs: [get]}, {apiGroups: [''], resources: [pods], verbs: [list]}]}",
        );

        check(
            "{metadata: {name: r, annotations: {rbac.authorization.kubernetes.io/autoupdate: 'false'}}}",
            wanted,
            "as it should be",
        );
    }
}
