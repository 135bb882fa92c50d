//! ControllerRevision: a state that a controller may roll back to. Only its number may change.

use coracle_api::codec::json;
use coracle_api::field_error::FieldError;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::{validate_not_negative, validate_unchanged};

const DATA: Path<'static> = Path::Field(&Path::Root, "data");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ControllerRevisions,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct ControllerRevisions;

impl Strategy for ControllerRevisions {
    type Object = ControllerRevision;

    fn validate(&self, new: &View<'_, ControllerRevision>, _: &Context<'_>, errors: &mut Errors) {
        validate_not_negative(new.revision, &Path::Root.field("revision"), errors);
        let fault = match data(new.tree) {
            None | Some(Value::Null) => "data is mandatory",
            Some(Value::Object(_)) => return,
            Some(_) => "data must be a valid JSON object",
        };
        errors.push(FieldError::required(&DATA, fault));
    }

    fn validate_update(
        &self,
        new: &View<'_, ControllerRevision>,
        old: &View<'_, ControllerRevision>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        validate_not_negative(new.revision, &Path::Root.field("revision"), errors);
        validate_unchanged(
            data(new.tree).as_ref(),
            data(old.tree).as_ref(),
            &DATA,
            "null",
            errors,
        );
    }
}

/// The data of a revision, whether it is stored typed or raw.
fn data(revision: &Value) -> Option<Value> {
    match revision.get("data")? {
        Value::Raw(raw) => json::parse(raw.as_str().as_bytes()).ok(),
        other => Some(other.clone()),
    }
}

fn print_row(revision: &ControllerRevision, now: Timestamp) -> Row {
    let mut owners = revision.metadata.owner_references.iter().flatten();
    let controller = owners.find(|owner| owner.controller == Some(true));
    row![
        cells::name(&revision.metadata),
        controller.map_or_else(|| cells::NONE.to_string(), qualified),
        revision.revision,
        cells::age(&revision.metadata, now)
    ]
}

/// `statefulset.apps/web`.
fn qualified(owner: &OwnerReference) -> String {
    let kind = owner.kind.to_lowercase();
    match owner.api_version.split_once('/') {
        Some((group, _)) => format!("{kind}.{}/{}", group.to_lowercase(), owner.name),
        None => format!("{kind}/{}", owner.name),
    }
}
