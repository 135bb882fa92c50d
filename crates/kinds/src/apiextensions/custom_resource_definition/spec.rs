//! The spec of a definition, in the order in which upstream validates it.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::names::dns1123_subdomain;
use coracle_api::schema::Props;
use coracle_api::schema::check::{self, Demands};

use super::view::Definition;
use super::{columns, conversion, demands, names, subresources, versions};
use crate::strategy::{Errors, SPEC};
use crate::validate::validate_one_of;

/// What a definition must satisfy; a changed one no more than the old one did.
pub(super) struct Requirements {
    pub(super) schemas: Demands,
    /// Every version has a schema.
    every_schema: bool,
    known_reviews: bool,
}

impl Requirements {
    pub(super) fn of_new() -> Requirements {
        Requirements {
            schemas: Demands::ALL,
            every_schema: true,
            known_reviews: true,
        }
    }

    pub(super) fn after(old: &Definition<'_>) -> Requirements {
        Requirements {
            schemas: demands(old),
            every_schema: old.versions().all(|version| old.schema(version).is_some()),
            known_reviews: conversion::has_known_reviews(old.spec),
        }
    }
}

pub(super) fn validate(definition: &Definition<'_>, wanted: &Requirements, errors: &mut Errors) {
    let spec = definition.spec;
    validate_group(spec.text("group"), errors);

    match spec.text("scope") {
        "" => errors.push(FieldError::required(&SPEC.field("scope"), "")),
        scope => validate_one_of(
            scope,
            &["Cluster", "Namespaced"],
            &SPEC.field("scope"),
            errors,
        ),
    }

    let list = SPEC.field("versions");
    for (index, version) in definition.versions().enumerate() {
        if (wanted.every_schema || version.flag("served")) && definition.schema(version).is_none() {
            let version = list.index(index);
            errors.push(FieldError::required(
                &version.field("schema").field("openAPIV3Schema"),
                "",
            ));
        }
    }

    versions::validate(definition, wanted, errors);
    validate_patterns(definition, errors);
    let at = SPEC.field("names");
    names::require(definition.names(), &at, errors);
    names::validate(definition.names(), &at, errors);

    if let Some(shared) = spec.below("validation") {
        let with_status = definition
            .versions()
            .any(|version| definition.has_status(version));
        validate_schema(
            shared.get("openAPIV3Schema"),
            with_status,
            wanted,
            &SPEC.field("validation"),
            errors,
        );
    }

    subresources::validate(
        spec.below("subresources"),
        &SPEC.field("subresources"),
        errors,
    );

    columns::validate(spec, &SPEC, errors);
    columns::validate_selectable(spec, spec.below("validation"), &SPEC, errors);
    conversion::validate(
        spec.below("conversion"),
        wanted.known_reviews,
        &SPEC.field("conversion"),
        errors,
    );
}

/// All patterns are held in memory for as long as the definition exists, so their sum is bounded
/// too.
fn validate_patterns(definition: &Definition<'_>, errors: &mut Errors) {
    let mut left = check::MOST_PATTERN_WEIGHT;
    for props in definition.schemas() {
        match left.checked_sub(check::pattern_weight(props)) {
            Some(rest) => left = rest,
            None => {
                let detail = "patterns of all schemas are too large together";
                return errors.push(FieldError::forbidden(&SPEC.field("versions"), detail));
            }
        }
    }
}

fn validate_group(group: &str, errors: &mut Errors) {
    let at = SPEC.field("group");
    let messages = dns1123_subdomain(group);
    if group.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else if !messages.is_empty() {
        errors.push(FieldError::invalid_str(&at, group, messages.join(",")));
    } else if !group.contains('.') {
        errors.push(FieldError::invalid_str(
            &at,
            group,
            "should be a domain with at least one dot",
        ));
    }
}

/// Validates a schema, and its rules as far as this is possible without parsing CEL.
pub(super) fn validate_schema(
    schema: Option<&coracle_api::Value>,
    with_status: bool,
    wanted: &Requirements,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else {
        return;
    };
    let at = at.field("openAPIV3Schema");
    errors.extend(check::schema(
        Props::of(schema),
        with_status,
        wanted.schemas,
        &at,
    ));
}
