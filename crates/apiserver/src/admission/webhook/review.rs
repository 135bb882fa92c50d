//! AdmissionReview: what a webhook is asked, and what it may answer. Pure. Texts are upstream's.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::catalog::{Kind, Resource};
use coracle_api::codec::json;
use coracle_api::go_text::Quoted;
use coracle_api::{Map, Value};
use coracle_kinds::{ApiError, User};

use crate::admission::Attributes;
use crate::admission::matching::Match;

/// The versions of AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    /// The first version that a webhook accepts and this server knows.
    pub(super) fn of(accepted: &[String]) -> Option<ReviewVersion> {
        accepted.iter().find_map(|version| match version.as_str() {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1Beta1),
            _ => None,
        })
    }

    fn api_version(self) -> &'static str {
        match self {
            ReviewVersion::V1 => "admission.k8s.io/v1",
            ReviewVersion::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// The objects of a request, in the version that the webhook wants to see.
pub(super) struct Objects<'a> {
    pub(super) object: Option<Cow<'a, Value>>,
    pub(super) old: Option<Cow<'a, Value>>,
}

/// The body of a call.
pub(super) fn request(
    version: ReviewVersion,
    uid: &str,
    attributes: &Attributes<'_>,
    matched: Match<'_>,
    objects: &Objects<'_>,
) -> Vec<u8> {
    let cx = &attributes.cx;
    let mut request = Map::new();
    request.insert("uid", uid);
    request.insert("kind", kind(matched.kind));
    request.insert("resource", resource(matched.resource));
    request.insert("requestKind", kind(cx.kind));
    request.insert("requestResource", resource(cx.resource));

    for (name, text) in [
        ("subResource", attributes.subresource),
        ("requestSubResource", attributes.subresource),
        ("name", attributes.name),
        ("namespace", attributes.namespace()),
    ] {
        if !text.is_empty() {
            request.insert(name, text);
        }
    }

    request.insert("operation", attributes.operation.as_str());
    request.insert("userInfo", user(cx.user));
    let shown = |object: &Option<Cow<'_, Value>>| match object {
        Some(object) => Value::clone(object),
        None => Value::Null,
    };
    request.insert("object", shown(&objects.object));
    request.insert("oldObject", shown(&objects.old));
    request.insert("dryRun", cx.dry_run);
    request.insert(
        "options",
        attributes.options.object().unwrap_or(Value::Null),
    );

    let mut review = Map::new();
    review.insert("kind", "AdmissionReview");
    review.insert("apiVersion", version.api_version());
    review.insert("request", request);
    json::to_vec(&Value::Object(review))
}

fn kind(kind: &Kind) -> Map {
    let mut map = Map::new();
    map.insert("group", kind.group.clone());
    map.insert("version", kind.version.clone());
    map.insert("kind", kind.name.clone());
    map
}

fn resource(resource: &Resource) -> Map {
    let mut map = Map::new();
    map.insert("group", resource.group.clone());
    map.insert("version", resource.version.clone());
    map.insert("resource", resource.plural.clone());
    map
}

fn user(user: &User) -> Map {
    let texts = |texts: &[String]| -> Vec<Value> {
        texts
            .iter()
            .map(|text| Value::from(text.as_str()))
            .collect()
    };

    let mut map = Map::new();
    for (name, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            map.insert(name, text.as_str());
        }
    }
    if !user.groups.is_empty() {
        map.insert("groups", texts(&user.groups));
    }
    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (name, values) in &user.extra {
            extra.insert(name.as_str(), texts(values));
        }
        map.insert("extra", extra);
    }
    map
}

/// What a webhook answered.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Response {
    pub(super) allowed: bool,
    /// A JSON patch; empty: none.
    pub(super) patch: Vec<u8>,
    /// Of the patch: `JSONPatch`, or one that is not known.
    pub(super) patch_type: String,
    /// Of a refusal.
    pub(super) result: Option<Map>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Vec<(String, String)>,
}

/// Why an answer is of no use.
#[derive(Debug, PartialEq)]
pub(super) enum BadAnswer {
    /// It cannot be decoded.
    Undecodable(String),
    /// It is not an answer to the request.
    Invalid(String),
}

/// The response of a review that came back.
pub(super) fn response(
    review: &Value,
    version: ReviewVersion,
    uid: &str,
    mutates: bool,
) -> Result<Response, BadAnswer> {
    use BadAnswer::{Invalid, Undecodable};
    let text = |name: &str| review.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let wanted = version.api_version();

    let is_review = kind == "AdmissionReview" && api_version.starts_with("admission.k8s.io/");
    if !kind.is_empty() && !is_review {
        return Err(Undecodable(format!(
            "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:110\"",
            Quoted(kind),
            Quoted(api_version)
        )));
    }
    if !api_version.is_empty() && api_version != wanted {
        let short = |api_version: &str| {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            format!("{version}.AdmissionReview")
        };
        return Err(Undecodable(format!(
            "converting ({}) to ({}): unknown conversion",
            short(api_version),
            short(wanted)
        )));
    }

    let read = match review.get("response") {
        None | Some(Value::Null) => {
            return Err(Invalid("webhook response was absent".to_owned()));
        }
        Some(given) => Fields::read(given).map_err(Undecodable)?,
    };

    if version == ReviewVersion::V1 {
        check(&read, (api_version, kind), uid, mutates).map_err(Invalid)?;
    }

    let patch_type = match version {
        ReviewVersion::V1 => read.patch_type.unwrap_or_default(),
        // Not verified in this version.
        ReviewVersion::V1Beta1 => "JSONPatch".to_owned(),
    };
    Ok(Response {
        patch: if mutates { read.patch } else { Vec::new() },
        patch_type,
        ..read.rest
    })
}

fn check(
    read: &Fields,
    (api_version, kind): (&str, &str),
    uid: &str,
    mutates: bool,
) -> Result<(), String> {
    if read.uid != uid {
        return Err(format!(
            "expected response.uid={}, got {}",
            Quoted(uid),
            Quoted(&read.uid)
        ));
    }

    if api_version.is_empty() || kind.is_empty() {
        let shown = if api_version.is_empty() {
            "/"
        } else {
            api_version
        };
        return Err(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}, Kind={kind}"
        ));
    }

    let refused = match (mutates, read.patch.is_empty(), &read.patch_type) {
        (true, false, None) => "webhook returned response.patch but not response.patchType",
        (true, true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (true, false, Some(of)) if of.is_empty() => {
            "webhook returned invalid response.patchType of \"\""
        }
        (false, false, _) => "validating webhook may not return response.patch",
        (false, true, Some(_)) => "validating webhook may not return response.patchType",
        _ => return Ok(()),
    };
    Err(refused.to_owned())
}

/// The members of a response, with their types.
#[derive(Default)]
struct Fields {
    uid: String,
    patch: Vec<u8>,
    patch_type: Option<String>,
    rest: Response,
}

impl Fields {
    fn read(response: &Value) -> Result<Fields, String> {
        let wrong = |found: &Value, field: &str, of: &str| {
            let field = match field {
                "" => "AdmissionReview.response".to_owned(),
                field => format!("AdmissionReview.response.{field}"),
            };
            format!(
                "json: cannot unmarshal {} into Go struct field {field} of type {of}",
                found.type_name()
            )
        };
        let map = response
            .as_object()
            .ok_or_else(|| wrong(response, "", "v1.AdmissionResponse"))?;
        let given = |name: &str| map.get(name).filter(|value| !value.is_null());
        let text = |name: &str, of: &str| match given(name) {
            None => Ok(None),
            Some(value) => match value.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => Err(wrong(value, name, of)),
            },
        };

        let mut read = Fields {
            uid: text("uid", "types.UID")?.unwrap_or_default(),
            patch_type: text("patchType", "v1.PatchType")?,
            ..Fields::default()
        };
        if let Some(patch) = text("patch", "[]uint8")? {
            read.patch = STANDARD
                .decode(patch)
                .map_err(|_| "illegal base64 data in response.patch".to_owned())?;
        }

        if let Some(allowed) = given("allowed") {
            let wrong = || wrong(allowed, "allowed", "bool");
            read.rest.allowed = allowed.as_bool().ok_or_else(wrong)?;
        }
        if let Some(result) = given("status") {
            let wrong = || wrong(result, "status", "v1.Status");
            read.rest.result = Some(result.as_object().cloned().ok_or_else(wrong)?);
        }
        if let Some(warnings) = given("warnings") {
            let wrong = || wrong(warnings, "warnings", "[]string");
            let warnings = warnings.as_array().ok_or_else(wrong)?.iter();
            let warnings = warnings.map(|text| text.as_str().map(str::to_owned).ok_or_else(wrong));
            read.rest.warnings = warnings.collect::<Result<_, _>>()?;
        }
        if let Some(annotations) = given("auditAnnotations") {
            let wrong = || wrong(annotations, "auditAnnotations", "map[string]string");
            let annotations = annotations.as_object().ok_or_else(wrong)?.iter();
            let annotations = annotations.map(|(key, value)| {
                let value = value.as_str().ok_or_else(wrong)?;
                Ok((key.to_owned(), value.to_owned()))
            });
            read.rest.annotations = annotations.collect::<Result<_, String>>()?;
        }

        Ok(read)
    }
}

/// The error of a request that a webhook refuses.
pub(super) fn refused(webhook: &str, result: Option<Map>) -> ApiError {
    let mut status = result.unwrap_or_default();
    if status.int("code") < 400 {
        status.insert("code", 400);
    }
    if matches!(status.text("status"), "" | "Success") {
        status.insert("status", "Failure");
    }

    let denied = format!("admission webhook {} denied the request", Quoted(webhook));
    let message = match (status.text("message"), status.text("reason")) {
        ("", "") => format!("{denied} without explanation"),
        ("", why) | (why, _) => format!("{denied}: {why}"),
    };
    status.insert("message", message.as_str());
    ApiError::foreign(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_response(version: ReviewVersion, mutates: bool, review: &str, expected: &str) {
        let review = json::parse(review.as_bytes()).unwrap();
        let found = match response(&review, version, "u1", mutates) {
            Ok(response) => format!(
                "{} {} {}",
                response.allowed,
                String::from_utf8_lossy(&response.patch),
                response.patch_type
            ),
            Err(BadAnswer::Invalid(why)) => format!("invalid: {why}"),
            Err(BadAnswer::Undecodable(why)) => format!("undecodable: {why}"),
        };
        assert_eq!(found.trim(), expected, "{}", json::to_string(&review));
    }

    fn v1(response: &str) -> String {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{response}}}"#
        )
    }

    #[test]
    fn an_answer_is_for_the_request_that_was_sent() {
        let check = |mutates, response: &str, expected: &str| {
            check_response(ReviewVersion::V1, mutates, &v1(response), expected);
        };

        check(false, r#"{"uid":"u1","allowed":true}"#, "true");
        check(false, r#"{"uid":"u1"}"#, "false");
        check(true, "null", "invalid: webhook response was absent");
        check(
            true,
            r#"{"uid":"u2","allowed":true}"#,
            "invalid: expected response.uid=\"u1\", got \"u2\"",
        );
        check(
            true,
            r#"{"uid":"u1","allowed":true,"patch":"W10=","patchType":"JSONPatch"}"#,
            "true [] JSONPatch",
        );
        check(
            true,
            r#"{"uid":"u1","allowed":true,"patch":"W10="}"#,
            "invalid: webhook returned response.patch but not response.patchType",
        );
        check(
            true,
            r#"{"uid":"u1","allowed":true,"patchType":"JSONPatch"}"#,
            "invalid: webhook returned response.patchType but not response.patch",
        );
        check(
            false,
            r#"{"uid":"u1","allowed":true,"patch":"W10=","patchType":"JSONPatch"}"#,
            "invalid: validating webhook may not return response.patch",
        );
        check(
            false,
            r#"{"uid":"u1","allowed":"yes"}"#,
            "undecodable: json: cannot unmarshal string into Go struct field AdmissionReview.response.allowed of type bool",
        );
    }

    #[test]
    fn the_version_of_an_answer_is_that_of_the_request() {
        let beta = r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"allowed":true,"patch":"W10="}}"#;

        check_response(
            ReviewVersion::V1,
            true,
            beta,
            "undecodable: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
        );
        check_response(ReviewVersion::V1Beta1, true, beta, "true [] JSONPatch");
        check_response(
            ReviewVersion::V1Beta1,
            true,
            r#"{"response":{}}"#,
            "false  JSONPatch",
        );
        check_response(
            ReviewVersion::V1,
            true,
            r#"{"response":{"uid":"u1"}}"#,
            "invalid: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=",
        );
        check_response(
            ReviewVersion::V1,
            true,
            r#"{"apiVersion":"v1","kind":"Pod"}"#,
            "undecodable: no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:110\"",
        );
    }

    #[test]
    fn a_refusal_has_the_code_and_reason_of_the_webhook() {
        let check = |result: &str, code: u16, message: &str| {
            let result = json::parse(result.as_bytes()).unwrap();
            let refused = refused("a.b.c", result.as_object().cloned());
            assert_eq!(
                (refused.code.as_u16(), refused.message.as_str()),
                (code, message)
            );
            assert_eq!(
                refused.to_status().get("status").and_then(Value::as_str),
                Some("Failure")
            );
        };

        let denied = "admission webhook \"a.b.c\" denied the request";
        check("{}", 400, &format!("{denied} without explanation"));
        check(
            r#"{"code":200,"status":"Success"}"#,
            400,
            &format!("{denied} without explanation"),
        );
        check(
            r#"{"code":403,"message":"no"}"#,
            403,
            &format!("{denied}: no"),
        );
        check(
            r#"{"code":402,"reason":"Virus"}"#,
            402,
            &format!("{denied}: Virus"),
        );
    }
}
