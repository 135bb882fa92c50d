//! CSIDriver: the capabilities and requirements of a driver.

use std::collections::BTreeSet;

use coracle_api::field_error::FieldError;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value};
use k8s_openapi::api::storage::v1::{CSIDriver, TokenRequest};

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{internal, items, validate_one_of, validate_unchanged};

const SHORTEST_TOKEN: i64 = 600;
const LONGEST_TOKEN: i64 = 1 << 32;

const TOKENS_IN_SECRETS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &CsiDrivers,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct CsiDrivers;

impl Strategy for CsiDrivers {
    type Object = CSIDriver;

    fn prepare_update(&self, new: &mut Value, old: &Value, _: &Context<'_>) {
        // Counted from the first change on, though it is not set on create.
        if new.get("spec") != old.get("spec") {
            new.meta_mut().set_generation(old.meta().generation() + 1);
        }
    }

    fn validate(&self, new: &View<'_, CSIDriver>, _: &Context<'_>, errors: &mut Errors) {
        let spec = &new.spec;
        let present = [
            // The name is upstream's.
            ("attachedRequired", spec.attach_required),
            ("podInfoOnMount", spec.pod_info_on_mount),
            ("storageCapacity", spec.storage_capacity),
        ];

        for (name, _) in present.into_iter().filter(|(_, flag)| flag.is_none()) {
            errors.push(FieldError::required(&SPEC.field(name), ""));
        }

        if let Some(policy) = &spec.fs_group_policy {
            let known = ["File", "None", "ReadWriteOnceWithFSType"];
            validate_one_of(policy, &known, &SPEC.field("fsGroupPolicy"), errors);
        }

        let tokens = items(&spec.token_requests);
        validate_tokens(tokens, &SPEC.field("tokenRequests"), errors);

        for mode in items(&spec.volume_lifecycle_modes) {
            let known = ["Persistent", "Ephemeral"];
            if !known.contains(&mode.as_str()) {
                errors.push(FieldError::not_supported(
                    &SPEC.field("volumeLifecycleModes"),
                    mode,
                    &known,
                ));
            }
        }

        if spec.se_linux_mount.is_none() {
            errors.push(FieldError::required(&SPEC.field("seLinuxMount"), ""));
        }

        if let Some(period) = spec
            .node_allocatable_update_period_seconds
            .filter(|period| *period < 10)
        {
            let at = SPEC.field("nodeAllocatableUpdatePeriodSeconds");
            let detail = "must be greater than or equal to 10 seconds";
            errors.push(FieldError::invalid(&at, period.to_string(), detail));
        }

        if let Some(flag) = spec
            .service_account_token_in_secrets
            .filter(|_| tokens.is_empty())
        {
            let at = SPEC.field("serviceAccountTokenInSecrets");
            let detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified";
            errors.push(FieldError::invalid(&at, flag.to_string(), detail));
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, CSIDriver>,
        old: &View<'_, CSIDriver>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate(new, cx, errors);

        for (name, shown) in [
            ("attachRequired", "attachedRequired"),
            ("volumeLifecycleModes", "volumeLifecycleModes"),
        ] {
            let found = |driver: &'_ Value| driver.at(&["spec", name]).cloned();
            let (now, before) = (found(new.tree), found(old.tree));
            validate_unchanged(
                now.as_ref(),
                before.as_ref(),
                &SPEC.field(shown),
                "null",
                errors,
            );
        }
    }

    fn warnings(
        &self,
        new: &View<'_, CSIDriver>,
        old: Option<&View<'_, CSIDriver>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let changed = old.is_none_or(|old| old.spec.token_requests != new.spec.token_requests);
        let asks = !items(&new.spec.token_requests).is_empty();
        match changed && asks && new.spec.service_account_token_in_secrets.is_none() {
            true => vec![TOKENS_IN_SECRETS.to_owned()],
            false => Vec::new(),
        }
    }
}

fn validate_tokens(tokens: &[TokenRequest], at: &Path<'_>, errors: &mut Errors) {
    let mut audiences = BTreeSet::new();
    for (index, token) in tokens.iter().enumerate() {
        let at = at.index(index);
        if !audiences.insert(&token.audience) {
            errors.push(FieldError::duplicate(
                &at.field("audience"),
                internal::text(&token.audience),
            ));
            continue;
        }

        let Some(seconds) = token.expiration_seconds else {
            continue;
        };
        let detail = match seconds {
            _ if seconds < SHORTEST_TOKEN => "may not specify a duration less than 10 minutes",
            _ if seconds > LONGEST_TOKEN => "may not specify a duration larger than 2^32 seconds",
            _ => continue,
        };

        errors.push(FieldError::invalid(
            &at.field("expirationSeconds"),
            seconds.to_string(),
            detail,
        ));
    }
}

fn print_row(driver: &CSIDriver, now: Timestamp) -> Row {
    let spec = &driver.spec;
    let audiences = spec.token_requests.as_ref().map(|requests| {
        requests
            .iter()
            .map(|request| request.audience.as_str())
            .collect::<Vec<_>>()
            .join(",")
    });

    let modes = spec
        .volume_lifecycle_modes
        .as_deref()
        .unwrap_or_default()
        .join(",");

    row![
        cells::name(&driver.metadata),
        spec.attach_required.unwrap_or(true),
        spec.pod_info_on_mount.unwrap_or_default(),
        spec.storage_capacity.unwrap_or_default(),
        audiences.unwrap_or_else(|| cells::UNSET.to_string()),
        spec.requires_republish.unwrap_or_default(),
        cells::or(Some(&modes), cells::NONE),
        cells::age(&driver.metadata, now)
    ]
}
