//! Node annotations from before they became fields.

use coracle_api::codec::json;
use coracle_api::field_error::FieldError;
use coracle_api::meta::ObjectMeta;
use coracle_api::{Map, Path, Value};

use crate::strategy::Errors;
use crate::validate::taints;

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOID_PODS: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";

pub(super) fn validate(metadata: ObjectMeta<'_>, at: &Path<'_>, errors: &mut Errors) {
    if let Some(text) = metadata.annotation(TAINTS).filter(|text| !text.is_empty()) {
        match list(text, "[]core.Taint") {
            Ok(found) => {
                let lowered: Vec<Value> = found.into_iter().map(lower_case_names).collect();
                taints::validate_node_taints(&lowered, &at.field(TAINTS), errors);
            }
            Err(fault) => errors.push(FieldError::invalid_str(at, TAINTS, fault)),
        }
    }

    if let Some(text) = metadata
        .annotation(AVOID_PODS)
        .filter(|text| !text.is_empty())
    {
        match avoided(text) {
            Ok(found) => validate_avoided(&found, &at.field(AVOID_PODS), errors),
            Err(fault) => errors.push(FieldError::invalid_str(
                &at.field("AvoidPods"),
                AVOID_PODS,
                fault,
            )),
        }
    }
}

fn list(text: &str, go_type: &str) -> Result<Vec<Value>, String> {
    match json::parse(text.as_bytes()).map_err(|error| error.to_string())? {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type {go_type}",
            other.type_name()
        )),
    }
}

/// Field names are case-insensitive.
fn lower_case_names(value: Value) -> Value {
    let Value::Object(map) = value else {
        return value;
    };
    let lowered = |name: &str| name[..1].to_lowercase() + &name[1..];
    let members = map
        .into_iter()
        .filter(|(name, _)| name.is_char_boundary(1) && !name.is_empty());

    Value::Object(
        members
            .map(|(name, value)| (lowered(&name).into(), value))
            .collect::<Map>(),
    )
}

fn avoided(text: &str) -> Result<Vec<Value>, String> {
    match json::parse(text.as_bytes()).map_err(|error| error.to_string())? {
        Value::Object(map) => Ok(map
            .get("preferAvoidPods")
            .and_then(Value::as_array)
            .unwrap_or_default()
            .to_vec()),
        Value::Null => Ok(Vec::new()),
        other => Err(format!(
            "json: cannot unmarshal {} into Go value of type v1.AvoidPods",
            other.type_name()
        )),
    }
}

fn validate_avoided(entries: &[Value], at: &Path<'_>, errors: &mut Errors) {
    for (index, entry) in entries.iter().enumerate() {
        let at = at.index(index);
        let at = at.field("PodSignature");
        let controller = entry
            .at(&["podSignature", "podController"])
            .filter(|found| !found.is_null());
        let Some(controller) = controller else {
            errors.push(FieldError::required(&at, ""));
            continue;
        };

        if controller.get("controller").and_then(Value::as_bool) != Some(true) {
            let at = at.field("PodController");
            let at = at.field("Controller");
            errors.push(FieldError::invalid(
                &at,
                "false".to_owned(),
                "must point to a controller",
            ));
        }
    }
}
