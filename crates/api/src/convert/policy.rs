//! PodDisruptionBudgets.

use super::ConvertError;
use crate::{Map, Value};

/// Key by which `v1beta1` distinguished a selector that matches everything from one that matches
/// nothing.
const OLD_MARK: &str = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match";

/// The key remains only alone, as the selector that matches nothing; otherwise it is removed.
pub(super) fn disruption_budget(object: &mut Map) -> Result<(), ConvertError> {
    let selector = object
        .below_mut("spec")
        .and_then(|spec| spec.below_mut("selector"));

    let Some(selector) = selector else {
        return Ok(());
    };
    if !matches_nothing(selector)
        && let Some(Value::Array(expressions)) = selector.get_mut("matchExpressions")
    {
        expressions
            .retain(|expression| expression.get("key").and_then(Value::as_str) != Some(OLD_MARK));
    }

    Ok(())
}

fn matches_nothing(selector: &Map) -> bool {
    let [Value::Object(only)] = selector.items("matchExpressions") else {
        return false;
    };
    selector.below("matchLabels").is_none_or(Map::is_empty)
        && only.text("key") == OLD_MARK
        && only.text("operator") == "Exists"
        && only.items("values").is_empty()
}
