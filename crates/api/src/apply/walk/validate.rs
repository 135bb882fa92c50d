//! Validates a value against its type, as far as ownership depends on it.

use std::collections::BTreeSet;
use std::fmt;

use super::list::element_of;
use crate::Value;
use crate::apply::element::Element;
use crate::apply::order;
use crate::apply::types::{Case, Fields, List, Relationship, Scalar, Type};
use crate::go_text::{GoSyntax, GoValue, go_type};

/// Whether a list may have two elements with the same key. Existing objects may have such elements;
/// applied configurations may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apply) enum Duplicates {
    Allowed,
    Refused,
}

/// One type error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeError {
    /// `.spec.ports[port=80]`; empty at the top.
    pub path: String,
    pub message: String,
}

impl fmt::Display for TypeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(out, "{}: ", self.path)?;
        }
        out.write_str(&self.message)
    }
}

/// All type errors of an object, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TypeErrors(pub Vec<TypeError>);

impl fmt::Display for TypeErrors {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [only] => write!(out, "{only}"),
            several => {
                out.write_str("errors:")?;
                several
                    .iter()
                    .try_for_each(|error| write!(out, "\n  {error}"))
            }
        }
    }
}

impl std::error::Error for TypeErrors {}

impl TypeErrors {
    pub(super) fn one(message: impl fmt::Display) -> TypeErrors {
        TypeErrors(vec![TypeError {
            path: String::new(),
            message: message.to_string(),
        }])
    }

    /// The same errors, with the path relative to the parent value.
    pub(super) fn below(mut self, element: &Element) -> TypeErrors {
        for error in &mut self.0 {
            error.path.insert_str(0, &element.to_string());
        }
        self
    }
}

/// Validates a value and everything below it.
pub(in crate::apply) fn validate(
    value: &Value,
    of: Type<'_>,
    duplicates: Duplicates,
) -> Result<(), TypeErrors> {
    let mut errors = TypeErrors::default();
    Validator {
        duplicates,
        errors: &mut errors,
    }
    .value(value, of, &Parents::Top);
    if errors.0.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Validates a value next to a validated one of the same type: what both have in common is skipped.
pub(in crate::apply) fn validate_beside(
    value: &Value,
    good: &Value,
    of: Type<'_>,
    duplicates: Duplicates,
) -> Result<(), TypeErrors> {
    let (Value::Object(map), Case::Map(fields)) = (value, of.atom().case(value)) else {
        return validate(value, of, duplicates);
    };
    let mut errors = TypeErrors::default();

    let differs = |(name, value): &(&str, &Value)| good.get(name) != Some(*value);
    Validator {
        duplicates,
        errors: &mut errors,
    }
    .members(map.iter().filter(differs), &fields, &Parents::Top);

    if errors.0.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// The path to a value, formatted only for errors.
enum Parents<'a> {
    Top,
    Field(&'a Parents<'a>, &'a str),
    Element(&'a Parents<'a>, &'a Element),
    Index(&'a Parents<'a>, usize),
}

impl fmt::Display for Parents<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parents::Top => Ok(()),
            Parents::Field(above, name) => write!(out, "{above}.{name}"),
            Parents::Element(above, element) => write!(out, "{above}{element}"),
            Parents::Index(above, index) => write!(out, "{above}[{index}]"),
        }
    }
}

/// Maximum number of errors: each contains the whole path of its field.
const MOST_ERRORS: usize = 100;

struct Validator<'e> {
    duplicates: Duplicates,
    errors: &'e mut TypeErrors,
}

impl Validator<'_> {
    fn value(&mut self, value: &Value, of: Type<'_>, above: &Parents<'_>) {
        let atom = of.atom();
        if let Value::Raw(_) = value {
            // Where anything is allowed, the text need not be parsed.
            let anything = atom.scalar.is_some() && atom.list.is_some() && atom.map.is_some();
            if !anything {
                self.value(&order::tree(value), of, above);
            }
            return;
        }

        match atom.case(value) {
            Case::Scalar(scalar) => self.scalar(value, scalar, above),
            Case::List(list) => match value {
                Value::Null => {}
                Value::Array(items) => self.list(items, &list, above),
                other => self.report(above, format!("expected list, got &{{{}}}", GoValue(other))),
            },
            Case::Map(fields) => match value {
                Value::Null => {}
                Value::Object(map) => self.members(map.iter(), &fields, above),
                other => self.report(above, format!("expected map, got &{{{}}}", GoValue(other))),
            },
            Case::Nothing => self.report(above, "schema error: invalid atom: inlined".to_owned()),
        }
    }

    fn scalar(&mut self, value: &Value, scalar: Scalar, above: &Parents<'_>) {
        let fits = match scalar {
            Scalar::String => matches!(value, Value::String(_) | Value::Null),
            Scalar::Number => matches!(value, Value::Int(_) | Value::Float(_) | Value::Null),
            Scalar::Bool => matches!(value, Value::Bool(_) | Value::Null),
            Scalar::Any => !matches!(value, Value::Array(_) | Value::Object(_)),
        };

        if fits {
            return;
        }

        let message = match scalar {
            Scalar::String => {
                format!(
                    "expected string, got &value.valueUnstructured{{Value:{}}}",
                    GoSyntax(value)
                )
            }
            Scalar::Number => format!("expected numeric (int or float), got {}", go_type(value)),
            Scalar::Bool => format!("expected boolean, got &{{{}}}", GoValue(value)),
            Scalar::Any => format!("expected any scalar, got &{{{}}}", GoValue(value)),
        };
        self.report(above, message);
    }

    fn list(&mut self, items: &[Value], list: &List<'_>, above: &Parents<'_>) {
        if let Relationship::Atomic = list.relationship {
            for (index, item) in items.iter().enumerate() {
                self.value(item, list.item, &Parents::Index(above, index));
            }
            return;
        }

        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match element_of(list, item) {
                Ok(element) => element,
                // An element without a key ends the list: nothing below it can be named either.
                Err(error) => return self.report(above, format!("element {index}: {error}")),
            };
            self.value(item, list.item, &Parents::Element(above, &element));

            if self.duplicates == Duplicates::Refused {
                if seen.contains(&element) {
                    self.report(above, format!("duplicate entries for key {element}"));
                }
                seen.insert(element);
            }
        }
    }

    fn members<'m>(
        &mut self,
        members: impl Iterator<Item = (&'m str, &'m Value)>,
        fields: &Fields<'_>,
        above: &Parents<'_>,
    ) {
        for (name, value) in members {
            let above = Parents::Field(above, name);
            match fields.member(name) {
                Some((of, _)) => self.value(value, of, &above),
                // The rest of the members is not validated.
                None => return self.report(&above, "field not declared in schema".to_owned()),
            }
        }
    }

    fn report(&mut self, above: &Parents<'_>, message: String) {
        if self.errors.0.len() < MOST_ERRORS {
            self.errors.0.push(TypeError {
                path: above.to_string(),
                message,
            });
        }
    }
}
