//! `env` and `envFrom`.

use std::collections::HashMap;

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{
    self, config_map_key, dns1123_label, dns1123_subdomain, relaxed_env_var_name,
};
use k8s_openapi::api::core::v1::{
    EnvFromSource, EnvVar, EnvVarSource, FileKeySelector, PodSpec, Volume,
};

use super::super::{every_container, field_ref, path};
use crate::strategy::Errors;
use crate::validate::{items, text, validate_required as validate_required_name};

pub(super) fn validate_env(variables: &[EnvVar], at: &Path<'_>, errors: &mut Errors) {
    for (index, variable) in variables.iter().enumerate() {
        let at = at.index(index);
        validate_required_name(
            &variable.name,
            relaxed_env_var_name,
            &at.field("name"),
            errors,
        );

        if let Some(source) = &variable.value_from {
            validate_value_from(
                source,
                text(&variable.value),
                &at.field("valueFrom"),
                errors,
            );
        }
    }
}

fn validate_value_from(source: &EnvVarSource, value: &str, at: &Path<'_>, errors: &mut Errors) {
    let mut sources = 0;
    if let Some(reference) = &source.field_ref {
        sources += 1;
        field_ref::validate_field_ref(
            reference,
            field_ref::OF_VARIABLES,
            &at.field("fieldRef"),
            errors,
        );
    }

    if let Some(reference) = &source.resource_field_ref {
        sources += 1;
        field_ref::validate_resource_field_ref(
            reference,
            false,
            &at.field("resourceFieldRef"),
            errors,
        );
    }

    if let Some(reference) = &source.config_map_key_ref {
        sources += 1;
        validate_key(
            &reference.name,
            &reference.key,
            &at.field("configMapKeyRef"),
            errors,
        );
    }

    if let Some(reference) = &source.secret_key_ref {
        sources += 1;
        validate_key(
            &reference.name,
            &reference.key,
            &at.field("secretKeyRef"),
            errors,
        );
    }

    if let Some(reference) = &source.file_key_ref {
        sources += 1;
        validate_file_key(reference, &at.field("fileKeyRef"), errors);
    }

    let detail = match sources {
        0 => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        _ if !value.is_empty() => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid_str(at, "", detail));
}

fn validate_key(name: &str, key: &str, at: &Path<'_>, errors: &mut Errors) {
    refuse(&at.field("name"), name, dns1123_subdomain(name), errors);
    validate_required_name(key, config_map_key, &at.field("key"), errors);
}

fn validate_file_key(reference: &FileKeySelector, at: &Path<'_>, errors: &mut Errors) {
    validate_required_name(
        &reference.key,
        relaxed_env_var_name,
        &at.field("key"),
        errors,
    );

    validate_required_name(
        &reference.volume_name,
        dns1123_label,
        &at.field("volumeName"),
        errors,
    );

    match reference.path.as_str() {
        "" => errors.push(FieldError::required(&at.field("path"), "")),
        found => path::validate_no_backsteps(found, &at.field("path"), errors),
    }
}

pub(super) fn validate_env_from(sources: &[EnvFromSource], at: &Path<'_>, errors: &mut Errors) {
    for (index, source) in sources.iter().enumerate() {
        let place = at.index(index);
        if let Some(prefix) = source.prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
            refuse(
                &place.field("prefix"),
                prefix,
                relaxed_env_var_name(prefix),
                errors,
            );
        }

        if let Some(reference) = &source.config_map_ref {
            validate_source_name(&reference.name, &place.field("configMapRef"), errors);
        }
        if let Some(reference) = &source.secret_ref {
            validate_source_name(&reference.name, &place.field("secretRef"), errors);
        }

        // The path is the list's, which is a mistake of upstream's.
        match (&source.config_map_ref, &source.secret_ref) {
            (None, None) => {
                let detail = "must specify one of: `configMapRef` or `secretRef`";
                errors.push(FieldError::invalid_str(at, "", detail));
            }
            (Some(_), Some(_)) => {
                let detail = "may not have more than one field specified at a time";
                errors.push(FieldError::invalid_str(at, "", detail));
            }
            _ => {}
        }
    }
}

/// Validates the name of a ConfigMap or Secret in `envFrom`. Upstream validates it as the prefix of
/// a generated name.
fn validate_source_name(name: &str, at: &Path<'_>, errors: &mut Errors) {
    match name {
        "" => errors.push(FieldError::required(&at.field("name"), "")),
        name => refuse(
            &at.field("name"),
            name,
            names::generate_name(name, dns1123_subdomain),
            errors,
        ),
    }
}

/// Validates the volumes of files that variables are read from.
pub(in crate::core::pod::validate) fn validate_env_files(
    spec: &PodSpec,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    // Of volumes with the same name the last counts.
    let volumes: HashMap<&str, &Volume> = items(&spec.volumes)
        .iter()
        .map(|volume| (volume.name.as_str(), volume))
        .collect();

    every_container(spec, at, |container, at| {
        for (index, variable) in items(&container.env).iter().enumerate() {
            let source = variable
                .value_from
                .as_ref()
                .and_then(|source| source.file_key_ref.as_ref());

            let Some(name) = source.map(|source| &source.volume_name) else {
                continue;
            };
            let at = at.field("env");
            let at = at.index(index);
            let at = at.field("valueFrom");
            let place = at.field("fileKeyRef");

            let place = place.field("volumeName");
            match volumes.get(name.as_str()) {
                None => errors.push(FieldError::not_found(&place, name)),
                Some(volume) if volume.empty_dir.is_none() => {
                    let detail = "referenced volume must be of type emptyDir";
                    errors.push(FieldError::invalid_str(&place, name, detail));
                }
                Some(_) => {}
            }
        }
    });
}
