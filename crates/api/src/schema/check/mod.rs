//! Validates a schema itself, before its definition is accepted. The texts and their order are
//! upstream's.
//!
//! Three passes: `structural`: every value has one type, declared outside of logic, and logic only
//! restricts. `defaults`: every default is valid under its own schema. `openapi`: which parts of
//! OpenAPI are allowed where, and the rules of list and map types. As in upstream, the second is
//! skipped if the first fails.

mod conversion;
mod defaults;
mod field_path;
mod openapi;
mod structural;

pub use field_path::{FieldPathError, field_path, field_path_names};

use std::cell::Cell;

use super::build::{Purpose, build};
use super::{Pattern, Props};
use crate::Value;
use crate::field_error::{FieldError, FieldErrors, as_json};
use crate::value::Path;

/// Which checks apply to a schema. An update skips checks that the old definition failed already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demands {
    pub structural: bool,
    pub pruned_defaults: bool,
    pub known_types: bool,
    pub atomic_sets: bool,
    pub usable_keys: bool,
}

impl Demands {
    /// Checks for a new definition.
    pub const ALL: Demands = Demands {
        structural: true,
        pruned_defaults: true,
        known_types: true,
        atomic_sets: true,
        usable_keys: true,
    };

    /// Checks for a definition whose versions had these schemas before.
    pub fn after(old: &[Props<'_>]) -> Demands {
        let none = |fault: fn(Props<'_>) -> bool| !old.iter().any(|props| fault(*props));
        Demands {
            structural: none(|props| !is_structural(props)),
            pruned_defaults: none(defaults::any_unpruned),
            known_types: none(|props| openapi::any(props, &openapi::has_unknown_type)),
            atomic_sets: none(|props| openapi::any(props, &openapi::has_set_of_parts)),
            usable_keys: none(|props| openapi::any(props, &openapi::has_unusable_keys)),
        }
    }
}

/// What is wrong with a schema.
#[derive(Debug, Default)]
pub struct Faults {
    pub errors: FieldErrors,
    /// How many of the errors say where parts of OpenAPI are used wrongly; they are the last.
    pub openapi: usize,
    /// The schema is structural, so that its rules have types.
    pub is_structural: bool,
    /// It is, and its defaults are valid.
    pub has_valid_defaults: bool,
}

/// Validates the `openAPIV3Schema` at `at`. `with_status`: the status subresource is enabled.
pub fn schema(props: Props<'_>, with_status: bool, demands: Demands, at: &Path<'_>) -> Faults {
    let mut errors = FieldErrors::default();
    let (mut is_structural, mut has_valid_defaults) = (false, false);
    if with_status {
        errors.extend(at_root_with_status(props, at));
    }

    if props.flag("nullable") {
        errors.push(FieldError::forbidden(
            &at.field("nullable"),
            "nullable cannot be true at the root",
        ));
    }

    let mut fault = None;
    if demands.structural {
        fault = conversion::fault(props);

        if fault.is_none() {
            let before = errors.len();
            errors.extend(structural::check(props, at));
            // Patterns compile at this point, so there is a schema.
            if errors.len() == before
                && let Ok(compiled) = build(props, Purpose::Defaults)
            {
                let invalid = defaults::check(&compiled, demands.pruned_defaults, at);
                is_structural = true;
                has_valid_defaults = invalid.is_empty();
                errors.extend(invalid);
            }
        }
    }

    let before = errors.len();
    errors.extend(openapi::check(props, demands, at));
    let openapi = errors.len() - before;

    if let Some(fault) = fault.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid_str(at, "", fault));
    }

    Faults {
        errors,
        openapi,
        is_structural,
        has_valid_defaults,
    }
}

/// The weight of all patterns of a schema together ([`super::Pattern::weight`]); invalid ones have
/// none.
pub fn pattern_weight(props: Props<'_>) -> usize {
    let sum = Cell::new(0_usize);
    openapi::any(props, &|props: Props<'_>| {
        let text = props.text("pattern");
        if !text.is_empty() {
            let weight = Pattern::new(text).map_or(0, |pattern| pattern.weight());
            sum.set(sum.get().saturating_add(weight));
        }
        // A sum that exceeds the limit need not be exact.
        sum.get() > MOST_PATTERN_WEIGHT
    });
    sum.get()
}

/// Maximum weight of the patterns of one definition together.
pub const MOST_PATTERN_WEIGHT: usize = 4_000_000;

/// Whether a schema is structural at all.
pub fn is_structural(props: Props<'_>) -> bool {
    conversion::fault(props).is_none() && structural::check(props, &Path::Root).is_empty()
}

/// The schema of the status is extracted from the root, so the root must not contain anything that
/// would be lost.
fn at_root_with_status(props: Props<'_>, at: &Path<'_>) -> Option<FieldError> {
    const BEFORE_TYPE: [&str; 3] = ["id", "$schema", "$ref"];

    let all = || {
        Value::Object(
            props
                .set_members()
                .map(|(name, value)| (name.into(), value.clone()))
                .collect(),
        )
    };

    let lost = || {
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            ALLOWED_WITH_STATUS.map(|(name, _)| name).join(" ")
        );
        FieldError::invalid(at, as_json(&all()), detail)
    };

    if props
        .set_members()
        .any(|(name, _)| BEFORE_TYPE.contains(&name))
    {
        return Some(lost());
    }

    let of = props.text("type");
    if !of.is_empty() && of != "object" {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(FieldError::invalid_str(&at.field("type"), of, detail));
    }

    let allowed = |name: &str| ALLOWED_WITH_STATUS.iter().any(|(_, known)| *known == name);
    props
        .set_members()
        .any(|(name, _)| !allowed(name))
        .then(lost)
}

/// Upstream's name for a field, as in its message, and its JSON name.
const ALLOWED_WITH_STATUS: [(&str, &str); 22] = [
    ("Description", "description"),
    ("Type", "type"),
    ("Format", "format"),
    ("Title", "title"),
    ("Maximum", "maximum"),
    ("ExclusiveMaximum", "exclusiveMaximum"),
    ("Minimum", "minimum"),
    ("ExclusiveMinimum", "exclusiveMinimum"),
    ("MaxLength", "maxLength"),
    ("MinLength", "minLength"),
    ("Pattern", "pattern"),
    ("MaxItems", "maxItems"),
    ("MinItems", "minItems"),
    ("UniqueItems", "uniqueItems"),
    ("MultipleOf", "multipleOf"),
    ("Required", "required"),
    ("Items", "items"),
    ("Properties", "properties"),
    ("ExternalDocs", "externalDocs"),
    ("Example", "example"),
    (
        "XPreserveUnknownFields",
        "x-kubernetes-preserve-unknown-fields",
    ),
    ("XValidations", "x-kubernetes-validations"),
];
