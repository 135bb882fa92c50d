//! StorageVersionMigration: all objects of a resource are to be stored in its storage version. What
//! is migrated never changes, and a migration that has ended stays as it is.

use coracle_api::field_error::{FieldError, shown};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::names::{dns1035_label, dns1123_subdomain};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::GroupResource;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{conditions, internal};
use crate::{Part, keep_metadata};

const STATUS: Path<'static> = Path::Field(&Path::Root, "status");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &StorageVersionMigrations,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct StorageVersionMigrations;

impl Strategy for StorageVersionMigrations {
    type Object = StorageVersionMigration;

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn validate(
        &self,
        new: &View<'_, StorageVersionMigration>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        let at = SPEC.field("resource");
        let resource = new.spec.as_ref().map(|spec| &spec.resource);
        let none = GroupResource::default();
        let GroupResource { group, resource } = resource.unwrap_or(&none);

        if resource.is_empty() {
            let why = "resource is required to be set";
            errors.push(FieldError::required(&at.field("resource"), why));
        }
        for (name, text, messages) in [
            ("resource", resource, dns1035_label(resource)),
            ("group", group, dns1123_subdomain(group)),
        ] {
            if !text.is_empty() && !messages.is_empty() {
                let why: Vec<String> = messages.iter().map(ToString::to_string).collect();
                errors.push(FieldError::invalid_str(
                    &at.field(name),
                    text,
                    why.join(","),
                ));
            }
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, StorageVersionMigration>,
        old: &View<'_, StorageVersionMigration>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            validate_status(new.tree, old.tree, errors);
        } else {
            self.validate_anew(new, cx, errors);
            if new.tree.get("spec") != old.tree.get("spec") {
                let resource = new.spec.as_ref().map(|spec| &spec.resource);
                let part = |of: fn(&GroupResource) -> &String| {
                    internal::text(resource.map_or("", |resource| of(resource)))
                };
                let resource = internal::object(&[
                    ("group", part(|of| &of.group)),
                    ("resource", part(|of| &of.resource)),
                ]);
                let shown = internal::object(&[("Resource", resource)]);
                errors.push(FieldError::invalid(&SPEC, shown, IMMUTABLE));
            }
        }
    }
}

fn validate_status(new: &Value, old: &Value, errors: &mut Errors) {
    let at = STATUS.field("resourceVersion");
    let version = |object: &Value| -> String {
        let version = object.at(&["status", "resourceVersion"]);
        version
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (now, before) = (version(new), version(old));
    if let Some(why) = version_fault(&now) {
        errors.push(FieldError::invalid_str(&at, &now, why));
    }

    let place = STATUS.field("conditions");
    conditions::validate(conditions_of(new), &place, errors);
    if !before.is_empty() && now != before {
        errors.push(FieldError::invalid_str(&at, &now, "field is immutable"));
    }

    let found = new.at(&["status", "conditions"]);
    let mut refuse = |why: &str| {
        let shown = found.map_or_else(|| "null".to_owned(), shown);
        errors.push(FieldError::invalid(&place, shown, why));
    };
    let (succeeded, failed) = (is_true(new, "Succeeded"), is_true(new, "Failed"));
    if succeeded && failed {
        refuse("Both success and failed conditions cannot be true at the same time");
    }
    if is_true(old, "Succeeded") && !succeeded {
        refuse("Success condition cannot be set to false once it is true");
    }
    if is_true(old, "Failed") && !failed {
        refuse("Failed condition cannot be set to false once it is true");
    }
}

/// A resource version is a number without leading zeros.
fn version_fault(version: &str) -> Option<String> {
    let is_number = version.bytes().all(|byte| byte.is_ascii_digit());
    if version.is_empty() || (is_number && !version.starts_with('0')) {
        return None;
    }
    Some(format!("resource version is not well formed: {version}"))
}

fn conditions_of(object: &Value) -> &[Value] {
    let conditions = object.at(&["status", "conditions"]);
    conditions.and_then(Value::as_array).unwrap_or_default()
}

fn is_true(object: &Value, kind: &str) -> bool {
    let has = |condition: &Value, name: &str, text: &str| {
        condition.get(name).and_then(Value::as_str) == Some(text)
    };
    let mut all = conditions_of(object).iter();
    all.any(|condition| has(condition, "type", kind) && has(condition, "status", "True"))
}

fn print_row(object: &StorageVersionMigration, _: Timestamp) -> Row {
    let resource = object.spec.as_ref().map(|spec| &spec.resource);
    let resource = resource.map_or_else(String::new, |of| match of.group.as_str() {
        "" => of.resource.clone(),
        group => format!("{}.{group}", of.resource),
    });

    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    let mut current = conditions.flatten().filter(|condition| {
        condition.status == "True"
            && matches!(condition.type_.as_str(), "Running" | "Failed" | "Succeeded")
    });
    let state = current
        .next_back()
        .map_or("Unknown", |condition| &condition.type_);
    row![cells::name(&object.metadata), resource, state]
}
