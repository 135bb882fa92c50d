//! Which requests a webhook, policy or binding is for.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::selector::{self, Values};
use coracle_api::{Path, names};
use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, NamedRuleWithOperations, RuleWithOperations,
};

use crate::strategy::Errors;
use crate::validate::{internal, items, validate_one_of};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Operations with an object to change: all but DELETE.
const CHANGING: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];

pub(super) const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
pub(super) const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];

pub(super) fn validate_rule(rule: &RuleWithOperations, at: &Path<'_>, errors: &mut Errors) {
    let operations = items(&rule.operations);
    let place = at.field("operations");
    if operations.is_empty() {
        errors.push(FieldError::required(&place, ""));
    }

    validate_wildcard_alone(operations, "operations", &place, errors);

    for (index, operation) in operations.iter().enumerate() {
        validate_one_of(operation, &OPERATIONS, &place.index(index), errors);
    }

    let groups = items(&rule.api_groups);
    if groups.is_empty() {
        errors.push(FieldError::required(&at.field("apiGroups"), ""));
    }

    validate_wildcard_alone(groups, "API groups", &at.field("apiGroups"), errors);
    let (versions, place) = (items(&rule.api_versions), at.field("apiVersions"));
    if versions.is_empty() {
        errors.push(FieldError::required(&place, ""));
    }

    validate_wildcard_alone(versions, "API versions", &place, errors);

    for (index, _) in versions
        .iter()
        .enumerate()
        .filter(|(_, version)| version.is_empty())
    {
        errors.push(FieldError::required(&place.index(index), ""));
    }

    validate_resources(items(&rule.resources), &at.field("resources"), errors);

    if let Some(scope) = &rule.scope {
        validate_one_of(
            scope,
            &["*", "Cluster", "Namespaced"],
            &at.field("scope"),
            errors,
        );
    }
}

/// A list with `*` has no other entries.
fn validate_wildcard_alone(found: &[String], what: &str, at: &Path<'_>, errors: &mut Errors) {
    if found.len() > 1 && found.iter().any(|item| item == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(
            at,
            internal::texts(Some(found)),
            detail,
        ));
    }
}

fn validate_resources(resources: &[String], at: &Path<'_>, errors: &mut Errors) {
    if resources.is_empty() {
        errors.push(FieldError::required(at, ""));
    }

    let (mut whole_resources, mut whole_subresources) = (BTreeSet::new(), BTreeSet::new());
    let mut plain = false;
    for (index, found) in resources.iter().enumerate() {
        let at = at.index(index);
        if found.is_empty() {
            errors.push(FieldError::required(&at, ""));
            continue;
        }

        let Some((resource, subresource)) = found.split_once('/') else {
            // Only the last one without a subresource counts, as upstream has it.
            plain = found != "*";
            continue;
        };

        let mut covered = |by: String| {
            let detail = format!("if '{by}' is present, must not specify {found}");
            errors.push(FieldError::invalid_str(&at, found, detail));
        };

        if whole_resources.contains(resource) {
            covered(format!("{resource}/*"));
        }
        if whole_subresources.contains(subresource) {
            covered(format!("*/{subresource}"));
        }

        if subresource == "*" {
            whole_resources.insert(resource);
        }
        if resource == "*" {
            whole_subresources.insert(subresource);
        }
    }

    let has = |wanted: &str| resources.iter().any(|found| found == wanted);
    let mut refuse = |detail: &str| {
        errors.push(FieldError::invalid(
            at,
            internal::texts(Some(resources)),
            detail,
        ));
    };

    if resources.len() > 1 && has("*/*") {
        refuse("if '*/*' is present, must not specify other resources");
    }

    if has("*") && plain {
        refuse("if '*' is present, must not specify other resources without subresources");
    }
}

/// Validates what a policy or a binding is for.
pub(super) fn validate_match(found: &MatchResources, at: &Path<'_>, errors: &mut Errors) {
    match &found.match_policy {
        None => errors.push(FieldError::required(&at.field("matchPolicy"), "")),
        Some(policy) => validate_one_of(policy, &MATCH_POLICIES, &at.field("matchPolicy"), errors),
    }

    let selectors = [
        ("namespaceSelector", &found.namespace_selector),
        ("objectSelector", &found.object_selector),
    ];

    for (name, found) in selectors {
        match found {
            None => errors.push(FieldError::required(&at.field(name), "")),
            Some(found) => {
                selector::validate(Some(found), Values::Validated, &at.field(name), errors)
            }
        }
    }

    let lists = [
        ("resourceRules", items(&found.resource_rules)),
        ("excludeResourceRules", items(&found.exclude_resource_rules)),
    ];

    for (name, list) in lists {
        for (index, rule) in list.iter().enumerate() {
            validate_named(rule, &at.field(name).index(index), errors);
        }
    }
}

/// Validates operations where the object is to be mutated.
pub(super) fn validate_changing(found: &MatchResources, at: &Path<'_>, errors: &mut Errors) {
    for operation in items(&found.resource_rules)
        .iter()
        .flat_map(|rule| items(&rule.operations))
    {
        validate_one_of(
            operation,
            &CHANGING,
            &at.field("resourceRules.operations"),
            errors,
        );
    }
}

fn validate_named(rule: &NamedRuleWithOperations, at: &Path<'_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for (index, name) in items(&rule.resource_names).iter().enumerate() {
        let at = at.field("resourceNames");
        refuse(
            &at.index(index),
            name,
            names::path_segment_name(name),
            errors,
        );

        if !seen.insert(name) {
            errors.push(FieldError::duplicate(
                &at.index(index),
                internal::text(name),
            ));
        }
    }

    let unnamed = RuleWithOperations {
        api_groups: rule.api_groups.clone(),
        api_versions: rule.api_versions.clone(),
        operations: rule.operations.clone(),
        resources: rule.resources.clone(),
        scope: rule.scope.clone(),
    };
    validate_rule(&unnamed, at, errors);
}
