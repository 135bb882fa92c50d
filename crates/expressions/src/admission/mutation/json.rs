//! JSON patches as JSON.

use coracle_api::{Map as Members, Value as Tree};
use coracle_cel::value::{Object, Value};

use super::{MutationError, type_names};

/// The operations that an expression returned.
pub(super) fn operations(made: &Value<'_>) -> Result<Tree, MutationError> {
    let Value::List(list) = made else {
        return Ok(Tree::Array(Vec::new()));
    };

    let mut operations = Vec::with_capacity(list.len());
    for item in list.iter() {
        let item = item.map_err(|error| MutationError::NoJson(error.to_string()))?;
        if let Value::Object(patch) = &item {
            operations.push(operation(patch)?);
        }
    }
    Ok(Tree::Array(operations))
}

fn operation(patch: &Object<'_>) -> Result<Tree, MutationError> {
    let text = |name: &str| {
        patch
            .field(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let mut members = Members::new();
    members.insert("op", text("op"));
    members.insert("path", text("path"));
    if !text("from").is_empty() {
        members.insert("from", text("from"));
    }

    if let Some(value) = patch.field("value") {
        type_names::check(value).map_err(MutationError::TypeNames)?;
        members.insert("value", value.to_json().map_err(MutationError::NoJson)?);
    }
    Ok(Tree::Object(members))
}
