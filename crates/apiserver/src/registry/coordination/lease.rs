//! Lease: who holds something, until when.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::{Path, Value, names};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use crate::registry::strategy::{Context, Errors, Judged, SPEC, Strategy};
use crate::registry::validate::{not_negative, text};
use crate::registry::{OwnMetadata, Part};

/// Fields of coordinated leader election, which is off: taken away unless they are in use.
const GATED: [&str; 2] = ["strategy", "preferredHolder"];

const OLDEST: &str = "OldestEmulationVersion";

pub(in crate::registry) struct Leases;

impl Strategy for Leases {
    type Object = Lease;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata { known_finalizers: false, ..OwnMetadata::named(names::dns1123_subdomain) }
    }

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        drop_gated(new, None);
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, _: &Context<'_>) {
        drop_gated(new, Some(old));
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

fn drop_gated(new: &mut Value, old: Option<&Value>) {
    let Some(spec) = new.as_object_mut().and_then(|lease| lease.get_mut("spec")?.as_object_mut()) else {
        return;
    };
    for name in GATED {
        if old.and_then(|old| old.at(&["spec", name])).is_none() {
            spec.remove(name);
        }
    }
}

fn judge_spec(spec: &LeaseSpec, errors: &mut Errors) {
    if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
        let at = SPEC.field("leaseDurationSeconds");
        errors.push(FieldError::invalid(&at, seconds.to_string(), "must be greater than 0"));
    }
    not_negative(spec.lease_transitions.unwrap_or_default().into(), &SPEC.field("leaseTransitions"), errors);
    if let Some(strategy) = &spec.strategy {
        // The name stands there twice; upstream says so.
        judge_strategy(strategy, &SPEC.field("strategy").field("strategy"), errors);
    }
    if !text(&spec.preferred_holder).is_empty() && text(&spec.strategy).is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(&SPEC.field("preferredHolder"), detail));
    }
}

fn judge_strategy(strategy: &str, at: &Path<'_>, errors: &mut Errors) {
    if strategy.contains('/') {
        refuse(at, strategy, names::qualified_name(strategy), errors);
    } else if strategy != OLDEST {
        errors.push(FieldError::not_supported(at, strategy, &[OLDEST]));
    }
}
