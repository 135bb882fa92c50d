//! Whole structs as errors show them: with upstream's internal field names, all of them, in their
//! order.

use coracle_api::Value;
use coracle_api::field_error::as_json;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

/// A struct of these fields, each with its JSON.
pub(crate) fn object(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(name, json)| format!("\"{name}\":{json}"))
        .collect();
    format!("{{{}}}", fields.join(","))
}

/// A list of these values.
pub(crate) fn list(values: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", values.into_iter().collect::<Vec<_>>().join(","))
}

pub(crate) fn text(text: &str) -> String {
    as_json(&Value::string(text))
}

/// A list of texts; `null` where there is none.
pub(crate) fn texts(list: Option<&[String]>) -> String {
    list.map_or_else(
        || "null".to_owned(),
        |list| self::list(list.iter().map(|item| text(item))),
    )
}

/// A label selector, whose type is the same in the internal version.
pub(crate) fn label_selector(selector: &LabelSelector) -> String {
    let mut fields = Vec::new();
    if let Some(labels) = selector
        .match_labels
        .as_ref()
        .filter(|labels| !labels.is_empty())
    {
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{}:{}", text(key), text(value)))
            .collect();
        fields.push(("matchLabels", format!("{{{}}}", labels.join(","))));
    }

    if let Some(expressions) = selector
        .match_expressions
        .as_ref()
        .filter(|list| !list.is_empty())
    {
        let expression = |expression: &LabelSelectorRequirement| {
            let mut fields = vec![
                ("key", text(&expression.key)),
                ("operator", text(&expression.operator)),
            ];

            if let Some(values) = expression
                .values
                .as_ref()
                .filter(|values| !values.is_empty())
            {
                fields.push(("values", texts(Some(values))));
            }

            object(&fields)
        };
        fields.push(("matchExpressions", list(expressions.iter().map(expression))));
    }

    object(&fields)
}

/// The value of a pointer; `null` for a nil pointer.
pub(crate) fn pointer(value: Option<String>) -> String {
    value.unwrap_or_else(|| "null".to_owned())
}
