//! `status` and `scale` of a custom resource.

use coracle_api::field_error::FieldError;
use coracle_api::{Map, Path};

use crate::strategy::Errors;

pub(super) fn validate(subresources: Option<&Map>, at: &Path<'_>, errors: &mut Errors) {
    let Some(scale) = subresources.and_then(|subresources| subresources.below("scale")) else {
        return;
    };
    let at = at.field("scale");
    let required = [
        ("specReplicasPath", ".spec."),
        ("statusReplicasPath", ".status."),
    ];

    for (field, root) in required {
        let (path, at) = (scale.text(field), at.field(field));
        if path.is_empty() {
            errors.push(FieldError::required(&at, ""));
        } else if is_simple(path, &at, errors) && !path.starts_with(root) {
            let detail = format!("should be a json path under {}", root.trim_end_matches('.'));
            errors.push(FieldError::invalid_str(&at, path, detail));
        }
    }

    let (path, at) = (
        scale.text("labelSelectorPath"),
        at.field("labelSelectorPath"),
    );

    if !path.is_empty()
        && is_simple(path, &at, errors)
        && !path.starts_with(".spec.")
        && !path.starts_with(".status.")
    {
        let detail = "should be a json path under either .spec or .status";
        errors.push(FieldError::invalid_str(&at, path, detail));
    }
}

/// Whether a path begins with a dot; adds an error where it does not.
pub(super) fn is_simple(path: &str, at: &Path<'_>, errors: &mut Errors) -> bool {
    let simple = path.starts_with('.');
    if !simple {
        let detail = "must be a simple json path starting with .";
        errors.push(FieldError::invalid_str(at, path, detail));
    }
    simple
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;
    use crate::validate::check_causes;

    #[test]
    fn scale_paths_are_below_spec_and_status() {
        let check = |text: &str, expected: &[&str]| {
            let given = json::parse(text.as_bytes()).unwrap();
            let mut errors = Errors::new();
            validate(given.as_object(), &Path::Root.field("s"), &mut errors);
            check_causes(&errors, expected);
        };
        check(r#"{"status":{}}"#, &[]);

        let good = r#"{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n","labelSelectorPath":".status.s"}}"#;
        check(good, &[]);
        check(
            r#"{"scale":{"specReplicasPath":".status.x","statusReplicasPath":"y","labelSelectorPath":".s"}}"#,
            &[
                "s.scale.specReplicasPath: Invalid value: \".status.x\": should be a json path under .spec",
                "s.scale.statusReplicasPath: Invalid value: \"y\": must be a simple json path starting with .",
                "s.scale.labelSelectorPath: Invalid value: \".s\": should be a json path under either",
            ],
        );

        check(
            r#"{"scale":{}}"#,
            &[
                "s.scale.specReplicasPath: Required value",
                "s.scale.statusReplicasPath: Required value",
            ],
        );
    }
}
