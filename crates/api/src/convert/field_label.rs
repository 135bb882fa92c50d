//! Selectable fields, and their names in the stored object.

use crate::Text;
use crate::catalog::{BUILTIN, Compared, Resource};
use crate::go_text::Quoted;

/// Why a field is not selectable, in upstream's words for the resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldLabelError {
    #[error(
        "{} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        Quoted(.0)
    )]
    OnlyMetadata(Text),
    #[error("field label not supported: {0}")]
    NotSupported(Text),
    #[error("field label {} not supported for Job", Quoted(.0))]
    NotOfJobs(Text),
    #[error("field label not supported for resource.k8s.io/{version}, Kind=ResourceSlice: {label}")]
    NotOfSlices { version: Text, label: Text },
}

/// The name of a selectable field in the stored object.
///
/// # Errors
/// The resource has no such selectable field.
pub fn field_label<'r>(resource: &'r Resource, label: &str) -> Result<&'r str, FieldLabelError> {
    if let Some(found) = resource.selectable.iter().find(|field| field.name == label) {
        return Ok(match &found.compared {
            Compared::With(other) => other,
            Compared::Itself | Compared::Never => &found.name,
        });
    }

    let label = Text::new(label);
    let of_all = |name: &str| matches!(name, "metadata.name" | "metadata.namespace");
    Err(match (resource.group.as_str(), resource.plural.as_str()) {
        ("batch", "jobs") => FieldLabelError::NotOfJobs(label),
        ("resource.k8s.io", "resourceslices") => FieldLabelError::NotOfSlices {
            version: resource.version.clone(),
            label,
        },
        // Custom resources have one text for all cases.
        (group, plural)
            if BUILTIN.resource(group, &resource.version, plural).is_some()
                && resource.selectable.iter().all(|field| of_all(&field.name)) =>
        {
            FieldLabelError::OnlyMetadata(label)
        }
        _ => FieldLabelError::NotSupported(label),
    })
}
