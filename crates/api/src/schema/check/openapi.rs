//! Validates which parts of OpenAPI are used where, and the rules of list types, map types and CEL.

use std::collections::BTreeSet;

use super::super::props::{Props, SubSchema};
use super::{Demands, field_path};
use crate::field_error::{FieldError, FieldErrors, as_json};
use crate::go_text::Quoted;
use crate::value::Path;
use crate::{Text, Value};

pub(super) fn check(props: Props<'_>, demands: Demands, at: &Path<'_>) -> FieldErrors {
    let mut walk = Walk {
        demands,
        errors: FieldErrors::default(),
    };

    walk.schema(
        props,
        Context {
            no_defaults: None,
            metadata: false,
        },
        true,
        at,
    );

    walk.errors
}

/// Restrictions from the enclosing schemas.
#[derive(Clone, Copy)]
struct Context<'a> {
    /// Why defaults are forbidden.
    no_defaults: Option<&'a str>,
    /// Inside of metadata.
    metadata: bool,
}

struct Walk {
    demands: Demands,
    errors: FieldErrors,
}

impl Walk {
    fn schema(&mut self, props: Props<'_>, context: Context<'_>, root: bool, at: &Path<'_>) {
        if self.errors.is_full() {
            return;
        }

        self.unsupported(props, context, at);

        if props.flag("uniqueItems") {
            self.forbid(
                &at.field("uniqueItems"),
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
            );
        }

        self.additional(props, context, at);
        self.properties(props, context, root, at);

        if let Some(branch) = props.schema("not") {
            self.schema(branch, context, false, &at.field("not"));
        }

        for name in ["allOf", "oneOf", "anyOf"] {
            let branches = at.field(name);
            for (index, branch) in props.schemas(name).enumerate() {
                self.schema(branch, context, false, &branches.index(index));
            }
        }

        let definitions = at.field("definitions");
        for (name, below) in props.named("definitions") {
            self.schema(below, context, false, &definitions.key(name));
        }

        self.items(props, context, at);
        let dependencies = at.field("dependencies");
        let schemas = props
            .get("dependencies")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|map| map.iter());

        for (name, below) in schemas.filter(|(_, value)| value.as_object().is_some()) {
            self.schema(Props::of(below), context, false, &dependencies.key(name));
        }

        self.map_type(props, at);
        self.list_type(props, at);

        if self.demands.usable_keys {
            unusable_keys(props, at, &mut self.errors);
        }

        self.rules(props, at);
    }

    fn unsupported(&mut self, props: Props<'_>, context: Context<'_>, at: &Path<'_>) {
        let of = props.text("type");
        if self.demands.known_types && !of.is_empty() && !TYPES.contains(&of) {
            self.errors
                .push(FieldError::not_supported(&at.field("type"), of, &TYPES));
        }

        if let Some(reason) = context
            .no_defaults
            .filter(|_| props.json("default").is_some())
        {
            self.errors.push(FieldError::forbidden(
                &at.field("default"),
                format!("must not be set {reason}"),
            ));
        }

        let named = |name: &str| props.named(name).len() > 0;
        let several = matches!(props.items(), SubSchema::Many(several) if !several.is_empty());

        let nested = context.metadata && props.flag("x-kubernetes-embedded-resource");
        let found = [
            ("id", !props.text("id").is_empty(), "id is not supported"),
            (
                "additionalItems",
                props.get("additionalItems").is_some(),
                "additionalItems is not supported",
            ),
            (
                "patternProperties",
                named("patternProperties"),
                "patternProperties is not supported",
            ),
            (
                "definitions",
                named("definitions"),
                "definitions is not supported",
            ),
            (
                "dependencies",
                props.get("dependencies").is_some(),
                "dependencies is not supported",
            ),
            (
                "$ref",
                props.optional_text("$ref").is_some(),
                "$ref is not supported",
            ),
            (
                "type",
                of == "null",
                "type cannot be set to null, use nullable as an alternative",
            ),
            (
                "items",
                several,
                "items must be a schema object and not an array",
            ),
            (
                "x-kubernetes-embedded-resource",
                nested,
                "must not be used inside of resource meta",
            ),
        ];

        for (name, _, detail) in found.into_iter().filter(|(_, found, _)| *found) {
            self.forbid(&at.field(name), detail);
        }
    }

    fn additional(&mut self, props: Props<'_>, mut context: Context<'_>, at: &Path<'_>) {
        let at = at.field("additionalProperties");
        let additional = props.additional();
        if props.named("properties").len() > 0
            && !matches!(additional, SubSchema::Absent | SubSchema::Bool(true))
        {
            self.forbid(
                &at,
                "additionalProperties and properties are mutual exclusive",
            );
        }

        if context.metadata {
            context.no_defaults = Some("inside additionalProperties applying to object metadata");
        }
        if let Some(below) = additional.one() {
            self.schema(below, context, false, &at);
        }
    }

    fn properties(&mut self, props: Props<'_>, context: Context<'_>, root: bool, at: &Path<'_>) {
        let resource = root || props.flag("x-kubernetes-embedded-resource");
        let at = at.field("properties");
        for (name, below) in props.named("properties") {
            let top_level = match name {
                "apiVersion" => "in top-level apiVersion",
                "kind" => "in top-level kind",
                "metadata" => "in top-level metadata",
                _ => "",
            };

            let mut context = context;
            if resource && !top_level.is_empty() {
                context.metadata = true;
                context.no_defaults = if root {
                    Some(top_level)
                } else {
                    context.no_defaults
                };
            }

            self.schema(below, context, false, &at.key(name));
        }
    }

    fn items(&mut self, props: Props<'_>, context: Context<'_>, at: &Path<'_>) {
        let at = at.field("items");
        match props.items() {
            SubSchema::One(below) => self.schema(below, context, false, &at),
            SubSchema::Many(several) => {
                for (index, below) in several.into_iter().enumerate() {
                    self.schema(below, context, false, &at.index(index));
                }
            }
            _ => {}
        }
    }

    fn map_type(&mut self, props: Props<'_>, at: &Path<'_>) {
        let preserve = "x-kubernetes-preserve-unknown-fields";
        if props.get(preserve).is_some() && !props.flag(preserve) {
            self.invalid(
                &at.field(preserve),
                "false".to_owned(),
                "must be true or undefined",
            );
        }

        let Some(of) = props.optional_text("x-kubernetes-map-type") else {
            return;
        };
        self.wants_type(
            props,
            "object",
            "must be object if x-kubernetes-map-type is specified",
            at,
        );

        if !matches!(of, "atomic" | "granular") {
            let at = at.field("x-kubernetes-map-type");
            self.errors
                .push(FieldError::not_supported(&at, of, &["atomic", "granular"]));
        }
    }

    fn list_type(&mut self, props: Props<'_>, at: &Path<'_>) {
        let of = props.optional_text("x-kubernetes-list-type");
        let keys = props.elements("x-kubernetes-list-map-keys");
        let context = at.field("x-kubernetes-list-type");

        if of.is_some() && props.text("type") != "array" {
            self.wants_type(
                props,
                "array",
                "must be array if x-kubernetes-list-type is specified",
                at,
            );
        } else if self.demands.atomic_sets && has_set_of_parts(props) {
            let items = props.items().one().unwrap_or(props);
            let name = if items.text("type") == "array" {
                "x-kubernetes-list-type"
            } else {
                "x-kubernetes-map-type"
            };

            let found = items
                .optional_text("x-kubernetes-list-type")
                .map_or_else(|| "null".to_owned(), quoted);
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            self.invalid(&at.field("items").field(name), found, detail);
        }

        if let Some(of) = of.filter(|of| !matches!(*of, "atomic" | "set" | "map")) {
            self.errors.push(FieldError::not_supported(
                &context,
                of,
                &["atomic", "set", "map"],
            ));
        }

        if !keys.is_empty() {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match of {
                None => self.errors.push(FieldError::required(&context, detail)),
                Some("map") => {}
                Some(other) => self
                    .errors
                    .push(FieldError::invalid_str(&context, other, detail)),
            }
        }

        if of == Some("map") {
            self.map_keys(props, at);
        }
    }

    fn map_keys(&mut self, props: Props<'_>, at: &Path<'_>) {
        let keys = props.texts("x-kubernetes-list-map-keys");
        let (context, items_at) = (at.field("x-kubernetes-list-map-keys"), at.field("items"));
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(&context, detail));
        }

        let items = match props.items() {
            SubSchema::One(items) => items,
            SubSchema::Absent => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                return self.errors.push(FieldError::required(&items_at, detail));
            }
            SubSchema::Many(_) | SubSchema::Bool(_) => {
                let detail = "must only have a single schema if x-kubernetes-list-type is map";
                let several = props.get("items").map(as_json).unwrap_or_default();
                return self.invalid(
                    &items_at,
                    format!("{{\"Schema\":null,\"JSONSchemas\":{several}}}"),
                    detail,
                );
            }
        };

        if items.text("type") != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            let at = items_at.field("type");
            return self
                .errors
                .push(FieldError::invalid_str(&at, items.text("type"), detail));
        }

        let properties = items_at.field("properties");
        let mut seen = BTreeSet::new();
        for key in &keys {
            if self.errors.is_full() {
                return;
            }

            match items.property(key) {
                Some(below) if matches!(below.text("type"), "array" | "object") => {
                    let detail =
                        "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let at = properties.key(key);
                    // Upstream prints the type of the element here.
                    self.errors
                        .push(FieldError::invalid_str(&at.field("type"), "object", detail));
                }
                Some(_) => {}
                None => self.invalid(
                    &context,
                    list_text(&keys),
                    "entries must all be names of item properties",
                ),
            }

            if !seen.insert(key) {
                self.invalid(
                    &context,
                    list_text(&keys),
                    "must not contain duplicate entries",
                );
            }
        }
    }

    fn rules(&mut self, props: Props<'_>, at: &Path<'_>) {
        let at = at.field("x-kubernetes-validations");
        for (index, rule) in props.schemas("x-kubernetes-validations").enumerate() {
            self.rule(rule, props, &at.index(index));
        }
    }

    fn rule(&mut self, rule: Props<'_>, of: Props<'_>, at: &Path<'_>) {
        let given = |name: &str| rule.text(name);
        let (message, expression, path) = (
            given("message"),
            given("messageExpression"),
            given("fieldPath"),
        );

        let code = given("rule").trim();
        if code.is_empty() {
            self.errors.push(FieldError::required(
                &at.field("rule"),
                "rule is not specified",
            ));
        } else if !message.is_empty() && message.trim().is_empty() {
            self.invalid(
                &at.field("message"),
                quoted(message),
                "must be non-empty if specified",
            );
        } else if has_line_break(message.trim()) {
            self.invalid(
                &at.field("message"),
                quoted(message),
                "must not contain line breaks",
            );
        } else if has_line_break(code) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            self.errors
                .push(FieldError::required(&at.field("message"), detail));
        }

        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.errors
                .push(FieldError::required(&at.field("messageExpression"), detail));
        }

        if let Some(reason) = rule
            .optional_text("reason")
            .filter(|reason| !REASONS.contains(reason))
        {
            self.errors.push(FieldError::not_supported(
                &at.field("reason"),
                reason,
                &REASONS,
            ));
        }

        let context = at.field("fieldPath");
        if !path.is_empty() && path.trim().is_empty() {
            self.invalid(&context, quoted(path), "must be non-empty if specified");
        }

        if has_line_break(path) {
            self.invalid(&context, quoted(path), "must not contain line breaks");
        }

        if !path.is_empty()
            && super::conversion::fault(of).is_none()
            && field_path(path, of, true).is_err()
        {
            self.invalid(&context, quoted(path), "must be a valid path");
        }
    }

    fn wants_type(&mut self, props: Props<'_>, wanted: &str, detail: &str, at: &Path<'_>) {
        let at = at.field("type");
        match props.text("type") {
            "" => self.errors.push(FieldError::required(&at, detail)),
            found if found == wanted => {}
            found => self
                .errors
                .push(FieldError::invalid_str(&at, found, detail)),
        }
    }

    fn forbid(&mut self, at: &Path<'_>, detail: &str) {
        self.errors.push(FieldError::forbidden(at, detail));
    }

    fn invalid(&mut self, at: &Path<'_>, shown: String, detail: &str) {
        self.errors.push(FieldError::invalid(at, shown, detail));
    }
}

/// Whether this schema or one inside it has a fault.
pub(super) fn any(props: Props<'_>, fault: &impl Fn(Props<'_>) -> bool) -> bool {
    let below = |name: &str| props.named(name).any(|(_, below)| any(below, fault));
    fault(props)
        || match props.items() {
            SubSchema::One(items) => any(items, fault),
            SubSchema::Many(several) => several.into_iter().any(|items| any(items, fault)),
            _ => false,
        }
        || ["allOf", "anyOf", "oneOf"]
            .into_iter()
            .any(|name| props.schemas(name).any(|below| any(below, fault)))
        || props.schema("not").is_some_and(|below| any(below, fault))
        || props
            .additional()
            .one()
            .is_some_and(|below| any(below, fault))
        || [
            "properties",
            "patternProperties",
            "definitions",
            "dependencies",
        ]
        .into_iter()
        .any(below)
}

pub(super) fn has_unknown_type(props: Props<'_>) -> bool {
    let of = props.text("type");
    !of.is_empty() && !TYPES.contains(&of)
}

/// Whether a set has elements that are merged in parts.
pub(super) fn has_set_of_parts(props: Props<'_>) -> bool {
    let Some(items) = props
        .items()
        .one()
        .filter(|_| props.text("x-kubernetes-list-type") == "set")
    else {
        return false;
    };

    match items.text("type") {
        "array" => items
            .optional_text("x-kubernetes-list-type")
            .is_some_and(|of| of != "atomic"),
        "object" => items.text("x-kubernetes-map-type") != "atomic",
        _ => false,
    }
}

pub(super) fn has_unusable_keys(props: Props<'_>) -> bool {
    let mut errors = FieldErrors::default();
    unusable_keys(props, &Path::Root, &mut errors);
    !errors.is_empty()
}

/// Elements of sets and maps must not be nullable, and keys must be required or have a default.
fn unusable_keys(props: Props<'_>, at: &Path<'_>, errors: &mut FieldErrors) {
    let of = props.text("x-kubernetes-list-type");
    let Some(items) = props.items().one().filter(|_| matches!(of, "set" | "map")) else {
        return;
    };

    let at = at.field("items");
    if items.flag("nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {of}");
        errors.push(FieldError::forbidden(&at.field("nullable"), detail));
    }

    if of == "set" {
        return;
    }

    let required: BTreeSet<Text> = items.texts("required").into_iter().collect();
    let properties = at.field("properties");
    for key in props.texts("x-kubernetes-list-map-keys") {
        let Some(below) = items.property(&key) else {
            continue;
        };

        let at = properties.key(&key);
        if !required.contains(&key) && below.json("default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&at.field("default"), detail));
        }

        if below.flag("nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&at.field("nullable"), detail));
        }
    }
}

fn list_text(keys: &[Text]) -> String {
    as_json(&Value::Array(
        keys.iter().cloned().map(Value::String).collect(),
    ))
}

fn quoted(text: &str) -> String {
    Quoted(text).to_string()
}

fn has_line_break(text: &str) -> bool {
    text.contains(['\n', '\r'])
}

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
const REASONS: [&str; 4] = [
    "FieldValueDuplicate",
    "FieldValueForbidden",
    "FieldValueInvalid",
    "FieldValueRequired",
];
