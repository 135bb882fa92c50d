//! Volumes: each has a name and one source.

mod cloud;
mod ephemeral;
mod files;
mod iqn;
mod local;
mod network;
mod persistent;
mod projected;
mod source;

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use coracle_api::go_text::Quoted;
use coracle_api::names::dns1123_label;
use k8s_openapi::api::core::v1::Volume;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::core::pod::options::Options;
use crate::strategy::Errors;
use crate::validate::{items, text, validate_required as validate_required_name};
pub(crate) use persistent::validate_persistent_volume_source;
pub(in crate::core::pod) use projected::has_reserved_token_path;

/// Validates volumes; returns the valid ones.
pub(super) fn validate_volumes<'v>(
    volumes: &'v [Volume],
    metadata: Option<&ObjectMeta>,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) -> BTreeMap<&'v str, &'v Volume> {
    let pod = metadata
        .map(|metadata| text(&metadata.name))
        .filter(|name| !name.is_empty());
    let claims: BTreeSet<String> = pod.map_or_else(BTreeSet::new, |pod| {
        let made = volumes.iter().filter(|volume| volume.ephemeral.is_some());
        made.map(|volume| format!("{pod}-{}", volume.name))
            .collect()
    });

    let mut good = BTreeMap::new();
    for (index, volume) in volumes.iter().enumerate() {
        let at = at.index(index);
        let before = errors.len();
        source::validate_source(volume, pod, &at, options, errors);
        validate_required_name(&volume.name, dns1123_label, &at.field("name"), errors);

        if good.contains_key(volume.name.as_str()) {
            errors.push(FieldError::duplicate(
                &at.field("name"),
                Quoted(&volume.name).to_string(),
            ));
        }

        if errors.len() == before {
            good.insert(volume.name.as_str(), volume);
        }

        if let Some(claim) = &volume.persistent_volume_claim
            && claims.contains(&claim.claim_name)
        {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            let place = at.field("persistentVolumeClaim");
            errors.push(FieldError::invalid_str(
                &place.field("claimName"),
                &claim.claim_name,
                detail,
            ));
        }
    }

    good
}

/// Validates the volumes of a pod that has no service account: no token can be issued for it.
pub(super) fn validate_no_token_projection(volumes: &[Volume], at: &Path<'_>, errors: &mut Errors) {
    for (index, volume) in volumes.iter().enumerate() {
        let sources = volume
            .projected
            .iter()
            .flat_map(|projected| items(&projected.sources));

        for (place, _) in sources
            .enumerate()
            .filter(|(_, source)| source.service_account_token.is_some())
        {
            let at = at.index(index);
            let at = at.field("projected");
            let at = at.field("sources");
            let at = at.index(place);
            let detail = "must not be specified when serviceAccountName is not set";
            errors.push(FieldError::forbidden(
                &at.field("serviceAccountToken"),
                detail,
            ));
        }
    }
}
