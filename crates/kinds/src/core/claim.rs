//! The spec of a volume claim: of a PersistentVolumeClaim, a StatefulSet's templates, or a pod's
//! ephemeral volume.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{dns1123_label, dns1123_subdomain};
use coracle_api::selector::{self, Values};
use coracle_api::{Path, meta};
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaimSpec, TypedLocalObjectReference, TypedObjectReference,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::strategy::Errors;
use crate::validate::resources;

const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];

/// Validates the spec of a new claim.
pub(crate) fn validate_spec(spec: &PersistentVolumeClaimSpec, at: &Path<'_>, errors: &mut Errors) {
    let modes = spec.access_modes.as_deref().unwrap_or_default();
    let place = at.field("accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(
            &place,
            "at least 1 access mode is required",
        ));
    }

    selector::validate(
        spec.selector.as_ref(),
        Values::Validated,
        &at.field("selector"),
        errors,
    );

    validate_access_modes(modes, &place, errors);
    validate_storage(spec, &at.field("resources").key("storage"), errors);

    if let Some(class) = spec
        .storage_class_name
        .as_deref()
        .filter(|class| !class.is_empty())
    {
        refuse(
            &at.field("storageClassName"),
            class,
            dns1123_subdomain(class),
            errors,
        );
    }

    if let Some(mode) = &spec.volume_mode {
        let known = ["Block", "Filesystem"];
        if !known.contains(&mode.as_str()) {
            errors.push(FieldError::not_supported(
                &at.field("volumeMode"),
                mode,
                &known,
            ));
        }
    }

    validate_sources(spec, at, errors);

    if let Some(class) = spec
        .volume_attributes_class_name
        .as_deref()
        .filter(|class| !class.is_empty())
    {
        refuse(
            &at.field("volumeAttributesClassName"),
            class,
            dns1123_subdomain(class),
            errors,
        );
    }
}

/// Validates the metadata of a claim's template: labels and annotations, and nothing else.
pub(crate) fn validate_template_metadata(
    metadata: &ObjectMeta,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    meta::validate::annotations(
        metadata.annotations.iter().flatten(),
        &at.field("annotations"),
        errors,
    );

    meta::validate::labels(
        metadata.labels.iter().flatten(),
        &at.field("labels"),
        errors,
    );

    let text = |given: &Option<String>| given.as_deref().is_some_and(|text| !text.is_empty());

    // The odd name is upstream's, which derives it from a struct field.
    let given = [
        (text(&metadata.name), "name"),
        (text(&metadata.generate_name), "generateName"),
        (text(&metadata.namespace), "namespace"),
        (text(&metadata.self_link), "selfLink"),
        (text(&metadata.uid), "uID"),
        (text(&metadata.resource_version), "resourceVersion"),
        (
            metadata
                .generation
                .is_some_and(|generation| generation != 0),
            "generation",
        ),
        (metadata.creation_timestamp.is_some(), "creationTimestamp"),
        (metadata.deletion_timestamp.is_some(), "deletionTimestamp"),
        (
            metadata.deletion_grace_period_seconds.is_some(),
            "deletionGracePeriodSeconds",
        ),
        (metadata.owner_references.is_some(), "ownerReferences"),
        (metadata.finalizers.is_some(), "finalizers"),
        (metadata.managed_fields.is_some(), "managedFields"),
    ];

    for (_, name) in given.into_iter().filter(|(given, _)| *given) {
        errors.push(FieldError::forbidden(&at.field(name), "cannot be set"));
    }
}

/// Warnings about a claim.
pub(crate) fn warnings(spec: &PersistentVolumeClaimSpec, at: &Path<'_>) -> Vec<String> {
    let resources = spec.resources.as_ref();
    let sides = [
        (
            "requests",
            resources.and_then(|resources| resources.requests.as_ref()),
        ),
        (
            "limits",
            resources.and_then(|resources| resources.limits.as_ref()),
        ),
    ];

    let fractions = sides.into_iter().filter_map(|(side, amounts)| {
        let amount = resources::read(amounts?.get("storage")?);
        let place = at.field("resources");
        let place = place.field(side);
        (amount.milli_value() % 1000 != 0).then(|| {
            format!(
                "{}: fractional byte value \"{amount}\" is invalid, must be an integer",
                place.key("storage")
            )
        })
    });

    fractions.collect()
}

/// Validates access modes.
pub(crate) fn validate_access_modes(modes: &[String], at: &Path<'_>, errors: &mut Errors) {
    for mode in modes
        .iter()
        .filter(|mode| !ACCESS_MODES.contains(&mode.as_str()))
    {
        errors.push(FieldError::not_supported(at, mode, ACCESS_MODES));
    }

    let (alone, others): (Vec<&str>, Vec<&str>) = modes
        .iter()
        .map(String::as_str)
        .filter(|mode| ACCESS_MODES.contains(mode))
        .partition(|mode| *mode == "ReadWriteOncePod");

    if !alone.is_empty() && !others.is_empty() {
        errors.push(FieldError::forbidden(
            at,
            "may not use ReadWriteOncePod with other access modes",
        ));
    }
}

fn validate_storage(spec: &PersistentVolumeClaimSpec, at: &Path<'_>, errors: &mut Errors) {
    let requests = spec
        .resources
        .as_ref()
        .and_then(|resources| resources.requests.as_ref());

    let Some(asked) = requests.and_then(|requests| requests.get("storage")) else {
        errors.push(FieldError::required(at, ""));
        return;
    };

    let amount = resources::read(asked);
    if amount.signum() <= 0 {
        errors.push(FieldError::invalid_str(
            at,
            &amount.to_string(),
            "must be greater than zero",
        ));
    } else {
        resources::validate_resource_amount("storage", asked, at, errors);
    }
}

/// Validates `dataSource` and `dataSourceRef`, which must agree.
fn validate_sources(spec: &PersistentVolumeClaimSpec, at: &Path<'_>, errors: &mut Errors) {
    if let Some(TypedLocalObjectReference {
        api_group,
        kind,
        name,
    }) = &spec.data_source
    {
        validate_source(
            api_group.as_deref(),
            kind,
            name,
            &at.field("dataSource"),
            errors,
        );
    }

    let mut elsewhere = false;
    if let Some(TypedObjectReference {
        api_group,
        kind,
        name,
        namespace,
    }) = &spec.data_source_ref
    {
        let place = at.field("dataSourceRef");
        validate_source(api_group.as_deref(), kind, name, &place, errors);

        if let Some(namespace) = namespace
            .as_deref()
            .filter(|namespace| !namespace.is_empty())
        {
            elsewhere = true;
            refuse(
                &place.field("namespace"),
                namespace,
                dns1123_label(namespace),
                errors,
            );
        }
    }

    let (Some(plain), Some(reference)) = (&spec.data_source, &spec.data_source_ref) else {
        return;
    };

    let same = plain.api_group == reference.api_group
        && plain.kind == reference.kind
        && plain.name == reference.name;
    let detail = match (elsewhere, same) {
        (true, _) => "may not be specified when dataSourceRef.namespace is specified",
        (false, false) => "must match dataSourceRef",
        (false, true) => return,
    };

    // The invalid value is upstream's path, a struct without public fields.
    errors.push(FieldError::invalid(at, "{}".to_owned(), detail));
}

fn validate_source(
    group: Option<&str>,
    kind: &str,
    name: &str,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    for (found, field) in [(name, "name"), (kind, "kind")] {
        if found.is_empty() {
            errors.push(FieldError::required(&at.field(field), ""));
        }
    }

    match group.unwrap_or_default() {
        "" if kind != "PersistentVolumeClaim" => {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid_str(at, kind, detail));
        }
        "" => {}
        group => refuse(
            &at.field("apiGroup"),
            group,
            dns1123_subdomain(group),
            errors,
        ),
    }
}
