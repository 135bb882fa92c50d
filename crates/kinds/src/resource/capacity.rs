//! The capacity of a device, and how much of it a claim may ask for.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::quantity::Quantity;
use k8s_openapi::api::resource::v1::{
    CapacityRequestPolicy, CapacityRequestPolicyRange, DeviceCapacity,
};

use super::validate_list;
use crate::strategy::Errors;
use crate::validate::items;
use crate::validate::resources::{read, shown};

const MOST_OPTIONS: usize = 10;

/// Validates a capacity. `shared`: several claims may take a share of it.
pub(super) fn validate(
    capacity: &DeviceCapacity,
    shared: bool,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(policy) = &capacity.request_policy else {
        return;
    };
    let at = at.field("requestPolicy");
    if !shared {
        let why = "allowMultipleAllocations must be true";
        return errors.push(FieldError::forbidden(&at, why));
    }

    let values = items(&policy.valid_values);
    match &policy.valid_range {
        Some(_) if !values.is_empty() => {
            let why = "exactly one policy can be specified, cannot specify \"validValues\" and \"validRange\" at the same time";
            errors.push(FieldError::forbidden(&at, why));
        }
        None if values.is_empty() => {}
        range => validate_policy(policy, range.as_ref(), &read(&capacity.value), &at, errors),
    }
}

/// `most` is the whole capacity.
fn validate_policy(
    policy: &CapacityRequestPolicy,
    range: Option<&CapacityRequestPolicyRange>,
    most: &Quantity,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let (name, why) = match range {
        Some(_) => ("validRange", "required when validRange is defined"),
        None => ("validValues", "required when validValues is defined"),
    };
    let Some(default) = policy.default.as_ref().map(read) else {
        return errors.push(FieldError::required(&at.field("default"), why));
    };

    let at = at.field(name);
    match range {
        Some(range) => validate_range(range, &default, most, &at, errors),
        None => {
            let values: Vec<Quantity> = items(&policy.valid_values).iter().map(read).collect();
            validate_values(&values, &default, most, &at, errors);
        }
    }
}

fn validate_values(
    values: &[Quantity],
    default: &Quantity,
    most: &Quantity,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for (index, pair) in values.windows(2).enumerate() {
        if pair[0] > pair[1] {
            let why = "values must be sorted in ascending order";
            let at = at.index(index + 1);
            errors.push(FieldError::invalid(&at, shown(&pair[1]), why));
        }
    }

    validate_list(values, MOST_OPTIONS, at, errors, |option, at, errors| {
        if option > most {
            let why = format!("option is larger than capacity value: {most}");
            errors.push(FieldError::invalid(at, shown(option), why));
        }
    });

    // Where there are too many, upstream looks at none of them.
    let looked_at = if values.len() > MOST_OPTIONS {
        &[]
    } else {
        values
    };
    for (index, value) in looked_at.iter().enumerate() {
        if looked_at[..index]
            .iter()
            .any(|other| other.value() == value.value())
        {
            let shown = format!("\"{}\"", value.value());
            errors.push(FieldError::duplicate(&at.index(index), shown));
        }
    }

    if !looked_at.contains(default) {
        let why = "default value is not valid according to the requestPolicy";
        errors.push(FieldError::invalid(at, shown(default), why));
    }
}

fn validate_range(
    range: &CapacityRequestPolicyRange,
    default: &Quantity,
    most: &Quantity,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let place = at.field("min");
    if range.min.0.is_empty() {
        let why = "required when validRange is defined";
        return errors.push(FieldError::required(&place, why));
    }

    let min = read(&range.min);
    if min > *most {
        let why = format!("min is larger than capacity value: {most}");
        errors.push(FieldError::invalid(&place, shown(&min), why));
    }
    if *default < min {
        let why = format!("default is less than min: {min}");
        errors.push(FieldError::invalid(&place, shown(default), why));
    }

    let max = range.max.as_ref().map(read);
    if let Some(max) = &max {
        let at = at.field("max");
        if min > *max {
            let why = format!("min is larger than max: {max}");
            errors.push(FieldError::invalid(&at, shown(&min), why));
        }
        if max > most {
            let why = format!("max is larger than capacity value: {most}");
            errors.push(FieldError::invalid(&at, shown(max), why));
        }
        if default > max {
            let why = format!("default is more than max: {max}");
            errors.push(FieldError::invalid(&at, shown(default), why));
        }
    }

    if let Some(step) = range.step.as_ref().map(read) {
        let at = at.field("step");
        let mut first = min.clone();
        first.add(&step);
        if first > *most {
            let why = format!("one step {first} is larger than capacity value: {most}");
            errors.push(FieldError::invalid(&at, shown(&step), why));
        }

        for value in std::iter::once(default).chain(max.as_ref()) {
            validate_step(value, &min, &step, &at, errors);
        }
    }
}

/// Validates that a value is some steps above the minimum. No value is, if the step is none.
fn validate_step(
    value: &Quantity,
    min: &Quantity,
    step: &Quantity,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let above = i128::from(value.value()) - i128::from(min.value());
    if above.checked_rem(i128::from(step.value())) != Some(0) {
        let why = format!("value is not a multiple of a given step ({step}) from ({min})");
        errors.push(FieldError::invalid(at, shown(value), why));
    }
}
