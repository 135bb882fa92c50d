//! StorageClass: how volumes are provisioned. Only `allowedTopologies` and `allowVolumeExpansion`
//! may change.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, names, node_label};
use k8s_openapi::api::core::v1::{TopologySelectorLabelRequirement, TopologySelectorTerm};
use k8s_openapi::api::storage::v1::StorageClass;

use super::{validate_parameters, validate_provisioner};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::{internal, items, validate_immutable, validate_one_of};
use crate::{OwnMetadata, Part};

const TOPOLOGIES: Path<'static> = Path::Field(&Path::Root, "allowedTopologies");

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &StorageClasses,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct StorageClasses;

impl Strategy for StorageClasses {
    type Object = StorageClass;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn validate(&self, new: &View<'_, StorageClass>, _: &Context<'_>, errors: &mut Errors) {
        validate_provisioner(&new.provisioner, &Path::Root.field("provisioner"), errors);
        validate_parameters(&new.parameters, &Path::Root.field("parameters"), errors);

        if let Some(policy) = new
            .reclaim_policy
            .as_deref()
            .filter(|policy| !policy.is_empty())
        {
            validate_one_of(
                policy,
                &["Delete", "Retain"],
                &Path::Root.field("reclaimPolicy"),
                errors,
            );
        }

        let at = Path::Root.field("volumeBindingMode");
        match &new.volume_binding_mode {
            None => errors.push(FieldError::required(&at, "")),
            Some(mode) => {
                validate_one_of(mode, &["Immediate", "WaitForFirstConsumer"], &at, errors)
            }
        }

        validate_topologies(items(&new.allowed_topologies), errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, StorageClass>,
        old: &View<'_, StorageClass>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
        self.own_metadata(cx.part)
            .validate_change(new.tree, old.tree, errors);
        validate_immutable(new.tree, old.tree, &["parameters"], "null", errors);
        validate_immutable(new.tree, old.tree, &["provisioner"], "\"\"", errors);
        validate_immutable(new.tree, old.tree, &["reclaimPolicy"], "null", errors);
        validate_immutable(new.tree, old.tree, &["volumeBindingMode"], "null", errors);
    }

    fn warnings(
        &self,
        new: &View<'_, StorageClass>,
        _: Option<&View<'_, StorageClass>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        for (index, term) in items(&new.allowed_topologies).iter().enumerate() {
            for (place, expression) in items(&term.match_label_expressions).iter().enumerate() {
                if let Some(message) = node_label::deprecation(&expression.key) {
                    warnings.push(format!(
                        "allowedTopologies[{index}].matchLabelExpressions[{place}].key: {message}"
                    ));
                }
            }
        }
        warnings
    }
}

type Term<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

fn validate_topologies(terms: &[TopologySelectorTerm], errors: &mut Errors) {
    // Upstream starts with a list of as many empty terms as there are terms, so that an empty term
    // is a duplicate of each of them.
    let mut seen: Vec<Term<'_>> = terms.iter().map(|_| Term::new()).collect();
    for (index, term) in terms.iter().enumerate() {
        let at = TOPOLOGIES.index(index);
        let read = validate_term(term, &at.field("matchLabelExpressions"), errors);
        for _ in seen.iter().filter(|other| **other == read) {
            errors.push(FieldError::duplicate(
                &at.field("matchLabelExpressions"),
                internal::text(""),
            ));
        }

        seen.push(read);
    }
}

fn validate_term<'a>(
    term: &'a TopologySelectorTerm,
    at: &Path<'_>,
    errors: &mut Errors,
) -> Term<'a> {
    let mut read = Term::new();
    for (index, requirement) in items(&term.match_label_expressions).iter().enumerate() {
        let at = at.index(index);
        let values = validate_requirement(requirement, &at, errors);
        if read.insert(&requirement.key, values).is_some() {
            errors.push(FieldError::duplicate(
                &at.field("key"),
                internal::text(&requirement.key),
            ));
        }
    }

    read
}

fn validate_requirement<'a>(
    requirement: &'a TopologySelectorLabelRequirement,
    at: &Path<'_>,
    errors: &mut Errors,
) -> BTreeSet<&'a str> {
    let place = at.field("values");
    if requirement.values.is_empty() {
        errors.push(FieldError::required(&place, ""));
    }

    let mut values = BTreeSet::new();
    for (index, value) in requirement.values.iter().enumerate() {
        if !values.insert(value.as_str()) {
            errors.push(FieldError::duplicate(
                &place.index(index),
                internal::text(value),
            ));
        }
    }

    refuse(
        &at.field("key"),
        &requirement.key,
        names::qualified_name(&requirement.key),
        errors,
    );

    values
}

fn print_row(class: &StorageClass, now: Timestamp) -> Row {
    let marks = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ];

    row![
        cells::name_of_default(&class.metadata, &marks),
        class.provisioner.as_str(),
        class.reclaim_policy.as_deref().unwrap_or("Delete"),
        class.volume_binding_mode.as_deref().unwrap_or("Immediate"),
        class.allow_volume_expansion.unwrap_or_default(),
        cells::age(&class.metadata, now)
    ]
}
