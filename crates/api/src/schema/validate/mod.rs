//! Validates a value against its schema, with upstream's errors.
//!
//! The walk follows value and schema together. It allocates nothing for valid values: paths are
//! links on the stack, and messages are formatted only for violations. Of alternatives (`anyOf`,
//! `oneOf`) each is first tried without formatting messages; upstream then reports the errors of
//! the closest one, so the walk counts passed checks just as upstream does.
//!
//! On an update unchanged parts are not reported ([`Schema::validate_update`]).

mod branches;
mod number;
mod violation;

use violation::{Outcome, Violation, quoted};

use super::node::{Additional, Checks, Flags, Node, NodeId, Type, Types};
use super::{Schema, correlate};
use crate::field_error::FieldErrors;
use crate::value::Path;
use crate::{Map, Value};

impl Schema {
    /// Validates a value of the root. `at` is its path: the root, or `status` of a larger object.
    pub fn validate(&self, value: &Value, at: &Path<'_>) -> FieldErrors {
        self.validate_node(self.root, value, at)
    }

    /// As [`Schema::validate`], without errors of unchanged parts.
    pub fn validate_update(&self, new: &Value, old: &Value, at: &Path<'_>) -> FieldErrors {
        self.errors(self.root, new, Some(old), at)
    }

    /// Validates a value of some node.
    pub(crate) fn validate_node(&self, node: NodeId, value: &Value, at: &Path<'_>) -> FieldErrors {
        self.errors(node, value, None, at)
    }

    fn errors(
        &self,
        node: NodeId,
        value: &Value,
        old: Option<&Value>,
        at: &Path<'_>,
    ) -> FieldErrors {
        let mut outcome = Outcome::with_messages();
        Walk {
            schema: self,
            base: at,
        }
        .value(self.node(node), value, old, &Path::Root, &mut outcome);
        outcome.into_errors()
    }
}

struct Walk<'s> {
    schema: &'s Schema,
    /// The path of the root of the walk.
    base: &'s Path<'s>,
}

impl Walk<'_> {
    /// Validates a field, an element or the root; an unchanged one is always valid.
    fn value(
        &self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        let before = out.mark();
        self.schema_of(node, value, old, at, out);
        if out.failed_since(&before)
            && let Some(old) = old
            && correlate::same(self.schema, node, value, old)
        {
            out.reset_to(&before);
        }
    }

    /// Validates a value against one schema.
    fn schema_of(
        &self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        // Upstream counts its checks; without any, the count is needed only by alternatives.
        if !node.flags.has(Flags::CHECKS) && !out.counts() {
            return;
        }

        let checks = node.checks.as_deref();
        if value.is_null() {
            return self.null(node, checks, at, out);
        }

        self.types(node, checks, value, at, out);

        if let Some(checks) = checks {
            self.branches(checks, value, at, out);
        }

        out.matched(2);

        match value {
            Value::String(text) => self.text(checks, text, at, out),
            Value::Int(_) | Value::Float(_) => self.number(node, checks, value, at, out),
            Value::Array(items) => self.array(node, checks, items, old, at, out),
            Value::Object(map) => {
                // Upstream checks the enum first.
                self.enumeration(checks, value, at, out);
                self.object(node, checks, map, old, at, out);
                out.matched(3);
                return;
            }
            _ => {}
        }

        self.enumeration(checks, value, at, out);
        out.matched(2);
    }

    fn null(&self, node: &Node, checks: Option<&Checks>, at: &Path<'_>, out: &mut Outcome) {
        if node.types == Types::Any || node.nullable {
            out.matched(1);
        } else {
            out.fail(|| self.wrong_type(node.types.name(), "null", at));
        }
        self.enumeration(checks, &Value::Null, at, out);
    }

    fn types(
        &self,
        node: &Node,
        checks: Option<&Checks>,
        value: &Value,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        let format = checks.map_or("", |checks| checks.format_name.as_str());
        if node.types == Types::Any && format.is_empty() {
            return;
        }

        out.matched(1);
        let (found, found_format) = type_of(value);
        let fits = node.types.includes(found)
            || match value {
                Value::Float(number) => {
                    node.types.includes(Type::Integer) && number::is_whole(*number)
                }
                Value::Int(_) => node.types.includes(Type::Number),
                _ => false,
            };

        if fits {
            return out.matched(1);
        }

        let text_like = matches!(value, Value::String(_) | Value::Array(_));
        if format.is_empty() {
            out.fail(|| self.wrong_type(node.types.name(), found.name(), at));
        } else if !text_like && found_format != format {
            out.fail(|| self.wrong_type(format, found_format, at));
        } else if text_like
            && !node.types.includes(Type::Number)
            && !node.types.includes(Type::Integer)
        {
            // Left to the format.
            out.matched(1);
        } else {
            out.fail(|| self.wrong_type(node.types.name(), found.name(), at));
        }
    }

    fn text(&self, checks: Option<&Checks>, text: &str, at: &Path<'_>, out: &mut Outcome) {
        out.matched(1);
        let Some(checks) = checks else { return };

        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = checks.max_length.filter(|most| length() > *most) {
            out.fail(|| self.too_long(most, at));
        } else if let Some(least) = checks.min_length.filter(|least| length() < *least) {
            let wanted = || format!("should be at least {least} chars long");
            out.fail(|| self.invalid(quoted(text), &wanted(), at));
        } else if let Some(pattern) = checks
            .pattern
            .as_ref()
            .filter(|pattern| !pattern.is_match(text))
        {
            out.fail(|| {
                self.invalid(
                    quoted(text),
                    &format!("should match '{}'", pattern.as_str()),
                    at,
                )
            });
        }

        if let Some(format) = checks.format {
            out.matched(1);
            if !format.matches(text) {
                out.fail(|| self.wrong_format(&checks.format_name, text, at));
            }
        }
    }

    fn array(
        &self,
        node: &Node,
        checks: Option<&Checks>,
        items: &[Value],
        old: Option<&Value>,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        if let Some(item) = self.schema.item(node)
            && (item.flags.has(Flags::CHECKS) || out.counts())
        {
            let before = old.and_then(|old| correlate::Elements::of(node, old));
            for (index, value) in items.iter().enumerate() {
                let old = before.as_ref().and_then(|before| before.of_element(value));
                self.value(item, value, old, &at.index(index), out);
            }
        }

        out.matched(2);
        let Some(checks) = checks else { return };

        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(least) = checks.min_items.filter(|least| count < *least) {
            out.fail(|| {
                self.invalid(
                    count.to_string(),
                    &format!("should have at least {least} items"),
                    at,
                )
            });
        }

        if let Some(most) = checks.max_items.filter(|most| count > *most) {
            out.fail(|| self.too_many(count, most, "items", at));
        }
        if checks.unique_items && super::lists::has_duplicates(items) {
            out.fail(|| self.invalid(quoted(""), "shouldn't contain duplicates", at));
        }
    }

    fn object(
        &self,
        node: &Node,
        checks: Option<&Checks>,
        map: &Map,
        old: Option<&Value>,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        if let Some(checks) = checks {
            self.count_members(checks, map, at, out);
        }

        let mut properties = node.in_order();
        for (name, value) in map.iter() {
            match (properties.find(name), node.additional) {
                (Some(id), _) => {
                    let below = self.schema.node(id);
                    self.value(
                        below,
                        value,
                        old_member(old, name, at),
                        &at.field(name),
                        out,
                    );
                }
                (None, Additional::Node(id)) => {
                    let below = self.schema.node(id);
                    self.value(below, value, old_member(old, name, at), &at.key(name), out);
                }
                (None, Additional::Refused) => out.fail(|| self.forbidden_property(name, at)),
                (None, Additional::Any | Additional::Unsaid) => {}
            }
        }

        for name in checks
            .map(|checks| checks.required.as_slice())
            .unwrap_or_default()
        {
            if !map.contains_key(name) {
                out.fail(|| self.required(&at.key(name)));
            }
        }
    }

    fn count_members(&self, checks: &Checks, map: &Map, at: &Path<'_>, out: &mut Outcome) {
        let count = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(least) = checks.min_properties.filter(|least| count < *least) {
            out.fail(|| {
                self.invalid(
                    count.to_string(),
                    &format!("should have at least {least} properties"),
                    at,
                )
            });
        }

        if let Some(most) = checks.max_properties.filter(|most| count > *most) {
            out.fail(|| self.too_many(count, most, "properties", at));
        }
    }

    fn enumeration(
        &self,
        checks: Option<&Checks>,
        value: &Value,
        at: &Path<'_>,
        out: &mut Outcome,
    ) {
        let allowed = checks
            .map(|checks| checks.enumeration.as_slice())
            .unwrap_or_default();
        if !allowed.is_empty()
            && !allowed
                .iter()
                .any(|allowed| equals_enum_value(value, allowed))
        {
            out.fail(|| self.not_supported(value, allowed, at));
        }
    }
}

/// The member before the update. The object's identity is never exempt in upstream.
fn old_member<'o>(old: Option<&'o Value>, name: &str, at: &Path<'_>) -> Option<&'o Value> {
    let type_meta = matches!(at, Path::Root) && matches!(name, "apiVersion" | "kind");
    old?.get(name).filter(|_| !type_meta)
}

/// Whether a value equals one of an enum. Numbers are converted to the enum's type of number.
#[expect(clippy::cast_precision_loss, reason = "upstream converts, too")]
fn equals_enum_value(value: &Value, allowed: &Value) -> bool {
    match (value, allowed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Int(value), Value::Float(allowed)) => *value as f64 == *allowed,
        (Value::Float(value), Value::Int(allowed)) => number::truncated(*value) == *allowed,
        // Go converts a number to a character.
        (Value::Int(value), Value::String(allowed)) => {
            let character = u32::try_from(*value)
                .ok()
                .and_then(char::from_u32)
                .unwrap_or('\u{fffd}');
            allowed.as_str() == character.encode_utf8(&mut [0; 4])
        }
        _ => value == allowed,
    }
}

/// The type of a value, and the format upstream infers for it.
fn type_of(value: &Value) -> (Type, &'static str) {
    match value {
        Value::Bool(_) => (Type::Boolean, ""),
        Value::Int(_) => (Type::Integer, "int64"),
        Value::Float(_) => (Type::Number, "float64"),
        Value::String(_) => (Type::String, ""),
        Value::Array(_) => (Type::Array, ""),
        // Raw text stands for any JSON; it was checked when it was decoded.
        Value::Null | Value::Raw(_) | Value::Object(_) => (Type::Object, ""),
    }
}
