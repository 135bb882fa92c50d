//! DeviceTaintRule: a taint for all devices that a selector matches.

use coracle_api::Path;
use coracle_api::Value;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, label_value, qualified_name};
use coracle_api::time::{Time, Timestamp};
use k8s_openapi::api::resource::v1alpha3::{DeviceTaintRule, DeviceTaintRuleSpec};

use super::taint::EFFECTS;
use super::validate_pool_name;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::storage::validate_driver_name;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{conditions, text, validate_one_of};
use crate::{Part, keep_metadata};

const MOST_CONDITIONS: usize = 8;

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &DeviceTaintRules,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct DeviceTaintRules;

impl Strategy for DeviceTaintRules {
    type Object = DeviceTaintRule;

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            return keep_metadata(new, old);
        }

        // The time is when this effect was added, unless the client has set another.
        let part = |object: &Value, name: &str| object.at(&["spec", "taint", name]).cloned();
        let is_same = |name: &str| part(new, name) == part(old, name);
        if !is_same("effect") && is_same("timeAdded") {
            let taint = new.as_object_mut().map(|new| new.object_mut("spec"));
            if let Some(spec) = taint {
                spec.object_mut("taint")
                    .insert("timeAdded", Time(cx.now).text());
            }
        }
    }

    fn validate(&self, new: &View<'_, DeviceTaintRule>, _: &Context<'_>, errors: &mut Errors) {
        validate_spec(&new.spec, None, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, DeviceTaintRule>,
        old: &View<'_, DeviceTaintRule>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part != Part::Status {
            return validate_spec(&new.spec, Some(&old.spec), errors);
        }

        let found = new.tree.at(&["status", "conditions"]);
        let found = found.and_then(Value::as_array).unwrap_or_default();
        let at = Path::Root.field("status.conditions");
        conditions::validate(found, &at, errors);
        if found.len() > MOST_CONDITIONS {
            errors.push(FieldError::too_many(&at, found.len(), MOST_CONDITIONS));
        }
    }
}

fn validate_spec(
    spec: &DeviceTaintRuleSpec,
    old: Option<&DeviceTaintRuleSpec>,
    errors: &mut Errors,
) {
    if let Some(selector) = &spec.device_selector {
        let at = SPEC.field("deviceSelector");
        if let Some(driver) = &selector.driver {
            validate_driver_name(driver, &at.field("driver"), errors);
        }
        if let Some(pool) = &selector.pool {
            validate_pool_name(pool, &at.field("pool"), errors);
        }
        if let Some(device) = &selector.device {
            refuse(&at.field("device"), device, dns1123_label(device), errors);
        }
    }

    let (taint, at) = (&spec.taint, SPEC.field("taint"));
    refuse(
        &at.field("key"),
        &taint.key,
        qualified_name(&taint.key),
        errors,
    );
    let value = text(&taint.value);
    refuse(&at.field("value"), value, label_value(value), errors);
    if old.is_some_and(|old| old.taint.effect == taint.effect) {
        return;
    }
    let at = at.field("effect");
    match taint.effect.as_str() {
        "" => errors.push(FieldError::required(&at, "")),
        effect => validate_one_of(effect, &EFFECTS, &at, errors),
    }
}

fn print_row(rule: &DeviceTaintRule, now: Timestamp) -> Row {
    let taint = &rule.spec.taint;
    let added = taint.time_added.as_ref();
    row![
        cells::name(&rule.metadata),
        taint.key.as_str(),
        text(&taint.value),
        taint.effect.as_str(),
        added.map_or_else(String::new, |time| cells::since(Some(time), now)),
        cells::age(&rule.metadata, now)
    ]
}
