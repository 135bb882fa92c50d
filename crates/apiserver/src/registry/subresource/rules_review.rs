//! SelfSubjectRulesReview: the rules that apply to the user in a namespace.

use coracle_api::{Map, Text, Value};
use coracle_kinds::Part;
use coracle_kinds::rbac::Rule;
use http::StatusCode;

use super::review::Review;
use super::{Call, Reply};
use crate::ApiError;

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let review = Review::of(call, Part::Main).await?;
    let namespace = review
        .object
        .at(&["spec", "namespace"])
        .and_then(Value::as_str)
        .unwrap_or_default();

    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request").after(review.warnings));
    }

    review.validate().await?;
    let listing = call
        .registry
        .access
        .authorization
        .rules(&call.scope.caller.user, namespace);

    let mut status = Map::new();

    let resources = listing
        .rules
        .iter()
        .filter(|rule| !rule.resources.is_empty())
        .map(of_resources);
    status.insert("resourceRules", resources.collect::<Vec<Value>>());

    let paths = listing
        .rules
        .iter()
        .filter(|rule| !rule.urls.is_empty())
        .map(of_paths);
    status.insert("nonResourceRules", paths.collect::<Vec<Value>>());

    status.insert("incomplete", listing.incomplete);

    if !listing.error.is_empty() {
        status.insert("evaluationError", listing.error);
    }

    // The response does not repeat the request.
    let mut object = Map::new();
    object.insert("apiVersion", call.scope.kind.api_version());
    object.insert("kind", call.scope.kind.name.clone());
    object.insert("metadata", Value::object());
    object.insert("spec", Value::object());
    object.insert("status", status);

    Ok(Reply {
        code: StatusCode::CREATED,
        object: Value::Object(object),
        warnings: review.warnings,
    })
}

fn of_resources(rule: &Rule) -> Value {
    let mut shown = Map::new();
    shown.insert("verbs", list(&rule.verbs));
    shown.insert("apiGroups", list(&rule.groups));
    shown.insert("resources", list(&rule.resources));
    if !rule.names.is_empty() {
        shown.insert("resourceNames", list(&rule.names));
    }
    Value::Object(shown)
}

fn of_paths(rule: &Rule) -> Value {
    let mut shown = Map::new();
    shown.insert("verbs", list(&rule.verbs));
    shown.insert("nonResourceURLs", list(&rule.urls));
    Value::Object(shown)
}

fn list(texts: &[Text]) -> Vec<Value> {
    texts.iter().map(Value::string).collect()
}
