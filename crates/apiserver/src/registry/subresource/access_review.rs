//! SubjectAccessReview, LocalSubjectAccessReview and SelfSubjectAccessReview.

use coracle_api::Map;
use coracle_api::selector::{FieldSelector, LabelSelector};
use coracle_kinds::access::{AccessTarget, Attributes, ResourceTarget};
use coracle_kinds::authorization::access_review::{Question, Scope, validate};
use coracle_kinds::{ApiError, Part, User, text};
use k8s_openapi::api::authorization::v1::{LabelSelectorAttributes, ResourceAttributes};

use super::review::Review;
use super::{Call, Reply};
use crate::authz::Decision;

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let mut review = Review::of(call, Part::Main).await?;
    let scope = match call.scope.resource.plural.as_str() {
        "selfsubjectaccessreviews" => Scope::Own,
        "localsubjectaccessreviews" => Scope::Namespace,
        _ => Scope::Any,
    };
    let question = Question::of(&review.object, scope)?;
    validate(&review.object, &question, scope, call.scope.of)
        .map_err(|error| error.after(review.warnings.clone()))?;

    review.validate().await?;

    let user = question.user.as_ref().unwrap_or(&call.scope.caller.user);
    let selector = Selectors::of(question.resource.as_ref());
    let attributes = attributes(&question, user, &selector.fields);
    let decision = call.registry.access.authorization.decide(&attributes).await;

    let status = status(&decision, user, &selector.errors);
    review
        .object
        .as_object_mut()
        .expect("it was decoded as an object")
        .insert("status", status);

    Ok(review.reply())
}

fn attributes<'a>(question: &'a Question, user: &'a User, fields: &'a str) -> Attributes<'a> {
    match (&question.resource, &question.path) {
        (Some(resource), _) => {
            let version = text(&resource.version);
            let target = ResourceTarget {
                group: text(&resource.group),
                version: if version.is_empty() { "*" } else { version },
                resource: text(&resource.resource),
                subresource: text(&resource.subresource),
                namespace: text(&resource.namespace),
                name: text(&resource.name),
                field_selector: fields,
            };

            Attributes::on(user, text(&resource.verb), target)
        }
        (None, path) => {
            let (verb, path) = path
                .as_ref()
                .map_or(("", ""), |path| (text(&path.verb), text(&path.path)));
            Attributes {
                user,
                verb,
                target: AccessTarget::Path(path),
            }
        }
    }
}

/// The selectors of the question, and what could not be understood of them.
#[derive(Default)]
struct Selectors {
    fields: String,
    errors: Vec<String>,
}

impl Selectors {
    fn of(resource: Option<&ResourceAttributes>) -> Selectors {
        let mut found = Selectors::default();
        let Some(resource) = resource else {
            return found;
        };
        if let Some(fields) = &resource.field_selector {
            let raw = text(&fields.raw_selector);
            let list = fields.requirements.as_deref().unwrap_or_default();
            let terms: Vec<String> = list
                .iter()
                .filter_map(|term| {
                    match (
                        term.operator.as_str(),
                        term.values.as_deref().unwrap_or_default(),
                    ) {
                        ("In", [value]) => Some(format!("{}={}", term.key, escaped(value))),
                        ("NotIn", [value]) => Some(format!("{}!={}", term.key, escaped(value))),
                        _ => None,
                    }
                })
                .collect();

            let bad_raw = !raw.is_empty() && raw.parse::<FieldSelector>().is_err();
            found.note("fieldSelector", bad_raw, terms.len(), list.len());
            found.fields = if raw.is_empty() {
                terms.join(",")
            } else {
                raw.to_string()
            };

            if bad_raw {
                found.fields.clear();
            }
        }

        if let Some(labels) = &resource.label_selector {
            let raw = text(&labels.raw_selector);
            let bad_raw = !raw.is_empty() && raw.parse::<LabelSelector>().is_err();
            let (good, all) = good_labels(labels);
            found.note("labelSelector", bad_raw, good, all);
        }

        found
    }

    fn note(&mut self, which: &str, bad_raw: bool, good: usize, all: usize) {
        let partly = if !bad_raw && good > 0 {
            "partially "
        } else {
            ""
        };
        if bad_raw || good < all {
            self.errors.push(format!(
                "spec.resourceAttributes.{which} {partly}ignored due to parse error"
            ));
        }
    }
}

fn good_labels(labels: &LabelSelectorAttributes) -> (usize, usize) {
    let all = labels.requirements.as_deref().unwrap_or_default();
    let known = |operator: &str| matches!(operator, "In" | "NotIn" | "Exists" | "DoesNotExist");
    (
        all.iter().filter(|term| known(&term.operator)).count(),
        all.len(),
    )
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace(',', "\\,")
        .replace('=', "\\=")
}

fn status(decision: &Decision, user: &User, errors: &[String]) -> Map {
    let mut status = Map::new();
    status.insert("allowed", matches!(decision, Decision::Allow(_)));
    let reason = match decision {
        Decision::Allow(grant) => grant.reason(user).to_string(),
        Decision::Deny(reason) => {
            status.insert("denied", true);
            reason.clone()
        }
        Decision::NoOpinion(reason) => reason.clone(),
    };

    for (name, text) in [("reason", reason), ("evaluationError", errors.join("; "))] {
        if !text.is_empty() {
            status.insert(name, text);
        }
    }

    status
}
