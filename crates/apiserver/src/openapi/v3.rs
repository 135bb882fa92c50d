//! Version 3 of the document: one for each group and version.

use coracle_api::{Map, Value};

use super::named::{Version, kind_value};
use super::operation::{Body, Model, Operation, Parameter, ParameterLocation, common, reason};
use super::{names, texts};

pub(super) fn path_item(operations: &[Operation<'_>]) -> Value {
    let common = common(operations);
    let mut item = Map::new();
    for operation in operations {
        item.insert(operation.method, self::operation(operation, &common));
    }

    if !common.is_empty() {
        item.insert(
            "parameters",
            common
                .iter()
                .map(|parameter| self::parameter(parameter))
                .collect::<Vec<_>>(),
        );
    }

    Value::Object(item)
}

fn operation(operation: &Operation<'_>, common: &[&Parameter]) -> Map {
    let mut value = Map::new();
    value.insert("tags", texts(&[&operation.tag]));
    value.insert("description", operation.description.as_ref());
    value.insert("operationId", operation.id.as_str());

    let parameters: Vec<Value> = operation.own_parameters(common).map(parameter).collect();
    if !parameters.is_empty() {
        value.insert("parameters", parameters);
    }
    if let Some(body) = &operation.body {
        value.insert("requestBody", request_body(body, operation.consumes));
    }

    value.insert("responses", responses(operation));

    if let Some((action, kind)) = operation.action {
        value.insert("x-kubernetes-action", action);
        value.insert("x-kubernetes-group-version-kind", kind_value(kind));
    }

    value
}

fn parameter(parameter: &Parameter) -> Value {
    let mut schema = Map::new();
    schema.insert("type", parameter.kind);
    schema.insert("uniqueItems", true);
    let mut value = Map::new();
    value.insert("name", parameter.name.clone());
    value.insert("in", parameter.location.as_str());
    value.insert("description", parameter.description.as_ref());

    if parameter.location == ParameterLocation::Path {
        value.insert("required", true);
    }

    value.insert("schema", schema);

    Value::Object(value)
}

fn request_body(body: &Body<'_>, consumes: &[&str]) -> Map {
    let mut value = Map::new();
    value.insert("content", content(Model::Type(body.of), consumes));
    if body.required {
        value.insert("required", true);
    }
    value
}

fn responses(operation: &Operation<'_>) -> Map {
    let mut responses = Map::new();
    for code in operation.codes {
        let mut response = Map::new();
        response.insert("description", reason(*code));
        response.insert("content", content(operation.answer, operation.produces));
        responses.insert(code.to_string(), response);
    }
    let mut unauthorized = Map::new();
    unauthorized.insert("description", "Unauthorized");
    responses.insert("401", unauthorized);
    responses
}

/// The same schema for every media type.
fn content(model: Model<'_>, media_types: &[&str]) -> Map {
    let mut schema = Map::new();
    match model {
        Model::Type(of) => schema.insert("$ref", Version::V3.reference(&names::definition(of))),
        Model::Text => schema.insert("type", "string"),
    };

    let mut content = Map::new();
    for media_type in media_types {
        let mut entry = Map::new();
        entry.insert("schema", schema.clone());
        content.insert(*media_type, entry);
    }

    content
}
