//! The spec of a definition, in the order in which upstream validates it.

use std::collections::BTreeSet;

use coracle_api::field_error::FieldError;
use coracle_api::names::dns1123_subdomain;
use coracle_api::schema::Props;
use coracle_api::schema::check::{self, Demands};
use coracle_api::{Map, Path};

use super::view::Definition;
use super::{columns, conversion, demands, names, rules, subresources, versions};
use crate::strategy::{Errors, SPEC};
use crate::validate::validate_one_of;

/// What a definition must satisfy; a changed one no more than the old one did.
pub(super) struct Requirements {
    pub(super) schemas: Demands,
    /// Every version has a schema.
    every_schema: bool,
    known_reviews: bool,
    /// Versions whose schemas are as they were.
    unchanged: BTreeSet<String>,
}

impl Requirements {
    pub(super) fn of_new() -> Requirements {
        Requirements {
            schemas: Demands::ALL,
            every_schema: true,
            known_reviews: true,
            unchanged: BTreeSet::new(),
        }
    }

    pub(super) fn after(old: &Definition<'_>, new: &Definition<'_>) -> Requirements {
        Requirements {
            schemas: demands(old),
            every_schema: old.versions().all(|version| old.schema(version).is_some()),
            known_reviews: conversion::has_known_reviews(old.spec),
            unchanged: unchanged(old, new),
        }
    }

    /// Rules of an unchanged schema may cost as much as they do.
    pub(super) fn any_cost(&self, version: &str) -> bool {
        self.unchanged.contains(version)
    }
}

fn unchanged(old: &Definition<'_>, new: &Definition<'_>) -> BTreeSet<String> {
    let same = |version: &&Map| {
        let before = old
            .versions()
            .find(|before| before.text("name") == version.text("name"));
        before.is_some_and(|before| old.schema(before) == new.schema(version))
    };
    new.versions()
        .filter(same)
        .map(|version| version.text("name").to_owned())
        .collect()
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
            wanted.any_cost(spec.text("version")),
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

/// Validates a schema and its rules. `any_cost`: the old definition has the same.
pub(super) fn validate_schema(
    schema: Option<&coracle_api::Value>,
    with_status: bool,
    any_cost: bool,
    wanted: &Requirements,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else {
        return;
    };
    let at = at.field("openAPIV3Schema");
    let props = Props::of(schema);
    let mut faults = check::schema(props, with_status, wanted.schemas, &at);
    rules::validate(props, &mut faults, any_cost, &at);
    errors.extend(faults.errors);
}
