//! Version 2 of the document: one for the whole API.
//!
//! Parameters that many operations share are written once, under a name that is derived from their
//! content.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use coracle_api::codec::json;
use coracle_api::{Map, Value};

use super::named::{Version, kind_value};
use super::operation::{Body, Model, Operation, Parameter, ParameterLocation, common, reason};
use super::{names, texts};

/// Parameters that are written once, by their names.
pub(super) type Shared = BTreeMap<String, Value>;

pub(super) fn path_item(operations: &[Operation<'_>], shared: &mut Shared) -> Value {
    let common = common(operations);
    let mut item = Map::new();
    for operation in operations {
        let value = self::operation(operation, &common, shared);
        item.insert(operation.method, value);
    }

    if !common.is_empty() {
        let parameters: Vec<Value> = common
            .iter()
            .map(|parameter| share(parameter.name.as_str(), self::parameter(parameter), shared))
            .collect();
        item.insert("parameters", parameters);
    }

    Value::Object(item)
}

fn operation(operation: &Operation<'_>, common: &[&Parameter], shared: &mut Shared) -> Map {
    let mut value = Map::new();
    value.insert("description", operation.description.as_ref());

    if !operation.consumes.is_empty() {
        value.insert("consumes", texts(operation.consumes));
    }

    value.insert("produces", texts(operation.produces));
    value.insert("schemes", texts(&["https"]));
    value.insert("tags", texts(&[&operation.tag]));
    value.insert("operationId", operation.id.as_str());
    let mut parameters: Vec<Value> = operation
        .body
        .iter()
        .map(|body| share("body", body_parameter(body), shared))
        .collect();

    parameters.extend(
        operation
            .own_parameters(common)
            .map(|parameter| share(parameter.name.as_str(), self::parameter(parameter), shared)),
    );

    if !parameters.is_empty() {
        value.insert("parameters", parameters);
    }

    value.insert("responses", responses(operation));

    if let Some((action, kind)) = operation.action {
        value.insert("x-kubernetes-action", action);
        value.insert("x-kubernetes-group-version-kind", kind_value(kind));
    }

    value
}

fn responses(operation: &Operation<'_>) -> Map {
    let mut responses = Map::new();
    for code in operation.codes {
        let mut response = Map::new();
        response.insert("description", reason(*code));
        response.insert("schema", model(operation.answer));
        responses.insert(code.to_string(), response);
    }
    let mut unauthorized = Map::new();
    unauthorized.insert("description", "Unauthorized");
    responses.insert("401", unauthorized);
    responses
}

fn model(model: Model<'_>) -> Map {
    let mut schema = Map::new();
    match model {
        Model::Type(of) => schema.insert("$ref", Version::V2.reference(&names::definition(of))),
        Model::Text => schema.insert("type", "string"),
    };
    schema
}

fn parameter(parameter: &Parameter) -> Map {
    let mut value = Map::new();
    value.insert("description", parameter.description.as_ref());
    value.insert("in", parameter.location.as_str());
    value.insert("name", parameter.name.clone());
    if parameter.location == ParameterLocation::Path {
        value.insert("required", true);
    }
    value.insert("type", parameter.kind);
    value.insert("uniqueItems", true);
    value
}

fn body_parameter(body: &Body<'_>) -> Map {
    let mut value = Map::new();
    value.insert("in", "body");
    value.insert("name", "body");
    if body.required {
        value.insert("required", true);
    }
    value.insert("schema", model(Model::Type(body.of)));
    value
}

/// A reference to the parameter among the shared ones; or the parameter itself, where it is not
/// shared.
fn share(name: &str, parameter: Map, shared: &mut Shared) -> Value {
    // Names and bodies differ by kind, but for the bodies that every kind takes. Older kubectls
    // look for dryRun and fieldValidation in the operations themselves.
    let is_own = match name {
        "name" | "dryRun" | "fieldValidation" => true,
        "body" => !parameter
            .get("schema")
            .and_then(|schema| schema.get("$ref")?.as_str())
            .is_some_and(|target| target.starts_with("#/definitions/io.k8s.apimachinery")),
        _ => false,
    };

    let parameter = Value::Object(parameter);
    if is_own {
        return parameter;
    }

    let shared_name = format!("{name}-{}", short_hash(&json::to_vec(&parameter)));
    let mut reference = Map::new();
    reference.insert("$ref", format!("#/parameters/{shared_name}").as_str());
    shared.entry(shared_name).or_insert(parameter);

    Value::Object(reference)
}

/// Eight characters that depend on every byte: the start of FNV-1 in base64.
fn short_hash(bytes: &[u8]) -> String {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = bytes.iter().fold(OFFSET, |hash, byte| {
        hash.wrapping_mul(PRIME) ^ u64::from(*byte)
    });
    URL_SAFE.encode(&hash.to_be_bytes()[..6])
}
