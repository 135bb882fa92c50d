//! ControllerRevision: a state that a controller may go back to. Only its number may change.

use coracle_api::codec::json;
use coracle_api::field_error::FieldError;
use coracle_api::{Path, Value};
use k8s_openapi::api::apps::v1::ControllerRevision;

use crate::registry::strategy::{Context, Errors, Judged, Strategy};
use crate::registry::validate::{not_negative, unchanged};

const DATA: Path<'static> = Path::Field(&Path::Root, "data");

pub(in crate::registry) struct ControllerRevisions;

impl Strategy for ControllerRevisions {
    type Object = ControllerRevision;

    fn validate(&self, new: &Judged<'_, ControllerRevision>, _: &Context<'_>, errors: &mut Errors) {
        not_negative(new.revision, &Path::Root.field("revision"), errors);
        let fault = match data(new.tree) {
            None | Some(Value::Null) => "data is mandatory",
            Some(Value::Object(_)) => return,
            Some(_) => "data must be a valid JSON object",
        };
        errors.push(FieldError::required(&DATA, fault));
    }

    fn validate_update(
        &self,
        new: &Judged<'_, ControllerRevision>,
        old: &Judged<'_, ControllerRevision>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.own_metadata(cx.part).judge(new.tree, cx, errors);
        not_negative(new.revision, &Path::Root.field("revision"), errors);
        unchanged(
            data(new.tree).as_ref(),
            data(old.tree).as_ref(),
            &DATA,
            "null",
            errors,
        );
    }
}

/// What a revision carries, whatever form it is kept in.
fn data(revision: &Value) -> Option<Value> {
    match revision.get("data")? {
        Value::Raw(raw) => json::parse(raw.as_str().as_bytes()).ok(),
        other => Some(other.clone()),
    }
}
