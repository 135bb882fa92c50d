//! Structural schemas: each value's type is declared once, outside of `allOf`, `anyOf`, `oneOf` and
//! `not`.

use super::super::Pattern;
use super::super::props::{Props, SubSchema};
use crate::field_error::{FieldError, FieldErrors};
use crate::value::Path;

/// The violations of a schema, in the order of the texts.
pub(super) fn check(props: Props<'_>, at: &Path<'_>) -> FieldErrors {
    let mut errors = FieldErrors::default();
    invariants(props, Level::Root, at, &mut errors);
    complete(props, Some(props), at, at, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

fn invariants(props: Props<'_>, level: Level, at: &Path<'_>, errors: &mut FieldErrors) {
    if errors.is_full() {
        return;
    }

    let items = props.items().one();
    if props.text("type") == "array" && items.is_none() {
        errors.push(FieldError::required(
            &at.field("items"),
            "must be specified",
        ));
    }

    if let Some(items) = items {
        invariants(items, Level::Item, &at.field("items"), errors);
    }

    let properties = at.field("properties");
    for (name, below) in props.named("properties") {
        invariants(below, Level::Field, &properties.key(name), errors);
    }

    let additional = at.field("additionalProperties");
    if !props.additional().is_absent() && level == Level::Root {
        errors.push(FieldError::forbidden(
            &additional,
            "must not be used at the root",
        ));
    }

    if let Some(below) = props.additional().one() {
        invariants(below, Level::Field, &additional, errors);
    }

    extensions(props, at, errors);
    let typed_first = props.schemas("allOf").next().is_some_and(is_int_or_string);
    logic(props, is_int_or_string(props), typed_first, at, errors);
    types(props, level, at, errors);
    metadata(props, level, at, errors);

    if is_embedded(props) && !preserves(props) && props.named("properties").len() == 0 {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&properties, detail));
    }
}

fn extensions(props: Props<'_>, at: &Path<'_>, errors: &mut FieldErrors) {
    if !props.flag("x-kubernetes-int-or-string") {
        return;
    }

    let detail = "must be false if x-kubernetes-int-or-string is true";
    for name in [
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
    ] {
        if props.flag(name) {
            errors.push(FieldError::invalid(
                &at.field(name),
                "true".to_owned(),
                detail,
            ));
        }
    }
}

fn types(props: Props<'_>, level: Level, at: &Path<'_>, errors: &mut FieldErrors) {
    let of = props.text("type");
    let path = at.field("type");
    if is_embedded(props) && of != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match of {
            "" => FieldError::required(&path, detail),
            _ => FieldError::invalid_str(&path, of, detail),
        });
    } else if of.is_empty() && !props.flag("x-kubernetes-int-or-string") && !preserves(props) {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&path, detail));
    }

    if is_embedded(props) && !props.additional().is_absent() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(
            &at.field("additionalProperties"),
            detail,
        ));
    }

    if level == Level::Root && !of.is_empty() && of != "object" {
        errors.push(FieldError::invalid_str(
            &path,
            of,
            "must be object at the root",
        ));
    }
}

/// Metadata may be restricted by name only.
fn metadata(props: Props<'_>, level: Level, at: &Path<'_>, errors: &mut FieldErrors) {
    let resource = level == Level::Root || is_embedded(props);
    let properties = at.field("properties");
    for name in ["kind", "apiVersion"] {
        let found = props.property(name).map(|below| below.text("type"));
        if let Some(of) = found.filter(|of| resource && *of != "string") {
            errors.push(FieldError::invalid_str(
                &properties.key(name).field("type"),
                of,
                "must be string",
            ));
        }
    }

    let Some(metadata) = props.property("metadata") else {
        return;
    };

    let path = properties.key("metadata");
    if resource && metadata.text("type") != "object" {
        errors.push(FieldError::invalid_str(
            &path.field("type"),
            metadata.text("type"),
            "must be object",
        ));
    }

    let named_only = metadata.set_members().all(|(name, _)| match name {
        "type" | "default" => true,
        "properties" => metadata
            .named("properties")
            .all(|(name, _)| matches!(name, "name" | "generateName")),
        _ => false,
    });

    if level == Level::Root && !named_only {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

/// `typed`: its `anyOf` only declares an int-or-string. `typed_first`: the same for its first
/// `allOf`.
fn logic(
    props: Props<'_>,
    typed: bool,
    typed_first: bool,
    at: &Path<'_>,
    errors: &mut FieldErrors,
) {
    let any = at.field("anyOf");
    for (index, branch) in props.schemas("anyOf").enumerate().filter(|_| !typed) {
        nested(branch, false, &any.index(index), errors);
    }

    let all = at.field("allOf");
    for (index, branch) in props.schemas("allOf").enumerate() {
        nested(branch, typed_first && index == 0, &all.index(index), errors);
    }

    let one = at.field("oneOf");
    for (index, branch) in props.schemas("oneOf").enumerate() {
        nested(branch, false, &one.index(index), errors);
    }

    if let Some(branch) = props.schema("not") {
        nested(branch, false, &at.field("not"), errors);
    }

    let pattern = props.text("pattern");
    if let Some(error) = Some(pattern)
        .filter(|text| !text.is_empty())
        .and_then(|text| Pattern::new(text).err())
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid_str(
            &at.field("pattern"),
            pattern,
            detail,
        ));
    }
}

/// A schema inside of logic: it may only restrict values.
fn nested(props: Props<'_>, typed: bool, at: &Path<'_>, errors: &mut FieldErrors) {
    logic(props, typed, false, at, errors);

    if let Some(items) = props.items().one() {
        nested(items, false, &at.field("items"), errors);
    }

    let properties = at.field("properties");
    for (name, below) in props.named("properties") {
        nested(below, false, &properties.key(name), errors);
    }

    let additional = !matches!(
        props.additional(),
        SubSchema::Absent | SubSchema::Bool(false)
    );
    let forbidden = [
        ("type", !props.text("type").is_empty(), EMPTY),
        ("additionalProperties", additional, UNDEFINED),
        ("default", props.json("default").is_some(), UNDEFINED),
        ("title", !props.text("title").is_empty(), EMPTY),
        ("description", !props.text("description").is_empty(), EMPTY),
        ("nullable", props.flag("nullable"), FALSE),
        (
            "x-kubernetes-preserve-unknown-fields",
            preserves(props),
            FALSE,
        ),
        ("x-kubernetes-embedded-resource", is_embedded(props), FALSE),
        (
            "x-kubernetes-int-or-string",
            props.flag("x-kubernetes-int-or-string"),
            FALSE,
        ),
        (
            "x-kubernetes-list-map-keys",
            !props.elements("x-kubernetes-list-map-keys").is_empty(),
            EMPTY,
        ),
        (
            "x-kubernetes-list-type",
            props.optional_text("x-kubernetes-list-type").is_some(),
            UNDEFINED,
        ),
        (
            "x-kubernetes-map-type",
            props.optional_text("x-kubernetes-map-type").is_some(),
            UNDEFINED,
        ),
        (
            "x-kubernetes-validations",
            !props.elements("x-kubernetes-validations").is_empty(),
            EMPTY,
        ),
    ];

    let wrong = forbidden.into_iter().filter(|(_, found, _)| *found);
    errors.extend(wrong.map(|(name, _, detail)| FieldError::forbidden(&at.field(name), detail)));

    if props.property("metadata").is_some() {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(&properties.key("metadata"), detail));
    }
}

/// Fields that logic refers to must be declared outside of it, too.
fn complete(
    logic: Props<'_>,
    outside: Option<Props<'_>>,
    path: &Path<'_>,
    spoken_of: &Path<'_>,
    errors: &mut FieldErrors,
) {
    if let Some(branch) = logic.schema("not") {
        complete_branch(branch, outside, path, &spoken_of.field("not"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        let branches = spoken_of.field(name);
        for (index, branch) in logic.schemas(name).enumerate() {
            complete_branch(branch, outside, path, &branches.index(index), errors);
        }
    }
}

fn complete_branch(
    branch: Props<'_>,
    outside: Option<Props<'_>>,
    path: &Path<'_>,
    spoken_of: &Path<'_>,
    errors: &mut FieldErrors,
) {
    let Some(outside) = outside else {
        return errors.push(FieldError::required(
            path,
            format!("because it is defined in {spoken_of}"),
        ));
    };
    complete(branch, Some(outside), path, spoken_of, errors);

    if let Some(items) = branch.items().one() {
        complete_branch(
            items,
            outside.items().one(),
            &path.field("items"),
            &spoken_of.field("items"),
            errors,
        );
    }

    let (path, spoken_of) = (path.field("properties"), spoken_of.field("properties"));
    for (name, below) in branch.named("properties") {
        complete_branch(
            below,
            outside.property(name),
            &path.key(name),
            &spoken_of.key(name),
            errors,
        );
    }
}

/// Whether `anyOf` is `integer` or `string`, and nothing else.
fn is_int_or_string(props: Props<'_>) -> bool {
    let only = |branch: Props<'_>, of: &str| {
        branch.text("type") == of && branch.set_members().count() == 1
    };
    let mut branches = props.schemas("anyOf");
    branches.len() == 2
        && branches
            .next()
            .is_some_and(|branch| only(branch, "integer"))
        && branches.next().is_some_and(|branch| only(branch, "string"))
}

fn is_embedded(props: Props<'_>) -> bool {
    props.flag("x-kubernetes-embedded-resource")
}

fn preserves(props: Props<'_>) -> bool {
    props.flag("x-kubernetes-preserve-unknown-fields")
}

const EMPTY: &str = "must be empty to be structural";
const UNDEFINED: &str = "must be undefined to be structural";
const FALSE: &str = "must be false to be structural";
