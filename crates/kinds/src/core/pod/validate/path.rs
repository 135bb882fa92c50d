//! Paths in volumes.

use coracle_api::Path;
use coracle_api::field_error::{FieldError, refuse};
use coracle_api::names::{path_without_backsteps, relative_path};

use crate::strategy::Errors;

/// Validates a path below a directory that does not leave it.
pub(super) fn validate_descending_path(path: &str, at: &Path<'_>, errors: &mut Errors) {
    refuse(at, path, relative_path(path), errors);
}

/// The same for a file that a volume makes: names that begin with two dots are the volume's own.
pub(super) fn validate_unreserved_path(path: &str, at: &Path<'_>, errors: &mut Errors) {
    validate_descending_path(path, at, errors);
    if path.starts_with("..") && !path.starts_with("../") {
        errors.push(FieldError::invalid_str(
            at,
            path,
            "must not start with '..'",
        ));
    }
}

/// Whether a path would be valid in [`unreserved`].
pub(super) fn is_unreserved(path: &str) -> bool {
    let mut errors = Errors::new();
    validate_unreserved_path(path, &Path::Root, &mut errors);
    errors.is_empty()
}

/// Validates that a path has no `..`.
pub(super) fn validate_no_backsteps(path: &str, at: &Path<'_>, errors: &mut Errors) {
    refuse(at, path, path_without_backsteps(path), errors);
}

/// Validates the mode of a file.
pub(super) fn validate_file_mode(mode: Option<i32>, at: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(at, mode.to_string(), detail));
    }
}
