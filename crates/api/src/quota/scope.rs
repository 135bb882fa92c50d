//! Scopes: which objects a quota applies to.

use crate::selector::{LabelSelector, Operator, Requirement};
use crate::{Map, Path, Text, Value};

use super::Kind;

/// Whether an object is in all scopes of a quota.
pub(super) fn holds(quota: &Value, object: &Value, kind: Kind) -> bool {
    let plain = quota
        .at(&["spec", "scopes"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    let plain = plain
        .iter()
        .filter_map(Value::as_str)
        .map(|scope| (scope, "Exists", &[][..]));

    let selected = quota
        .at(&["spec", "scopeSelector", "matchExpressions"])
        .and_then(Value::as_array);
    let selected = selected.unwrap_or_default().iter().map(|expression| {
        let text = |name: &str| {
            expression
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };

        let values = expression
            .get("values")
            .and_then(Value::as_array)
            .unwrap_or_default();

        (text("scopeName"), text("operator"), values)
    });

    let mut all = plain.chain(selected);
    match kind {
        Kind::Pods => all.all(|(scope, operator, values)| pod(object, scope, operator, values)),
        Kind::Claims => all.all(|(scope, operator, values)| claim(object, scope, operator, values)),
        // Others are in no scope.
        Kind::Services | Kind::Objects => all.next().is_none(),
    }
}

fn pod(pod: &Value, scope: &str, operator: &str, values: &[Value]) -> bool {
    let ends = pod
        .at(&["spec", "activeDeadlineSeconds"])
        .and_then(Value::as_int)
        .is_some_and(|after| after >= 0);

    let class = pod
        .at(&["spec", "priorityClassName"])
        .and_then(Value::as_str)
        .unwrap_or_default();

    let best_effort =
        || pod.at(&["status", "qosClass"]).and_then(Value::as_str) == Some("BestEffort");
    match scope {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "PriorityClass" if operator == "Exists" => !class.is_empty(),
        "PriorityClass" => selects(scope, operator, values, class),
        "CrossNamespacePodAffinity" => has_cross_namespace_affinity(pod),
        _ => false,
    }
}

fn claim(claim: &Value, scope: &str, operator: &str, values: &[Value]) -> bool {
    if scope != "VolumeAttributesClass" {
        return false;
    }

    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &[
            "status",
            "modifyVolumeStatus",
            "targetVolumeAttributesClassName",
        ],
    ];

    let named = paths
        .into_iter()
        .filter_map(|path| claim.at(path).and_then(Value::as_str));

    let classes: Vec<&str> = named.filter(|class| !class.is_empty()).collect();
    match (operator, classes.as_slice()) {
        ("Exists", classes) => !classes.is_empty(),
        (_, []) => selects(scope, operator, values, ""),
        (_, classes) => classes
            .iter()
            .any(|class| selects(scope, operator, values, class)),
    }
}

/// Whether a name is selected; an empty one counts as none.
fn selects(scope: &str, operator: &str, values: &[Value], name: &str) -> bool {
    let operator = match operator {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        _ => return false,
    };

    let values = values
        .iter()
        .filter_map(Value::as_str)
        .map(Text::new)
        .collect();

    let Ok(requirement) = Requirement::new(Text::new(scope), operator, values, &Path::Root) else {
        return false;
    };

    let mut labels = Map::new();
    if !name.is_empty() {
        labels.insert(scope, name);
    }

    LabelSelector::new(vec![requirement]).matches(&labels)
}

/// Whether a pod has affinity terms for other namespaces.
fn has_cross_namespace_affinity(pod: &Value) -> bool {
    let elsewhere = |term: &Value| {
        term.get("namespaces")
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty())
            || term
                .get("namespaceSelector")
                .is_some_and(|selector| !selector.is_null())
    };

    let terms = |affinity: &str, list: &str| {
        pod.at(&["spec", "affinity", affinity, list])
            .and_then(Value::as_array)
            .unwrap_or_default()
    };

    ["podAffinity", "podAntiAffinity"]
        .into_iter()
        .any(|affinity| {
            terms(affinity, "requiredDuringSchedulingIgnoredDuringExecution")
                .iter()
                .any(elsewhere)
                || terms(affinity, "preferredDuringSchedulingIgnoredDuringExecution")
                    .iter()
                    .filter_map(|weighted| weighted.get("podAffinityTerm"))
                    .any(elsewhere)
        })
}

#[cfg(test)]
mod tests {
    use crate::codec::json;

    use super::*;

    #[test]
    fn scopes_select_pods() {
        let check = |spec: &str, scope: &str, operator: &str, values: &[&str], expected: bool| {
            let pod = json::parse(
                format!(r#"{{"spec":{spec},"status":{{"qosClass":"Burstable"}}}}"#).as_bytes(),
            )
            .unwrap();

            let values: Vec<Value> = values.iter().map(Value::string).collect();
            assert_eq!(
                super::pod(&pod, scope, operator, &values),
                expected,
                "{spec} {scope}"
            );
        };

        check("{}", "Terminating", "Exists", &[], false);
        check(
            r#"{"activeDeadlineSeconds":5}"#,
            "Terminating",
            "Exists",
            &[],
            true,
        );

        check("{}", "NotBestEffort", "Exists", &[], true);
        check(
            r#"{"priorityClassName":"high"}"#,
            "PriorityClass",
            "In",
            &["high"],
            true,
        );

        check(
            r#"{"priorityClassName":"low"}"#,
            "PriorityClass",
            "In",
            &["high"],
            false,
        );

        check("{}", "PriorityClass", "NotIn", &["high"], true);
        check("{}", "PriorityClass", "Exists", &[], false);
        let near = r#"{"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"namespaces":["x"]}]}}}"#;
        check(near, "CrossNamespacePodAffinity", "Exists", &[], true);
        check("{}", "CrossNamespacePodAffinity", "Exists", &[], false);
    }
}
