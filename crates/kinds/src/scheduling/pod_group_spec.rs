//! What PodGroups and the templates of them in Workloads have in common.

use std::collections::BTreeSet;

use coracle_api::field_error::{FieldError, refuse, shown};
use coracle_api::gates::is_on;
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::names::{dns1123_label, dns1123_subdomain, qualified_name};
use coracle_api::{Path, typed};
use k8s_openapi::api::scheduling::v1alpha2::{
    PodGroupResourceClaim, PodGroupSchedulingConstraints, PodGroupSchedulingPolicy,
};
use serde::Serialize;

use crate::strategy::Errors;
use crate::validate::{text, validate_one_of, validate_required};

pub(super) const MOST_CLAIMS: usize = 4;
const MOST_TOPOLOGIES: usize = 1;
const HIGHEST_PRIORITY: i32 = 1_000_000_000;

/// The parts of a group that a feature adds.
pub(super) struct Preemption<'a> {
    pub(super) disruption_mode: Option<&'a str>,
    pub(super) class_name: &'a str,
    pub(super) priority: Option<i32>,
}

/// An error without the value.
pub(super) fn immutable(at: &Path<'_>, errors: &mut Errors) {
    errors.push(FieldError::invalid(at, "null".to_owned(), IMMUTABLE));
}

/// At least one of several members, and no two.
fn validate_union(members: &[(&str, bool)], at: &Path<'_>, errors: &mut Errors) {
    let quoted = |name: &str| format!("`{name}`");
    let all: Vec<String> = members.iter().map(|(name, _)| quoted(name)).collect();
    let set = members.iter().filter(|(_, is_set)| *is_set);
    let set: Vec<&str> = set.map(|(name, _)| *name).collect();

    if set.len() > 1 {
        let why = format!("must specify exactly one of: {}", all.join(", "));
        let found = format!("{{{}}}", set.join(", "));
        errors.push(FieldError::invalid_str(at, &found, why));
    } else if set.is_empty() {
        let why = format!("must specify one of: {}", all.join(", "));
        errors.push(FieldError::invalid_str(at, "", why));
    }
}

pub(super) fn validate_policy(
    policy: &PodGroupSchedulingPolicy,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let members = [
        ("basic", policy.basic.is_some()),
        ("gang", policy.gang.is_some()),
    ];
    validate_union(&members, at, errors);

    if let Some(gang) = &policy.gang {
        let at = at.field("gang");
        let at = at.field("minCount");
        match gang.min_count {
            0 => errors.push(FieldError::required(&at, "")),
            count if count < 0 => {
                let why = "must be greater than or equal to 1";
                errors.push(FieldError::invalid(&at, count.to_string(), why));
            }
            _ => {}
        }
    }
}

pub(super) fn validate_constraints(
    constraints: Option<&PodGroupSchedulingConstraints>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let Some(constraints) = constraints else {
        return;
    };
    if !is_on("TopologyAwareWorkloadScheduling") {
        return errors.push(FieldError::forbidden(at, ""));
    }

    let topology = crate::validate::items(&constraints.topology);
    let at = at.field("topology");
    if topology.len() > MOST_TOPOLOGIES {
        return errors.push(FieldError::too_many(&at, topology.len(), MOST_TOPOLOGIES));
    }
    for (index, constraint) in topology.iter().enumerate() {
        let at = at.index(index);
        validate_required(&constraint.key, qualified_name, &at.field("key"), errors);
    }
}

pub(super) fn validate_claims(
    claims: &[PodGroupResourceClaim],
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if claims.len() > MOST_CLAIMS {
        return errors.push(FieldError::too_many(at, claims.len(), MOST_CLAIMS));
    }

    validate_unique(claims, |claim| &claim.name, at, errors);
    for (index, claim) in claims.iter().enumerate() {
        let at = at.index(index);
        let (one, other) = (
            &claim.resource_claim_name,
            &claim.resource_claim_template_name,
        );
        let members = [
            ("resourceClaimName", one.is_some()),
            ("resourceClaimTemplateName", other.is_some()),
        ];
        validate_union(&members, &at, errors);
        validate_required(&claim.name, dns1123_label, &at.field("name"), errors);
        for ((field, is_set), name) in members.into_iter().zip([one, other]) {
            if is_set {
                let name = text(name);
                refuse(&at.field(field), name, dns1123_subdomain(name), errors);
            }
        }
    }
}

/// No two elements of a list have the same name.
pub(super) fn validate_unique<'n, T: Serialize>(
    elements: &'n [T],
    name: impl Fn(&'n T) -> &'n str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    let mut seen = BTreeSet::new();
    for (index, element) in elements.iter().enumerate() {
        if !seen.insert(name(element)) {
            let shown = typed::to_tree(element).map_or_else(|_| String::new(), |tree| shown(&tree));
            errors.push(FieldError::duplicate(&at.index(index), shown));
        }
    }
}

impl Preemption<'_> {
    pub(super) fn validate(&self, at: &Path<'_>, errors: &mut Errors) {
        let is_on = is_on("WorkloadAwarePreemption");
        let forbidden = |is_set: bool, name: &str, errors: &mut Errors| {
            if is_set && !is_on {
                errors.push(FieldError::forbidden(&at.field(name), ""));
            }
            is_set && is_on
        };

        let (mode, name) = (self.disruption_mode, "disruptionMode");
        if forbidden(mode.is_some(), name, errors) {
            let modes = &["Pod", "PodGroup"];
            validate_one_of(mode.unwrap_or_default(), modes, &at.field(name), errors);
        }

        let (class, name) = (self.class_name, "priorityClassName");
        if forbidden(!class.is_empty(), name, errors) {
            refuse(&at.field(name), class, dns1123_subdomain(class), errors);
        }

        let (priority, name) = (self.priority, "priority");
        if forbidden(priority.is_some(), name, errors)
            && let Some(priority) = priority.filter(|priority| *priority > HIGHEST_PRIORITY)
        {
            let why = format!("must be less than or equal to {HIGHEST_PRIORITY}");
            errors.push(FieldError::invalid(
                &at.field(name),
                priority.to_string(),
                why,
            ));
        }
    }
}
