//! Lease: the holder of something, and until when.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, names};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{text, validate_not_negative};
use crate::{OwnMetadata, Part};

pub(super) const OLDEST: &str = "OldestEmulationVersion";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Leases,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct Leases;

impl Strategy for Leases {
    type Object = Lease;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata {
            known_finalizers: false,
            ..OwnMetadata::named(names::dns1123_subdomain)
        }
    }

    fn validate(&self, new: &View<'_, Lease>, _: &Context<'_>, errors: &mut Errors) {
        if let Some(spec) = &new.spec {
            validate_spec(spec, errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, Lease>,
        _: &View<'_, Lease>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate(new, cx, errors);
    }
}

fn validate_spec(spec: &LeaseSpec, errors: &mut Errors) {
    if let Some(seconds) = spec.lease_duration_seconds.filter(|seconds| *seconds <= 0) {
        let at = SPEC.field("leaseDurationSeconds");
        errors.push(FieldError::invalid(
            &at,
            seconds.to_string(),
            "must be greater than 0",
        ));
    }

    validate_not_negative(
        spec.lease_transitions.unwrap_or_default().into(),
        &SPEC.field("leaseTransitions"),
        errors,
    );

    if let Some(strategy) = &spec.strategy {
        // The path has the field twice, as in upstream.
        validate_strategy(strategy, &SPEC.field("strategy").field("strategy"), errors);
    }

    if !text(&spec.preferred_holder).is_empty() && text(&spec.strategy).is_empty() {
        let detail = "may only be specified if `strategy` is defined";
        errors.push(FieldError::forbidden(
            &SPEC.field("preferredHolder"),
            detail,
        ));
    }
}

pub(super) fn validate_strategy(strategy: &str, at: &Path<'_>, errors: &mut Errors) {
    if strategy.contains('/') {
        refuse(at, strategy, names::qualified_name(strategy), errors);
    } else if strategy != OLDEST {
        errors.push(FieldError::not_supported(at, strategy, &[OLDEST]));
    }
}

fn print_row(lease: &Lease, now: Timestamp) -> Row {
    let holder = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.holder_identity.as_deref());
    row![
        cells::name(&lease.metadata),
        holder.unwrap_or_default(),
        cells::age(&lease.metadata, now)
    ]
}
