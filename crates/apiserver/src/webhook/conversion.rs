//! Conversion webhooks: objects of a definition in another of its versions.
//!
//! [`Conversion::convert`] sends one ConversionReview for all objects that are not in the wanted
//! version yet. What comes back must be the same objects in the same order: of their metadata, a
//! webhook may change labels and annotations only. Texts are upstream's.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use coracle_api::catalog::split_api_version;
use coracle_api::codec::json;
use coracle_api::field_error::FieldErrors;
use coracle_api::go_text::Quoted;
use coracle_api::meta::validate;
use coracle_api::{Map, Path, Value};
use coracle_metrics::{Alpha, Buckets, Counters, Histograms, metrics};
use tokio::time::Instant;

use super::Webhooks;
use crate::definitions::{Compiled, WebhookConversion};

/// How long a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How large the answer for one object may be beside the object itself, …
const ROOM_PER_OBJECT: usize = 2 << 20;

/// … and all of it.
const MAX_ANSWER: usize = 64 << 20;

metrics! {
    /// Of conversion webhooks.
    pub struct ConversionMetrics {
        durations: Histograms<(String, String, bool, String)> = histograms(
            Alpha,
            "apiserver_crd_conversion_webhook_duration_seconds",
            "Duration of conversions by a webhook in seconds.",
            ["crd_name", "from_version", "succeeded", "to_version"],
            Buckets::exponential_seconds(0.001, 2.0, 15),
        ),
        requests: Counters<(&'static str, &'static str)> = counters(
            Alpha,
            "apiserver_conversion_webhook_request_total",
            "Number of calls of conversion webhooks by result and type of failure.",
            ["failure_type", "result"],
        ),
        latencies: Histograms<(&'static str, &'static str)> = histograms(
            Alpha,
            "apiserver_conversion_webhook_duration_seconds",
            "Duration of calls of conversion webhooks in seconds.",
            ["failure_type", "result"],
            Buckets::seconds(&[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0]),
        ),
    }
}

/// Calls conversion webhooks.
pub struct Conversion {
    webhooks: Arc<Webhooks>,
    metrics: ConversionMetrics,
}

/// Why objects cannot be converted: the type of failure for metrics, and a text for users.
struct Failure {
    of: &'static str,
    why: String,
}

impl Failure {
    fn malformed(why: impl Into<String>) -> Failure {
        Failure {
            of: "conversion_webhook_malformed_response_failure",
            why: why.into(),
        }
    }

    fn invalid(why: impl Into<String>) -> Failure {
        Failure {
            of: "conversion_webhook_invalid_converted_object_failure",
            why: why.into(),
        }
    }
}

impl Conversion {
    pub fn new(webhooks: Arc<Webhooks>, registry: &coracle_metrics::Registry) -> Conversion {
        Conversion {
            webhooks,
            metrics: ConversionMetrics::new(registry),
        }
    }

    /// Objects in the version of `api_version`, in their order. Nothing is dropped from them: the
    /// caller prunes what the version does not have.
    ///
    /// # Errors
    /// One of them could not be converted, with a text for users.
    pub async fn convert(
        &self,
        definition: &Compiled,
        mut objects: Vec<Value>,
        api_version: &str,
    ) -> Result<Vec<Value>, String> {
        let Some(conversion) = &definition.conversion else {
            return Ok(objects);
        };

        let (group, to) = split_api_version(api_version);
        let is_known = |api_version: &str| {
            let (of, name) = split_api_version(api_version);
            of == group && definition.version(name).is_some()
        };
        if let Some(unknown) = objects
            .iter()
            .map(api_version_of)
            .find(|given| !is_known(given))
        {
            return Err(format!(
                "request to convert CR from an invalid group/version: {unknown}"
            ));
        }

        let places: Vec<usize> = (0..objects.len())
            .filter(|place| api_version_of(&objects[*place]) != api_version)
            .collect();
        let Some(first) = places.first() else {
            return Ok(objects);
        };

        let from = api_version_of(&objects[*first]).to_owned();
        let shown = format!("{from}, Kind={}", text(&objects[*first], "kind"));
        let originals: Vec<&Value> = places.iter().map(|place| &objects[*place]).collect();

        let began = Instant::now();
        let converted = self
            .request(conversion, &originals, api_version, &shown)
            .await;
        let key = (
            definition.name.to_string(),
            split_api_version(&from).1.to_owned(),
            converted.is_ok(),
            to.to_owned(),
        );
        self.metrics.durations.of(&key).took(began.elapsed());

        let result = match &converted {
            Ok(_) => ("", "success"),
            Err(failure) => (failure.of, "failure"),
        };
        self.metrics.requests.of(&result).inc();
        self.metrics.latencies.of(&result).took(began.elapsed());

        let converted = converted.map_err(|failure| failure.why)?;
        for (place, object) in places.into_iter().zip(converted) {
            objects[place] = object;
        }

        Ok(objects)
    }

    async fn request(
        &self,
        conversion: &WebhookConversion,
        originals: &[&Value],
        api_version: &str,
        shown: &str,
    ) -> Result<Vec<Value>, Failure> {
        let failed = |why: String| format!("conversion webhook for {shown} failed: {why}");
        let call_failed = |why: String| Failure {
            of: "conversion_webhook_call_failure",
            why,
        };

        let review_version = review_version(&conversion.review_versions)
            .ok_or_else(|| call_failed("no supported conversion review versions".to_owned()))?;
        let uid = self.webhooks.world().uid().to_string();
        let body = Bytes::from(json::to_vec(&review(
            review_version,
            &uid,
            api_version,
            originals,
        )));

        let limit = body
            .len()
            .saturating_add(originals.len().saturating_mul(ROOM_PER_OBJECT))
            .min(MAX_ANSWER);
        let client = self.webhooks.client(&conversion.client).await;
        let client = client.map_err(|why| call_failed(failed(why)))?;
        let answer = client.post(body, TIMEOUT, limit).await;
        let answer = answer.map_err(|error| call_failed(failed(error.message)))?;

        let converted = converted_objects(answer, review_version, &uid)
            .map_err(|why| Failure::malformed(failed(why)))?;
        if converted.len() != originals.len() {
            return Err(Failure {
                of: "conversion_webhook_partial_response_failure",
                why: format!(
                    "conversion webhook for {shown} returned {} objects, expected {}",
                    converted.len(),
                    originals.len()
                ),
            });
        }

        let restored = originals.iter().zip(converted).enumerate();
        restored
            .map(|(index, (original, converted))| {
                restore(original, converted, api_version, index, originals.len() > 1).map_err(
                    |why| {
                        Failure::invalid(format!("conversion webhook for {shown} returned {why}"))
                    },
                )
            })
            .collect()
    }
}

/// The version of ConversionReview to use.
fn review_version(accepted: &[String]) -> Option<&'static str> {
    accepted.iter().find_map(|version| match version.as_str() {
        "v1" => Some("v1"),
        "v1beta1" => Some("v1beta1"),
        _ => None,
    })
}

fn review(version: &str, uid: &str, desired: &str, objects: &[&Value]) -> Value {
    let mut request = Map::new();
    request.insert("uid", uid);
    request.insert("desiredAPIVersion", desired);
    let objects: Vec<Value> = objects.iter().map(|object| (*object).clone()).collect();
    request.insert("objects", objects);

    let mut response = Map::new();
    response.insert("uid", "");
    response.insert("convertedObjects", Value::Null);
    let mut result = Map::new();
    result.insert("metadata", Value::object());
    response.insert("result", Value::Object(result));

    let mut review = Map::new();
    review.insert("kind", "ConversionReview");
    review.insert(
        "apiVersion",
        format!("apiextensions.k8s.io/{version}").as_str(),
    );
    review.insert("request", Value::Object(request));
    review.insert("response", Value::Object(response));
    Value::Object(review)
}

/// The objects of an answer.
fn converted_objects(mut review: Value, version: &str, uid: &str) -> Result<Vec<Value>, String> {
    if version == "v1" {
        let found = (api_version_of(&review), text(&review, "kind"));
        let expected = "apiextensions.k8s.io/v1";
        if found != (expected, "ConversionReview") {
            let found = match found.0 {
                "" => "/".to_owned(),
                found => found.to_owned(),
            } + ", Kind="
                + found.1;
            return Err(format!(
                "expected webhook response of {expected}, Kind=ConversionReview, got {found}"
            ));
        }
    }

    let response = review
        .as_object_mut()
        .and_then(|review| review.remove("response"))
        .filter(|response| !response.is_null());
    let mut response = response.ok_or("no response provided")?;

    let found = text(&response, "uid");
    if version == "v1" && found != uid {
        return Err(format!(
            "expected response.uid={}, got {}",
            Quoted(uid),
            Quoted(found)
        ));
    }

    let result = response.get("result").cloned().unwrap_or_default();
    let status = text(&result, "status");
    if status != "Success" {
        return Err(match text(&result, "message") {
            "" => format!("response.result.status was '{status}', not 'Success'"),
            message => message.to_owned(),
        });
    }

    let objects = response
        .as_object_mut()
        .and_then(|response| response.remove("convertedObjects"));
    match objects {
        Some(Value::Array(objects)) => Ok(objects.into_iter().collect()),
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(other) => Err(format!(
            "json: cannot unmarshal {} into Go struct field ConversionResponse.response.convertedObjects of type \
             []runtime.RawExtension",
            other.type_name()
        )),
    }
}

/// A converted object with the metadata of the original, whose labels and annotations are the
/// webhook's.
fn restore(
    original: &Value,
    mut converted: Value,
    api_version: &str,
    index: usize,
    is_list: bool,
) -> Result<Value, String> {
    let (object, at) = match is_list {
        true => ("converted object", format!(" at index {index}")),
        false => ("object", String::new()),
    };
    // Upstream names the place of the only object in some texts.
    let first = match is_list {
        true => at.clone(),
        false => " at index 0".to_owned(),
    };

    if converted.as_object().is_none() {
        let found = converted.type_name();
        return Err(format!(
            "invalid {object}{first}: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
        ));
    }
    if api_version_of(&converted) != api_version {
        let found = api_version_of(&converted);
        return Err(format!(
            "invalid {object}{first}: invalid groupVersion (expected {api_version}, received {found})"
        ));
    }
    let (expected, found) = (text(original, "kind"), text(&converted, "kind"));
    if expected != found {
        return Err(format!(
            "invalid {object}{first}: invalid kind (expected {expected}, received {found})"
        ));
    }

    same_identity(original, &converted).map_err(|why| format!("invalid {object}{at}: {why}"))?;

    let in_list = if is_list {
        format!(" in object{at}")
    } else {
        String::new()
    };
    restore_metadata(original, &mut converted)
        .map_err(|why| format!("invalid metadata{in_list}: {why}"))?;
    Ok(converted)
}

fn same_identity(original: &Value, converted: &Value) -> Result<(), String> {
    let (one, other) = (original.meta(), converted.meta());
    for (what, expected, found) in [
        ("name", one.name(), other.name()),
        ("namespace", one.namespace(), other.namespace()),
        ("UID", one.uid(), other.uid()),
    ] {
        if expected != found {
            return Err(format!("must have the same {what}: {expected} != {found}"));
        }
    }
    Ok(())
}

fn restore_metadata(original: &Value, converted: &mut Value) -> Result<(), String> {
    let fields = converted
        .as_object_mut()
        .expect("the caller has checked that it is an object");
    let given = match fields.remove("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            return Err(format!(
                "invalid metadata of type {} in converted object",
                go_type(&other)
            ));
        }
    };

    let kept = original.get("metadata").and_then(Value::as_object);
    let mut metadata = kept.cloned().unwrap_or_default();
    for field in ["labels", "annotations"] {
        let map = match given.get(field) {
            None | Some(Value::Null) => {
                metadata.remove(field);
                continue;
            }
            Some(Value::Object(map)) => map,
            Some(other) => {
                return Err(format!(
                    "invalid metadata.{field} of type {} in converted object",
                    go_type(other)
                ));
            }
        };

        if let Some((name, other)) = map.iter().find(|(_, value)| value.as_str().is_none()) {
            return Err(format!(
                "metadata.{field}[{name}] must be a string, but is {} in converted object",
                go_type(other)
            ));
        }
        if metadata.get(field).and_then(Value::as_object) != Some(map) {
            let errors = metadata_errors(field, map);
            if !errors.is_empty() {
                return Err(errors.to_string());
            }
        }
        metadata.insert(field, Value::Object(map.clone()));
    }
    fields.insert("metadata", Value::Object(metadata));

    Ok(())
}

fn metadata_errors(field: &str, map: &Map) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let texts = map
        .iter()
        .map(|(name, value)| (name, value.as_str().unwrap_or_default()));
    let at = Path::Root.field("metadata");
    match field {
        "labels" => validate::labels(texts, &at.field("labels"), &mut errors),
        // The name that upstream shows.
        _ => validate::annotations(texts, &at.field("annotation"), &mut errors),
    }
    errors
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::String(_) | Value::Raw(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn text<'v>(object: &'v Value, name: &str) -> &'v str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn api_version_of(object: &Value) -> &str {
    text(object, "apiVersion")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(text: &str) -> Value {
        json::parse(text.as_bytes()).unwrap()
    }

    fn check_answer(answer: &str, expected: Result<usize, &str>) {
        let found = converted_objects(tree(answer), "v1", "u1");
        assert_eq!(
            found.map(|objects| objects.len()),
            expected.map_err(str::to_owned),
            "{answer}"
        );
    }

    #[test]
    fn answers_that_are_not_for_the_request_are_refused() {
        let review = |response: &str| {
            format!(
                r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{response}}}"#
            )
        };

        check_answer(
            &review(r#"{"uid":"u1","result":{"status":"Success"},"convertedObjects":[{},{}]}"#),
            Ok(2),
        );
        check_answer(
            &review(r#"{"uid":"u2","result":{"status":"Success"}}"#),
            Err("expected response.uid=\"u1\", got \"u2\""),
        );
        check_answer(
            &review(r#"{"uid":"u1","result":{"status":"Failure","message":"no"}}"#),
            Err("no"),
        );
        check_answer(
            &review(r#"{"uid":"u1"}"#),
            Err("response.result.status was '', not 'Success'"),
        );
        check_answer(&review("null"), Err("no response provided"));
        check_answer(
            r#"{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview"}"#,
            Err(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
                 apiextensions.k8s.io/v1beta1, Kind=ConversionReview",
            ),
        );
        check_answer(
            "{}",
            Err(
                "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=",
            ),
        );
    }

    fn check_restored(converted: &str, expected: Result<&str, &str>) {
        let original = tree(
            r#"{"apiVersion":"a.b/v1","kind":"Boat","metadata":{"name":"n","namespace":"s","uid":"u",
            "labels":{"a":"b"},"finalizers":["x.y/z"]},"spec":{}}"#,
        );
        let found = restore(&original, tree(converted), "a.b/v2", 0, false);
        assert_eq!(
            found.map(|object| json::to_string(&object)),
            expected
                .map(|text| json::to_string(&tree(text)))
                .map_err(str::to_owned),
            "{converted}"
        );
    }

    #[test]
    fn a_webhook_changes_labels_and_annotations_and_nothing_else_of_metadata() {
        check_restored(
            r#"{"apiVersion":"a.b/v2","kind":"Boat","metadata":{"name":"n","namespace":"s","uid":"u",
            "annotations":{"c":"d"},"finalizers":[],"generation":7},"spec":{"e":1}}"#,
            Ok(
                r#"{"apiVersion":"a.b/v2","kind":"Boat","metadata":{"name":"n","namespace":"s","uid":"u",
            "annotations":{"c":"d"},"finalizers":["x.y/z"]},"spec":{"e":1}}"#,
            ),
        );

        let with = |metadata: &str| {
            format!(r#"{{"apiVersion":"a.b/v2","kind":"Boat","metadata":{metadata}}}"#)
        };
        check_restored(
            &with(r#"{"name":"m","namespace":"s","uid":"u"}"#),
            Err("invalid object: must have the same name: n != m"),
        );
        check_restored(
            &with(r#"{"name":"n","namespace":"s","uid":"v"}"#),
            Err("invalid object: must have the same UID: u != v"),
        );
        check_restored(
            &with(r#"{"name":"n","namespace":"s","uid":"u","labels":{"a":1}}"#),
            Err(
                "invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
            ),
        );
        check_restored(
            r#"{"apiVersion":"a.b/v3","kind":"Boat","metadata":{}}"#,
            Err(
                "invalid object at index 0: invalid groupVersion (expected a.b/v2, received a.b/v3)",
            ),
        );
        check_restored(
            r#"{"apiVersion":"a.b/v2","kind":"Ship","metadata":{}}"#,
            Err("invalid object at index 0: invalid kind (expected Boat, received Ship)"),
        );
    }
}
