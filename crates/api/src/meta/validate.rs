//! Validation of metadata: of a new object, and of an update.
//!
//! The rules are the same for every kind except for the name ([`Rules`]). The texts and their order
//! are upstream's.

use std::collections::BTreeSet;

use super::ObjectMeta;
use crate::catalog;
use crate::field_error::{FieldError, FieldErrors, as_json, refuse, shown};
use crate::go_text::Quoted;
use crate::names::{self, Messages, Rule};
use crate::value::{Map, Path, Value};

/// A kind's rules for the names of its objects.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    pub name: Rule,
    pub prefix: Prefix,
}

/// How `generateName` is validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// By the rule of the name, with a dash allowed at its end.
    LikeName,
    /// As part of a path segment.
    PathSegment,
    /// Not at all: only the generated name is validated.
    Unchecked,
}

impl Rules {
    /// The minimum for every kind: a name that can be a path segment.
    pub const ANY_KIND: Rules = Rules {
        namespaced: false,
        name: names::path_segment_name,
        prefix: Prefix::PathSegment,
    };
}

/// Validates the metadata of a new object, whose name has been generated.
pub fn new(meta: ObjectMeta<'_>, at: &Path<'_>, rules: Rules, errors: &mut FieldErrors) {
    let prefix = meta.generate_name();
    if !prefix.is_empty() {
        let messages = match rules.prefix {
            Prefix::LikeName => names::generate_name(prefix, rules.name),
            Prefix::PathSegment => names::path_segment_prefix(prefix),
            Prefix::Unchecked => Messages::new(),
        };
        refuse(&at.field("generateName"), prefix, messages, errors);
    }

    match meta.name() {
        "" => errors.push(FieldError::required(
            &at.field("name"),
            "name or generateName is required",
        )),
        name => refuse(&at.field("name"), name, (rules.name)(name), errors),
    }

    let namespace = at.field("namespace");
    match (rules.namespaced, meta.namespace()) {
        (true, "") => errors.push(FieldError::required(&namespace, "")),
        (true, found) => refuse(&namespace, found, names::dns1123_label(found), errors),
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(
            &namespace,
            "not allowed on this type",
        )),
    }

    if meta.generation() < 0 {
        let detail = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(
            &at.field("generation"),
            meta.generation().to_string(),
            detail,
        ));
    }

    labels(texts(meta.labels()), &at.field("labels"), errors);
    annotations(texts(meta.annotations()), &at.field("annotations"), errors);
    owners(meta, &at.field("ownerReferences"), errors);
    finalizers(meta, &at.field("finalizers"), errors);
    managers(meta, &at.field("managedFields"), errors);
}

/// Validates an update of an object's metadata.
pub fn change(new: ObjectMeta<'_>, old: ObjectMeta<'_>, at: &Path<'_>, errors: &mut FieldErrors) {
    if old.is_being_deleted() {
        no_new_finalizers(new, old, &at.field("finalizers"), errors);
    }

    if new.resource_version().is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid_str(
            &at.field("resourceVersion"),
            "",
            detail,
        ));
    }

    if new.generation() < old.generation() {
        let found = new.generation().to_string();
        errors.push(FieldError::invalid(
            &at.field("generation"),
            found,
            "must not be decremented",
        ));
    }

    for (name, absent) in IMMUTABLE_FIELDS
        .iter()
        .filter(|(name, _)| new.get(name) != old.get(name))
    {
        let shown_or_absent =
            |meta: ObjectMeta<'_>| meta.get(name).map_or_else(|| (*absent).to_owned(), shown);
        let found = shown_or_absent(new);
        if found != shown_or_absent(old) {
            errors.push(FieldError::invalid(&at.field(name), found, IMMUTABLE));
        }
    }

    labels(texts(new.labels()), &at.field("labels"), errors);
    annotations(texts(new.annotations()), &at.field("annotations"), errors);
    owners(new, &at.field("ownerReferences"), errors);
    managers(new, &at.field("managedFields"), errors);
}

/// Finalizers without a domain must be those of Kubernetes itself: an additional rule of most
/// kinds.
pub fn known_finalizers(meta: ObjectMeta<'_>, at: &Path<'_>, errors: &mut FieldErrors) {
    let at = at.field("finalizers");
    for (index, name) in meta.finalizers().enumerate() {
        known_finalizer(name, &at.index(index), errors);
    }
}

/// As [`known_finalizers`], for one finalizer.
pub fn known_finalizer(name: &str, at: &Path<'_>, errors: &mut FieldErrors) {
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid_str(at, name, detail));
    }
}

/// Validates labels.
pub fn labels<K: AsRef<str>, V: AsRef<str>>(
    labels: impl IntoIterator<Item = (K, V)>,
    at: &Path<'_>,
    errors: &mut FieldErrors,
) {
    for (key, value) in labels {
        let (key, value) = (key.as_ref(), value.as_ref());
        refuse(at, key, names::qualified_name(key), errors);
        refuse(at, value, names::label_value(value), errors);
    }
}

/// Validates annotations.
pub fn annotations<K: AsRef<str>, V: AsRef<str>>(
    annotations: impl IntoIterator<Item = (K, V)>,
    at: &Path<'_>,
    errors: &mut FieldErrors,
) {
    let mut size = 0;
    for (key, value) in annotations {
        let key = key.as_ref();
        size += key.len() + value.as_ref().len();
        refuse(at, key, names::qualified_name(&key.to_lowercase()), errors);
    }
    if size > ANNOTATIONS_LIMIT {
        errors.push(FieldError::too_long(at, ANNOTATIONS_LIMIT));
    }
}

/// The strings of a map, by key.
fn texts(map: Option<&Map>) -> impl Iterator<Item = (&str, &str)> {
    map.into_iter()
        .flat_map(Map::iter)
        .map(|(key, value)| (key, value.as_str().unwrap_or_default()))
}

/// Validates the name of a field manager: at most 128 bytes, printable.
pub fn field_manager(manager: &str, at: &Path<'_>, errors: &mut FieldErrors) {
    if manager.len() > MANAGER_LIMIT {
        errors.push(FieldError::too_long(at, MANAGER_LIMIT));
    }

    for (place, character) in manager.char_indices() {
        // Characters that Go's quoting leaves unchanged are printable; so are quotes and
        // backslashes, though it escapes them.
        let text = character.to_string();
        if matches!(character, '"' | '\\') || Quoted(&text).to_string().len() == text.len() + 2 {
            continue;
        }
        if errors.is_full() {
            return;
        }

        let detail = format!(
            "invalid character U+{:04X} (at position {place})",
            u32::from(character)
        );
        errors.push(FieldError::invalid_str(at, manager, detail));
    }
}

fn owners(meta: ObjectMeta<'_>, at: &Path<'_>, errors: &mut FieldErrors) {
    let owners = meta.list("ownerReferences");
    let mut controller: Option<String> = None;
    for owner in owners {
        let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
        let (group, version) = match text("apiVersion").matches('/').count() {
            0 | 1 => catalog::split_api_version(text("apiVersion")),
            _ => ("", ""),
        };

        let empty = [
            (
                "apiVersion",
                version.is_empty(),
                "version must not be empty",
            ),
            ("kind", text("kind").is_empty(), "must not be empty"),
            ("name", text("name").is_empty(), "must not be empty"),
            ("uid", text("uid").is_empty(), "must not be empty"),
        ];

        for (name, _, message) in empty.into_iter().filter(|(_, wrong, _)| *wrong) {
            errors.push(FieldError::invalid_str(
                &at.field(name),
                text(name),
                message,
            ));
        }

        if (group, version, text("kind")) == ("", "v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            errors.push(FieldError::invalid(at, owner_text(owner), detail));
        }

        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let name = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                None => controller = Some(name),
                Some(_) if errors.is_full() => return,
                Some(first) => {
                    let detail = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                    );

                    let all: Vec<String> = owners.iter().map(owner_text).collect();
                    errors.push(FieldError::invalid(
                        at,
                        format!("[{}]", all.join(",")),
                        detail,
                    ));
                }
            }
        }
    }
}

/// An owner as messages print it: in the order in which upstream declares the fields, the first
/// four always.
fn owner_text(owner: &Value) -> String {
    let text = |name: &str| {
        format!(
            "\"{name}\":{}",
            owner.get(name).map_or_else(|| "\"\"".to_owned(), as_json)
        )
    };

    let given = |name: &&str| owner.get(name).is_some_and(|value| !value.is_null());
    let always = ["apiVersion", "kind", "name", "uid"].into_iter();
    let fields: Vec<String> = always
        .chain(
            ["controller", "blockOwnerDeletion"]
                .into_iter()
                .filter(given),
        )
        .map(text)
        .collect();

    format!("{{{}}}", fields.join(","))
}

fn finalizers(meta: ObjectMeta<'_>, at: &Path<'_>, errors: &mut FieldErrors) {
    for name in meta.finalizers() {
        refuse(at, name, names::qualified_name(name), errors);
    }
    if meta.has_finalizer("orphan") && meta.has_finalizer("foregroundDeletion") {
        let all = Value::Array(meta.finalizers().map(Value::string).collect());
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(at, shown(&all), detail));
    }
}

fn no_new_finalizers(
    new: ObjectMeta<'_>,
    old: ObjectMeta<'_>,
    at: &Path<'_>,
    errors: &mut FieldErrors,
) {
    let before: BTreeSet<&str> = old.finalizers().collect();
    let added: BTreeSet<&str> = new
        .finalizers()
        .filter(|name| !before.contains(name))
        .collect();

    if !added.is_empty() {
        let added: Vec<String> = added
            .into_iter()
            .map(|name| Quoted(name).to_string())
            .collect();

        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        );
        errors.push(FieldError::forbidden(at, detail));
    }
}

fn managers(meta: ObjectMeta<'_>, at: &Path<'_>, errors: &mut FieldErrors) {
    for (index, entry) in meta.list("managedFields").iter().enumerate() {
        let at = at.index(index);
        let text = |name: &str| entry.get(name).and_then(Value::as_str).unwrap_or_default();
        if !matches!(text("operation"), "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid_str(
                &at.field("operation"),
                text("operation"),
                detail,
            ));
        }

        if !matches!(text("fieldsType"), "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid_str(
                &at.field("fieldsType"),
                text("fieldsType"),
                detail,
            ));
        }

        field_manager(text("manager"), &at.field("manager"), errors);

        if text("subresource").len() > SUBRESOURCE_LIMIT {
            errors.push(FieldError::too_long(
                &at.field("subresource"),
                SUBRESOURCE_LIMIT,
            ));
        }
    }
}

/// Immutable fields, and how their absence is printed.
const IMMUTABLE_FIELDS: &[(&str, &str)] = &[
    ("name", "\"\""),
    ("namespace", "\"\""),
    ("uid", "\"\""),
    ("creationTimestamp", "null"),
    ("deletionTimestamp", "null"),
    ("deletionGracePeriodSeconds", "null"),
];

/// Message for an immutable field.
pub const IMMUTABLE: &str = "field is immutable";

const ANNOTATIONS_LIMIT: usize = 256 << 10;
const MANAGER_LIMIT: usize = 128;
const SUBRESOURCE_LIMIT: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::json;

    const METADATA: Path<'static> = Path::Field(&Path::Root, "metadata");
    const NAMESPACED: Rules = Rules {
        namespaced: true,
        name: names::dns1123_subdomain,
        prefix: Prefix::LikeName,
    };

    fn object(metadata: &str) -> Value {
        json::parse(format!("{{\"metadata\":{metadata}}}").as_bytes()).unwrap()
    }

    /// `expected`: the beginning of each error, and a part of the rest.
    fn compare(errors: &[FieldError], expected: &[&str]) {
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");

        for (found, expected) in found.iter().zip(expected) {
            let mut parts = expected.split("...");
            assert!(
                found.starts_with(parts.next().unwrap()),
                "{found} is not {expected}"
            );

            assert!(
                parts.all(|part| found.contains(part)),
                "{found} is not {expected}"
            );
        }
    }

    #[test]
    fn new_metadata_is_validated_in_upstreams_order() {
        let check = |rules: Rules, metadata: &str, expected: &[&str]| {
            let mut errors = FieldErrors::default();
            new(object(metadata).meta(), &METADATA, rules, &mut errors);
            compare(&errors, expected);
        };

        let cluster = Rules {
            namespaced: false,
            ..NAMESPACED
        };

        let any = Rules {
            namespaced: true,
            ..Rules::ANY_KIND
        };

        let unchecked = Rules {
            prefix: Prefix::Unchecked,
            ..NAMESPACED
        };

        check(NAMESPACED, r#"{"name":"a.b","namespace":"x"}"#, &[]);
        check(
            NAMESPACED,
            "{}",
            &[
                "metadata.name: Required value: name or",
                "metadata.namespace: Required value",
            ],
        );

        check(
            NAMESPACED,
            r#"{"name":"G_x","generateName":"G_","namespace":"a.b"}"#,
            &[
                "metadata.generateName: Invalid value: \"G_\"...RFC 1123 subdomain",
                "metadata.name: Invalid value: \"G_x\"...RFC 1123 subdomain",
                "metadata.namespace: Invalid value: \"a.b\": must not contain dots",
            ],
        );

        check(
            NAMESPACED,
            r#"{"name":"a","generateName":"a-","namespace":"x"}"#,
            &[],
        );

        check(
            unchecked,
            r#"{"name":"a","generateName":"A_","namespace":"x"}"#,
            &[],
        );

        check(
            any,
            r#"{"name":"A_","generateName":".","namespace":"x"}"#,
            &[],
        );

        check(
            any,
            r#"{"name":".","generateName":"a%","namespace":"x"}"#,
            &[
                "metadata.generateName...may not contain '%'",
                "metadata.name...may not be '.'",
            ],
        );

        check(
            cluster,
            r#"{"name":"a","namespace":"x"}"#,
            &["metadata.namespace: Forbidden: not allowed"],
        );

        check(
            cluster,
            r#"{"name":"a","generation":-1,"labels":{"a b":"c d"},"annotations":{"EX.com/A":"","b c":""},
                "finalizers":["orphan","foregroundDeletion","a b"],
                "managedFields":[{"operation":"x","fieldsType":"y","manager":"\u0007"}]}"#,
            &[
                "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
                "metadata.labels: Invalid value: \"a b\": name part must consist",
                "metadata.labels: Invalid value: \"c d\": a valid label must be",
                "metadata.annotations: Invalid value: \"b c\": name part must consist",
                "metadata.finalizers: Invalid value: \"a b\": name part must consist",
                "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\",\"a b\"]: finalizer orphan and",
                "metadata.managedFields[0].operation: Invalid value: \"x\": must be `Apply` or `Update`",
                "metadata.managedFields[0].fieldsType: Invalid value: \"y\": must be `FieldsV1`",
                "metadata.managedFields[0].manager: Invalid value: \"\\a\": invalid character U+0007 (at position 0)",
            ],
        );
    }

    #[test]
    fn owners_are_complete_and_one_of_them_is_the_controller() {
        let check = |list: &str, expected: &[&str]| {
            let mut errors = FieldErrors::default();
            let object = object(&format!("{{\"name\":\"a\",\"ownerReferences\":{list}}}"));
            new(object.meta(), &METADATA, Rules::ANY_KIND, &mut errors);
            compare(&errors, expected);
        };

        check(
            r#"[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true}]"#,
            &[],
        );

        check(
            r#"[{"apiVersion":"a/b/c","name":"p"}]"#,
            &[
                "metadata.ownerReferences.apiVersion: Invalid value: \"a/b/c\": version must not be empty",
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ],
        );

        check(
            r#"[{"apiVersion":"v1","kind":"Event","name":"p","uid":"u"}]"#,
            &[
                "metadata.ownerReferences: Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\"...disallowed",
            ],
        );

        check(
            r#"[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true},
                {"apiVersion":"v1","kind":"Pod","name":"q","uid":"v","controller":true}]"#,
            &["metadata.ownerReferences: Invalid value: [{...in references for Pod/p and Pod/q"],
        );
    }

    #[test]
    fn changes_of_immutable_fields_are_refused() {
        let check = |old: &str, new: &str, expected: &[&str]| {
            let mut errors = FieldErrors::default();
            change(
                object(new).meta(),
                object(old).meta(),
                &METADATA,
                &mut errors,
            );
            compare(&errors, expected);
        };

        check(
            r#"{"name":"a","uid":"u"}"#,
            r#"{"name":"a","uid":"u","resourceVersion":"1"}"#,
            &[],
        );

        check(
            r#"{"name":"a","generation":2}"#,
            r#"{"name":"b","uid":"u","generation":1,"deletionGracePeriodSeconds":3,"finalizers":["x y"]}"#,
            &[
                "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
                "metadata.generation: Invalid value: 1: must not be decremented",
                "metadata.name: Invalid value: \"b\": field is immutable",
                "metadata.uid: Invalid value: \"u\": field is immutable",
                "metadata.deletionGracePeriodSeconds: Invalid value: 3: field is immutable",
            ],
        );

        check(
            r#"{"deletionTimestamp":"2020-01-01T00:00:00Z","finalizers":["a/b"]}"#,
            r#"{"resourceVersion":"1","finalizers":["x/y","a/b","c/d"]}"#,
            &[
                "metadata.finalizers: Forbidden: no new finalizers...found new finalizers []string{\"c/d\", \"x/y\"}",
                "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            ],
        );
    }
}
