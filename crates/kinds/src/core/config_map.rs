//! ConfigMap: keys that can be files, a megabyte of values, and an immutable flag.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, names};
use k8s_openapi::api::core::v1::ConfigMap;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};

/// How many bytes the values of a ConfigMap or a Secret may have in all.
pub(super) const MAX_SIZE: usize = 1 << 20;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ConfigMaps,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct ConfigMaps;

impl Strategy for ConfigMaps {
    type Object = ConfigMap;

    fn validate(&self, new: &View<'_, ConfigMap>, _: &Context<'_>, errors: &mut Errors) {
        let mut size = 0;
        let at = Path::Root.field("data");
        for (key, value) in new.data.iter().flatten() {
            refuse(&at.key(key), key, names::config_map_key(key), errors);

            if new
                .binary_data
                .as_ref()
                .is_some_and(|binary| binary.contains_key(key))
            {
                let detail = "duplicate of key present in binaryData";
                errors.push(FieldError::invalid_str(&at.key(key), key, detail));
            }

            size += value.len();
        }

        let at = Path::Root.field("binaryData");
        for (key, value) in new.binary_data.iter().flatten() {
            refuse(&at.key(key), key, names::config_map_key(key), errors);
            size += value.0.len();
        }

        if size > MAX_SIZE {
            // The whole object is too long; upstream names it with an empty key.
            errors.push(FieldError::too_long(&Path::Root.key(""), MAX_SIZE));
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, ConfigMap>,
        old: &View<'_, ConfigMap>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if old.immutable == Some(true) {
            validate_still_immutable(new.immutable, errors);
            validate_unchanged("data", new.data == old.data, errors);
            validate_unchanged("binaryData", new.binary_data == old.binary_data, errors);
        }
        self.validate_anew(new, cx, errors);
    }
}

/// Validates that an immutable object stays immutable.
pub(super) fn validate_still_immutable(flag: Option<bool>, errors: &mut Errors) {
    validate_unchanged("immutable", flag == Some(true), errors);
}

/// Adds an error for a changed field of an immutable object.
pub(super) fn validate_unchanged(name: &str, same: bool, errors: &mut Errors) {
    if !same {
        let detail = "field is immutable when `immutable` is set";
        errors.push(FieldError::forbidden(&Path::Root.field(name), detail));
    }
}

fn print_row(config: &ConfigMap, now: Timestamp) -> Row {
    let entries =
        config.data.iter().flatten().count() + config.binary_data.iter().flatten().count();
    row![
        cells::name(&config.metadata),
        cells::count(entries),
        cells::age(&config.metadata, now)
    ]
}
