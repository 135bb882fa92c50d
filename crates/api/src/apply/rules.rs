//! Validation of field managers: their names, and which requests need one.

use crate::field_error::{FieldError, FieldErrorKind, FieldErrors};
use crate::go_text::Quoted;
use crate::{Path, Text, Value};

/// Maximum length of a manager's name, in bytes.
pub const MAX_MANAGER_LENGTH: usize = 128;

/// Maximum length of a subresource's name in an entry, in bytes.
pub const MAX_SUBRESOURCE_LENGTH: usize = 256;

/// Validates the `fieldManager` of a request, or the manager of an entry. Empty means that none is
/// given.
pub fn validate_manager(name: &str, path: &Path<'_>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if name.len() > MAX_MANAGER_LENGTH {
        errors.push(too_long(path, MAX_MANAGER_LENGTH));
    }

    for (at, character) in name
        .char_indices()
        .filter(|(_, character)| !is_printable(*character))
    {
        let detail = format!(
            "invalid character {} (at position {at})",
            CodePoint(character)
        );
        errors.push(FieldError::invalid_str(path, name, detail));
    }

    errors
}

/// Validates `fieldManager` and `force` of a patch: applying needs a manager, and nothing else can
/// be forced.
pub fn validate_patch_options(manager: &str, force: Option<bool>, is_apply: bool) -> FieldErrors {
    let root = Path::Root;
    let error = |kind, field: &str, detail: &str| FieldError {
        kind,
        field: field.to_owned(),
        bad_value: None,
        detail: detail.to_owned(),
    };

    let mut errors = FieldErrors::default();
    if is_apply && manager.is_empty() {
        errors.push(error(
            FieldErrorKind::Required,
            "fieldManager",
            "is required for apply patch",
        ));
    }

    if !is_apply && force.is_some() {
        errors.push(error(
            FieldErrorKind::Forbidden,
            "force",
            "may not be specified for non-apply patch",
        ));
    }

    errors.extend(validate_manager(manager, &root.field("fieldManager")));

    errors
}

/// Validates the entries of an object that is written, as part of its metadata.
pub fn validate_entries(entries: &[Value], path: &Path<'_>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    for (index, entry) in entries.iter().enumerate() {
        let path = path.index(index);
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();

        let operation = text("operation");
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid_str(
                &path.field("operation"),
                operation,
                detail,
            ));
        }

        let fields_type = text("fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid_str(
                &path.field("fieldsType"),
                fields_type,
                "must be `FieldsV1`",
            ));
        }

        errors.extend(validate_manager(text("manager"), &path.field("manager")));

        if text("subresource").len() > MAX_SUBRESOURCE_LENGTH {
            errors.push(too_long(&path.field("subresource"), MAX_SUBRESOURCE_LENGTH));
        }
    }

    errors
}

/// The manager of a request: the one it names, or the program that sent it (`kubectl/v1.36 (…)` is
/// `kubectl`).
pub fn manager_or_user_agent(manager: &str, user_agent: &str) -> Text {
    if !manager.is_empty() {
        return Text::new(manager);
    }

    let program = user_agent.split('/').next().unwrap_or_default();
    let mut name = Text::default();
    for character in program.chars().filter(|character| is_printable(*character)) {
        if name.len() + character.len_utf8() > MAX_MANAGER_LENGTH {
            break;
        }
        name.push(character);
    }

    name
}

fn too_long(path: &Path<'_>, limit: usize) -> FieldError {
    FieldError {
        kind: FieldErrorKind::TooLong,
        field: path.to_string(),
        bad_value: None,
        detail: format!("may not be more than {limit} bytes"),
    }
}

fn is_printable(character: char) -> bool {
    // Fast path: managers are validated at every write, and nearly all are ASCII.
    if character.is_ascii_graphic() {
        return true;
    }
    // Quoting escapes exactly the characters that are not printable.
    let mut buffer = [0; 4];
    let text: &str = character.encode_utf8(&mut buffer);
    Quoted(text).to_string() == format!("\"{text}\"")
}

/// A character as Go's `%#U` prints it: `U+0007`, `U+00E9 'é'`.
struct CodePoint(char);

impl std::fmt::Display for CodePoint {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "U+{:04X}", u32::from(self.0))?;
        if is_printable(self.0) {
            write!(out, " '{}'", self.0)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json;

    fn texts(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_manager_has_a_short_printable_name() {
        let check = |name: &str, expected: &[&str]| {
            assert_eq!(
                texts(&validate_manager(name, &Path::Root.field("fieldManager"))),
                expected,
                "{name:?}"
            );
        };

        check("", &[]);
        check("kubectl-client-side-apply", &[]);
        check("Ünïcode \"quoted\" \\ name", &[]);
        check(&"x".repeat(128), &[]);
        check(
            &"x".repeat(129),
            &["fieldManager: Too long: may not be more than 128 bytes"],
        );

        check(
            "\x07",
            &[r#"fieldManager: Invalid value: "\a": invalid character U+0007 (at position 0)"#],
        );

        check(
            "é\u{a0}",
            &[
                r#"fieldManager: Invalid value: "é\u00a0": invalid character U+00A0 (at position 2)"#,
            ],
        );
    }

    #[test]
    fn applying_needs_a_manager_and_only_applying_can_be_forced() {
        let check = |manager, force, is_apply, expected: &[&str]| {
            assert_eq!(
                texts(&validate_patch_options(manager, force, is_apply)),
                expected
            );
        };

        check("me", Some(true), true, &[]);
        check("", None, false, &[]);
        check(
            "",
            None,
            true,
            &["fieldManager: Required value: is required for apply patch"],
        );

        check(
            "",
            Some(false),
            false,
            &["force: Forbidden: may not be specified for non-apply patch"],
        );
    }

    #[test]
    fn entries_of_an_object_are_checked() {
        let check = |entry: &str, expected: &[&str]| {
            let entries = [json::parse(entry.as_bytes()).unwrap()];
            let metadata = Path::Root.field("metadata");
            assert_eq!(
                texts(&validate_entries(
                    &entries,
                    &metadata.field("managedFields")
                )),
                expected,
                "{entry}"
            );
        };

        check(
            r#"{"operation":"Apply","fieldsType":"FieldsV1","manager":"a"}"#,
            &[],
        );

        check(r#"{"operation":"Update"}"#, &[]);
        check(
            r#"{"operation":"Create","fieldsType":"FieldsV2"}"#,
            &[
                r#"metadata.managedFields[0].operation: Invalid value: "Create": must be `Apply` or `Update`"#,
                r#"metadata.managedFields[0].fieldsType: Invalid value: "FieldsV2": must be `FieldsV1`"#,
            ],
        );

        let long = format!(
            r#"{{"operation":"Apply","subresource":"{}"}}"#,
            "s".repeat(257)
        );

        check(
            &long,
            &["metadata.managedFields[0].subresource: Too long: may not be more than 256 bytes"],
        );
    }

    #[test]
    fn without_a_name_the_program_is_the_manager() {
        let check = |manager, agent: &str, expected: &str| {
            assert_eq!(manager_or_user_agent(manager, agent), expected, "{agent:?}");
        };
        check("me", "kubectl/v1.36.0 (linux/amd64)", "me");
        check("", "kubectl/v1.36.0 (linux/amd64)", "kubectl");
        check("", "", "");

        check("", "/x", "");
        check("", "a\x07b c", "ab c");
        check("", &"é".repeat(100), &"é".repeat(64));
        check(
            "",
            &format!("x{}", "é".repeat(100)),
            &format!("x{}", "é".repeat(63)),
        );
    }
}
