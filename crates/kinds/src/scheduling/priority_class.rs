//! PriorityClass: a name for the priority of pods. Its value never changes.

use coracle_api::field_error::FieldError;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::scheduling::v1::PriorityClass;

use crate::Part;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::validate_immutable;

/// The highest value for users.
const HIGHEST: i32 = 1_000_000_000;

/// The prefix of the system's own names.
const SYSTEM_PREFIX: &str = "system-";

const SYSTEM: [(&str, i32); 2] = [
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &PriorityClasses,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct PriorityClasses;

impl Strategy for PriorityClasses {
    type Object = PriorityClass;

    fn never_deleted(&self, name: &str) -> Option<&'static str> {
        let is_system = SYSTEM.iter().any(|(system, _)| *system == name);
        is_system.then_some("this is a system priority class and cannot be deleted")
    }

    fn validate(&self, new: &View<'_, PriorityClass>, _: &Context<'_>, errors: &mut Errors) {
        let name = new.tree.meta().name();
        if name.starts_with(SYSTEM_PREFIX) {
            if let Some(fault) = system_fault(name, new) {
                let detail = format!(
                    "priority class names with '{SYSTEM_PREFIX}' prefix are reserved for system use only. error: {fault}"
                );
                errors.push(FieldError::forbidden(
                    &Path::Root.field("metadata.name"),
                    detail,
                ));
            }
        } else if new.value.unwrap_or_default() > HIGHEST {
            let detail = format!("maximum allowed value of a user defined priority is {HIGHEST}");
            errors.push(FieldError::forbidden(&Path::Root.field("value"), detail));
        }

        let at = Path::Root.field("preemptionPolicy");
        match new.preemption_policy.as_deref() {
            None | Some("PreemptLowerPriority" | "Never") => {}
            Some("") => errors.push(FieldError::required(&at, "")),
            Some(other) => {
                errors.push(FieldError::not_supported(
                    &at,
                    other,
                    &["PreemptLowerPriority", "Never"],
                ));
            }
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, PriorityClass>,
        old: &View<'_, PriorityClass>,
        _: &Context<'_>,
        errors: &mut Errors,
    ) {
        if new.value != old.value {
            let at = Path::Root.field("value");
            errors.push(FieldError::forbidden(
                &at,
                "may not be changed in an update.",
            ));
        }
        validate_immutable(new.tree, old.tree, &["preemptionPolicy"], "null", errors);
    }

    /// It starts at 1, and no field that counts can change.
    fn counts_generation(&self, _: &Value, _: &Value, _: Part) -> bool {
        false
    }
}

/// How a class with a system name differs from the built-in one.
fn system_fault(name: &str, class: &PriorityClass) -> Option<String> {
    let Some((_, value)) = SYSTEM.into_iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.value.unwrap_or_default() != value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    (class.global_default == Some(true))
        .then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

fn print_row(class: &PriorityClass, now: Timestamp) -> Row {
    row![
        cells::name(&class.metadata),
        class.value.unwrap_or_default(),
        class.global_default.unwrap_or_default(),
        cells::age(&class.metadata, now),
        class.preemption_policy.as_deref().unwrap_or_default()
    ]
}
