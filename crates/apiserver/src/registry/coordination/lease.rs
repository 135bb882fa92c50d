//! Lease: who holds something, until when.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, names};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use crate::registry::strategy::{Context, Errors, Judged, SPEC, Strategy};
use crate::registry::validate::{not_negative, text};
use crate::registry::{OwnMetadata, Part};

const OLDEST: &str = "OldestEmulationVersion";

pub(in crate::registry) struct Leases;

impl Strategy for Leases {
    type Object = Lease;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            known_finalizers: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn validate(&self, new: &Judged<'_, Lease>, _: &Context<'_>, errors: &mut Errors) {
        if let Some(spec) = &new.spec {
            judge_spec(spec, errors);
        }
    }

    fn validate_update(
        &self,
        new: &Judged<'_, Lease>,
        _: &Judged<'_, Lease>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate(new, cx, errors);
    }
}

fn judge_spec(spec: &LeaseSpec, errors: &mut Errors) {
    if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
        let at = SPEC.field("leaseDurationSeconds");
        errors.push(FieldError::invalid(
            &at,
            seconds.to_string(),
            "must be greater than 0",
        ));
    }

    not_negative(
        spec.lease_transitions.unwrap_or_default().into(),
        &SPEC.field("leaseTransitions"),
        errors,
    );

    if let Some(strategy) = &spec.strategy {
        // The name stands there twice; upstream says so.
        judge_strategy(strategy, &SPEC.field("strategy").field("strategy"), errors);
    }

    if !text(&spec.preferred_holder).is_empty() && text(&spec.strategy).is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(
            &SPEC.field("preferredHolder"),
            detail,
        ));
    }
}

fn judge_strategy(strategy: &str, at: &Path<'_>, errors: &mut Errors) {
    if strategy.contains('/') {
        refuse(at, strategy, names::qualified_name(strategy), errors);
    } else if strategy != OLDEST {
        errors.push(FieldError::not_supported(at, strategy, &[OLDEST]));
    }
}
