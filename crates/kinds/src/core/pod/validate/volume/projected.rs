//! `projected`: files from several sources in one volume.

use std::collections::BTreeSet;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{
    KeyToPath, PodSpec, ProjectedVolumeSource, ServiceAccountTokenProjection, VolumeProjection,
};

use super::super::{path, validate_required};
use super::files;
use crate::core::pod::options::Options;
use crate::strategy::Errors;
use crate::validate::items;

const LEAST_TOKEN_SECONDS: i64 = 10 * 60;
const MOST_TOKEN_SECONDS: i64 = 1 << 32;

pub(super) fn validate_projected(
    projected: &ProjectedVolumeSource,
    at: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    path::validate_file_mode(projected.default_mode, &at.field("defaultMode"), errors);
    let mut paths = BTreeSet::new();
    for (index, given) in items(&projected.sources).iter().enumerate() {
        let place = at.field("sources");
        validate_source(given, &mut paths, at, &place.index(index), options, errors);
    }
}

/// Validates one source. Errors about its paths name the volume, at `at`.
fn validate_source<'p>(
    source: &'p VolumeProjection,
    paths: &mut BTreeSet<&'p str>,
    at: &Path<'_>,
    place: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let mut sources = 0;
    let mut taken = |found: &'p str, shown: &str, errors: &mut Errors| {
        if !found.is_empty() && !paths.insert(found) {
            errors.push(FieldError::invalid_str(
                at,
                shown,
                "conflicting duplicate paths",
            ));
        }
    };

    if let Some(secret) = &source.secret {
        sources += 1;
        let place = place.field("secret");
        validate_required(&secret.name, &place.field("name"), errors);

        validate_keys(
            items(&secret.items),
            &secret.name,
            &place,
            &mut taken,
            errors,
        );
    }

    if let Some(config_map) = &source.config_map {
        sources += 1;
        let place = place.field("configMap");
        validate_required(&config_map.name, &place.field("name"), errors);

        validate_keys(
            items(&config_map.items),
            &config_map.name,
            &place,
            &mut taken,
            errors,
        );
    }

    if let Some(downward) = &source.downward_api {
        sources += 1;
        for file in items(&downward.items) {
            files::validate_downward_file(file, &place.field("downwardAPI"), errors);
            taken(&file.path, &file.path, errors);
        }
    }

    if let Some(given) = &source.service_account_token {
        sources += 1;
        validate_token(
            given,
            at,
            &place.field("serviceAccountToken"),
            options,
            errors,
        );
    }

    if sources > 1 {
        errors.push(FieldError::forbidden(
            place,
            "may not specify more than 1 volume type per source",
        ));
    }
}

fn validate_keys<'p>(
    keys: &'p [KeyToPath],
    name: &str,
    place: &Path<'_>,
    taken: &mut impl FnMut(&'p str, &str, &mut Errors),
    errors: &mut Errors,
) {
    for (index, item) in keys.iter().enumerate() {
        files::validate_key(item, &place.field("items").index(index), errors);
        taken(&item.path, name, errors);
    }
}

fn validate_token(
    token: &ServiceAccountTokenProjection,
    at: &Path<'_>,
    place: &Path<'_>,
    options: &Options,
    errors: &mut Errors,
) {
    let seconds = token.expiration_seconds.unwrap_or(0);
    let detail = match seconds {
        ..LEAST_TOKEN_SECONDS => Some("may not specify a duration less than 10 minutes"),
        LEAST_TOKEN_SECONDS..=MOST_TOKEN_SECONDS => None,
        _ => Some("may not specify a duration larger than 2^32 seconds"),
    };

    if let Some(detail) = detail {
        errors.push(FieldError::invalid(
            &place.field("expirationSeconds"),
            seconds.to_string(),
            detail,
        ));
    }

    validate_required(&token.path, &at.field("path"), errors);

    if !token.path.is_empty() && !options.reserved_token_paths {
        path::validate_unreserved_path(&token.path, &at.field("path"), errors);
    }
}

/// Whether some token of a pod has an invalid path.
pub(in crate::core::pod) fn has_reserved_token_path(spec: &PodSpec) -> bool {
    let projected = items(&spec.volumes)
        .iter()
        .filter_map(|volume| volume.projected.as_ref());
    let tokens = projected.flat_map(|projected| items(&projected.sources));
    tokens
        .filter_map(|source| source.service_account_token.as_ref())
        .any(|token| !path::is_unreserved(&token.path))
}
