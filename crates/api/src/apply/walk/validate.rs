//! Whether a value is of its type, as far as ownership depends on it.

use std::collections::BTreeSet;
use std::fmt;

use super::list::element_of;
use crate::Value;
use crate::apply::element::Element;
use crate::apply::order;
use crate::apply::types::{By, Case, Fields, List, Scalar, Type};
use crate::go_text::{GoSyntax, GoValue, go_type};

/// Whether a list may hold two elements with the same step. Objects may have got such elements long
/// ago, so only what is applied may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::apply) enum Duplicates {
    Allowed,
    Refused,
}

/// What is wrong at one place.
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

/// Everything that is wrong with an object, in upstream's words.
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

    /// The same errors, seen from the value above.
    pub(super) fn below(mut self, element: &Element) -> TypeErrors {
        for error in &mut self.0 {
            error.path.insert_str(0, &element.to_string());
        }
        self
    }
}

/// Checks a value and all below it.
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
    .value(value, of, &Above::Top);
    if errors.0.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// Checks a value of the type of another one that has been found good: what both have in common
/// need not be looked at again.
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
    .members(map.iter().filter(differs), &fields, &Above::Top);

    if errors.0.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

/// The way down to a value: put into words only when there is something to say.
enum Above<'a> {
    Top,
    Field(&'a Above<'a>, &'a str),
    Element(&'a Above<'a>, &'a Element),
    Index(&'a Above<'a>, usize),
}

impl fmt::Display for Above<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Above::Top => Ok(()),
            Above::Field(above, name) => write!(out, "{above}.{name}"),
            Above::Element(above, element) => write!(out, "{above}{element}"),
            Above::Index(above, index) => write!(out, "{above}[{index}]"),
        }
    }
}

/// No more errors than these are told of: each names all that stands above its field.
const MOST_ERRORS: usize = 100;

struct Validator<'e> {
    duplicates: Duplicates,
    errors: &'e mut TypeErrors,
}

impl Validator<'_> {
    fn value(&mut self, value: &Value, of: Type<'_>, above: &Above<'_>) {
        let atom = of.atom();
        if let Value::Raw(_) = value {
            // Where anything is allowed, the text need not be read to know that it is.
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
                other => {
                    self.complain(above, format!("expected list, got &{{{}}}", GoValue(other)))
                }
            },
            Case::Map(fields) => match value {
                Value::Null => {}
                Value::Object(map) => self.members(map.iter(), &fields, above),
                other => self.complain(above, format!("expected map, got &{{{}}}", GoValue(other))),
            },
            Case::Nothing => self.complain(above, "schema error: invalid atom: inlined".to_owned()),
        }
    }

    fn scalar(&mut self, value: &Value, scalar: Scalar, above: &Above<'_>) {
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
        self.complain(above, message);
    }

    fn list(&mut self, items: &[Value], list: &List<'_>, above: &Above<'_>) {
        if let By::Nothing = list.by {
            for (index, item) in items.iter().enumerate() {
                self.value(item, list.item, &Above::Index(above, index));
            }
            return;
        }

        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match element_of(list, item) {
                Ok(element) => element,
                // An element that cannot be named ends the list: nothing below it can be named
                // either.
                Err(error) => return self.complain(above, format!("element {index}: {error}")),
            };
            self.value(item, list.item, &Above::Element(above, &element));

            if self.duplicates == Duplicates::Refused {
                if seen.contains(&element) {
                    self.complain(above, format!("duplicate entries for key {element}"));
                }
                seen.insert(element);
            }
        }
    }

    fn members<'m>(
        &mut self,
        members: impl Iterator<Item = (&'m str, &'m Value)>,
        fields: &Fields<'_>,
        above: &Above<'_>,
    ) {
        for (name, value) in members {
            let above = Above::Field(above, name);
            match fields.member(name) {
                Some((of, _)) => self.value(value, of, &above),
                // The rest of the members is not looked at.
                None => return self.complain(&above, "field not declared in schema".to_owned()),
            }
        }
    }

    fn complain(&mut self, above: &Above<'_>, message: String) {
        if self.errors.0.len() < MOST_ERRORS {
            self.errors.0.push(TypeError {
                path: above.to_string(),
                message,
            });
        }
    }
}
