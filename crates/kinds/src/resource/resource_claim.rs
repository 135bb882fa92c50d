//! ResourceClaim: the devices that a pod needs. Its spec never changes.

use coracle_api::Value;
use coracle_api::time::Timestamp;
use futures_util::future::BoxFuture;
use k8s_openapi::api::resource::v1::ResourceClaim;

use super::{authorization, claim_spec, claim_status};
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::{age, name};
use crate::strategy::{Context, Errors, SPEC, Settle, Strategy, View};
use crate::validate::internal_form;
use crate::{ApiError, OwnMetadata, Part, keep_metadata};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ResourceClaims,
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

struct ResourceClaims;

impl Strategy for ResourceClaims {
    type Object = ResourceClaim;

    /// Administrative access is checked before the metadata; an update validates the metadata as
    /// new first.
    fn own_metadata(&self, part: Part) -> OwnMetadata {
        OwnMetadata {
            on_create: false,
            on_update: part == Part::Status,
            ..OwnMetadata::named(self.name_rule())
        }
    }

    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        let old = old.filter(|_| cx.part == Part::Status)?;
        Some(Box::pin(async move {
            let errors = authorization::check(new, old, cx).await;
            if errors.is_empty() {
                Ok(None)
            } else {
                Err(ApiError::invalid(cx.kind, new.meta().name(), &errors))
            }
        }))
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
            claim_status::remove_deallocated(new, old);
        }
    }

    fn validate(&self, new: &View<'_, ResourceClaim>, cx: &Context<'_>, errors: &mut Errors) {
        let claim = new.spec.devices.clone().unwrap_or_default();
        claim_spec::validate_admin_access(&claim, cx, errors);
        self.own_metadata(cx.part).validate(new.tree, cx, errors);
        claim_spec::validate(&claim, &SPEC.field("devices"), errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ResourceClaim>,
        old: &View<'_, ResourceClaim>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        if cx.part == Part::Status {
            claim_status::validate_admin_access(new, old, cx, errors);
            return claim_status::validate(new, old, errors);
        }

        let metadata = self.own_metadata(cx.part);
        metadata.validate(new.tree, cx, errors);
        metadata.validate_change(new.tree, old.tree, errors);
        let (spec, before) = (new.tree.get("spec"), old.tree.get("spec"));
        internal_form::validate_immutable(spec, before, &claim_spec::FORM, &SPEC, errors);
    }
}

fn print_row(claim: &ResourceClaim, now: Timestamp) -> Row {
    row![
        name(&claim.metadata),
        state(claim).join(","),
        age(&claim.metadata, now)
    ]
}

fn state(claim: &ResourceClaim) -> Vec<&'static str> {
    let status = claim.status.as_ref();
    let deleted = claim.metadata.deletion_timestamp.is_some();
    let allocated = status.is_some_and(|status| status.allocation.is_some());
    let reserved = allocated
        && status
            .iter()
            .flat_map(|status| status.reserved_for.iter().flatten())
            .count()
            > 0;

    let states = [
        ("deleted", deleted),
        ("pending", !allocated && !deleted),
        ("allocated", allocated),
        ("reserved", reserved),
    ];

    states
        .into_iter()
        .filter(|(_, holds)| *holds)
        .map(|(state, _)| state)
        .collect()
}
