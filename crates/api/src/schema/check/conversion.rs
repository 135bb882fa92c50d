//! Errors that prevent a schema from being parsed as a structural one. Most of them are also
//! reported elsewhere, with their path.

use super::super::props::{Props, SubSchema};

pub(super) fn fault(props: Props<'_>) -> Option<&'static str> {
    unsupported(props).or_else(|| within(props))
}

fn unsupported(props: Props<'_>) -> Option<&'static str> {
    let named = |name: &str| props.named(name).len() > 0;
    let faults = [
        (
            !props.text("id").is_empty(),
            "OpenAPIV3Schema 'id' is not supported",
        ),
        (
            !props.text("$schema").is_empty(),
            "OpenAPIV3Schema 'schema' is not supported",
        ),
        (
            !props.text("$ref").is_empty(),
            "OpenAPIV3Schema '$ref' is not supported",
        ),
        (
            named("patternProperties"),
            "OpenAPIV3Schema 'patternProperties' is not supported",
        ),
        (
            named("dependencies"),
            "OpenAPIV3Schema 'dependencies' is not supported",
        ),
        (
            props.get("additionalItems").is_some(),
            "OpenAPIV3Schema 'additionalItems' is not supported",
        ),
        (
            named("definitions"),
            "OpenAPIV3Schema 'definitions' is not supported",
        ),
    ];

    faults
        .into_iter()
        .find(|(found, _)| *found)
        .map(|(_, fault)| fault)
}

fn within(props: Props<'_>) -> Option<&'static str> {
    let branches = ["allOf", "anyOf", "oneOf"];
    props
        .schema("not")
        .and_then(fault)
        .or_else(|| {
            branches
                .into_iter()
                .find_map(|name| props.schemas(name).find_map(fault))
        })
        .or_else(|| {
            let refused = props.get("x-kubernetes-preserve-unknown-fields").is_some()
                && !props.flag("x-kubernetes-preserve-unknown-fields");
            refused.then_some(
                "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined",
            )
        })
        .or_else(|| match props.items() {
            SubSchema::Many(several) if !several.is_empty() => {
                Some("OpenAPIV3Schema 'items' must be a schema, but is an array")
            }
            items => items.one().and_then(fault),
        })
        .or_else(|| {
            props
                .named("properties")
                .find_map(|(_, below)| fault(below))
        })
        .or_else(|| props.additional().one().and_then(fault))
}
