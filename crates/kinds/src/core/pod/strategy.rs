//! The strategy of pods.

use coracle_api::Value;
use coracle_api::field_error::FieldError;
use coracle_api::names::{self, Rule};
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};

use super::annotation::MIRROR;
use super::options::Options;
use super::{ephemeral, resize, shape, status, update, validate, warnings};
use crate::Part;
use crate::behaviour::{Behaviour, Handler};
use crate::strategy::{Context, Errors, Grace, Strategy, View};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Pods,
    printer: printer!(super::print::print_row),
    reset_fields: &[(
        Part::Status,
        &[
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ],
    )],
    handlers: &[
        ("binding", Handler::Binding),
        ("eviction", Handler::Eviction),
    ],
};

struct Pods;

impl Strategy for Pods {
    type Object = Pod;

    fn name_rule(&self) -> Rule {
        names::dns1123_subdomain
    }

    fn notices(&self, sent: &Value, _: &Context<'_>) -> Vec<String> {
        shape::notices(sent)
    }

    fn prepare_create(&self, new: &mut Value, cx: &Context<'_>) {
        shape::new_pod(new, cx.now);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        match cx.part {
            Part::Status => status::shape(new, old),
            Part::EphemeralContainers => ephemeral::shape(new, old),
            Part::Resize => resize::shape(new, old),
            _ => {}
        }
    }

    fn validate(&self, new: &View<'_, Pod>, cx: &Context<'_>, errors: &mut Errors) {
        let options = Options::of_pod(None, cx.cluster.allow_privileged());
        let none = PodSpec::default();
        let spec = new.spec.as_ref().unwrap_or(&none);
        validate::validate_pod(&new.metadata, spec, &options, errors);
        validate::validate_new_pod(&new.metadata, spec, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, Pod>,
        old: &View<'_, Pod>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let none = (PodSpec::default(), PodStatus::default());
        let (spec, before) = (
            new.spec.as_ref().unwrap_or(&none.0),
            old.spec.as_ref().unwrap_or(&none.0),
        );
        let options = Options::of_pod(Some((&old.metadata, before)), cx.cluster.allow_privileged());

        let start = errors.len();
        let anew = |errors: &mut Errors| {
            self.own_metadata(cx.part).validate(new.tree, cx, errors);
            validate::validate_pod(&new.metadata, spec, &options, errors);
        };

        let annotations = |errors: &mut Errors| {
            let (new, old) = (
                new.metadata.annotations.as_ref(),
                old.metadata.annotations.as_ref(),
            );
            validate::validate_annotations_update(new, old, spec, &options, errors);
        };

        match cx.part {
            Part::Status => {
                annotations(errors);
                status::validate_update(new, old, errors);
            }
            Part::EphemeralContainers => {
                anew(errors);
                annotations(errors);

                match refuses_ephemeral(old) {
                    Some(refusal) => {
                        errors.truncate(start);
                        errors.push(refusal);
                    }
                    None => ephemeral::validate_update(spec, before, errors),
                }
            }
            Part::Resize => {
                anew(errors);

                match resize::impossible(old) {
                    Some(refusal) => {
                        errors.truncate(start);
                        errors.push(refusal);
                    }
                    None => {
                        let status = old.status.as_ref().unwrap_or(&none.1);
                        resize::validate_update(spec, before, status, errors);
                    }
                }
            }
            _ => {
                anew(errors);
                annotations(errors);
                update::validate_update(spec, before, &options, errors);
            }
        }
    }

    fn warnings(
        &self,
        new: &View<'_, Pod>,
        old: Option<&View<'_, Pod>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        match (old, cx.part) {
            (None, _) => warnings::new_pod(new),
            (Some(_), Part::Status) => status::warnings(new),
            // Updates of pods come from controllers, and are frequent.
            (Some(_), _) => Vec::new(),
        }
    }

    fn counts_generation(&self, new: &Value, old: &Value, part: Part) -> bool {
        part != Part::Status && new.get("spec") != old.get("spec")
    }

    fn grace(&self, object: &Value, asked: Option<i64>) -> Grace {
        let text = |path: &[&str]| object.at(path).and_then(Value::as_str).unwrap_or_default();
        let over = matches!(text(&["status", "phase"]), "Failed" | "Succeeded");
        if text(&["spec", "nodeName"]).is_empty() || over {
            return Grace::Seconds(0);
        }
        let own = object
            .at(&["spec", "terminationGracePeriodSeconds"])
            .and_then(Value::as_int);
        let seconds = asked.or(own).unwrap_or(0);
        // A negative period becomes the shortest one that still lets the node stop the pod.
        Grace::Seconds(if seconds < 0 { 1 } else { seconds })
    }
}

fn refuses_ephemeral(old: &Pod) -> Option<FieldError> {
    let annotations = old.metadata.annotations.as_ref();
    annotations
        .is_some_and(|annotations| annotations.contains_key(MIRROR))
        .then(|| {
            let nowhere = coracle_api::Path::Root.field("");
            FieldError::forbidden(&nowhere, "static pods do not support ephemeral containers")
        })
}
