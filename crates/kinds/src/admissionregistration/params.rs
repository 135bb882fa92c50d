//! The cells for the parameters of policies.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::print::cells::UNSET;

/// `v1/ConfigMap`: of an apiVersion and a kind.
pub(super) fn param_kind(kind: Option<(Option<&str>, Option<&str>)>) -> String {
    kind.map_or_else(
        || UNSET.to_string(),
        |(api_version, kind)| {
            format!(
                "{}/{}",
                api_version.unwrap_or_default(),
                kind.unwrap_or_default()
            )
        },
    )
}

/// The parameter object of a binding.
pub(super) struct Params<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) namespace: Option<&'a str>,
    pub(super) selector: Option<&'a LabelSelector>,
}

pub(super) fn param_ref(params: Option<&Params<'_>>) -> String {
    let Some(params) = params else {
        return UNSET.to_string();
    };
    match (
        params.name.unwrap_or_default(),
        params.namespace.unwrap_or_default(),
        params.selector,
    ) {
        ("", _, Some(selector)) => go_syntax(selector),
        ("", _, None) => UNSET.to_string(),
        // Whether the kind is namespaced is not known here.
        (name, "", _) => format!("*/{name}"),
        (name, namespace, _) => format!("{namespace}/{name}"),
    }
}

/// A selector as upstream's own types print themselves.
fn go_syntax(selector: &LabelSelector) -> String {
    let mut labels = String::new();
    for (key, value) in selector.match_labels.iter().flatten() {
        labels.push_str(&format!("{key}: {value},"));
    }

    let mut expressions = String::new();
    for expression in selector.match_expressions.iter().flatten() {
        let values = expression.values.as_deref().unwrap_or_default().join(" ");
        expressions.push_str(&format!(
            "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},",
            expression.key, expression.operator
        ));
    }

    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}
