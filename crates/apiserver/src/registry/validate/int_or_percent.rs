//! Numbers that may be shares: `3`, `25%`.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, names};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::not_negative;
use crate::registry::strategy::Errors;

/// Judges a number or share that is at least nothing.
pub(in crate::registry) fn not_negative_int_or_percent(
    found: &IntOrString,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    match found {
        IntOrString::Int(number) => not_negative((*number).into(), at, errors),
        IntOrString::String(text) => refuse(at, text, names::percent(text), errors),
    }
}

/// Judges a share that is at most the whole. A number may be anything.
pub(in crate::registry) fn not_more_than_all(found: &IntOrString, at: &Path<'_>, errors: &mut Errors) {
    if let IntOrString::String(text) = found
        && names::percent(text).is_empty()
        && text.trim_end_matches('%').trim_start_matches('0').parse::<u64>().unwrap_or_default() > 100
    {
        errors.push(FieldError::invalid_str(at, text, "must not be greater than 100%"));
    }
}
