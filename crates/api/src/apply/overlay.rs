//! Applies a configuration to an object without ownership, as mutating admission policies do.
//!
//! The configuration is merged as server-side apply merges it, but nothing is ever removed, no
//! manager owns the result, and what is owned as a whole cannot be set.

use super::element::{Element, FieldPath};
use super::types::{Case, Relationship, Scalar, Type};
use super::walk::{self, Duplicates, TypeError, TypeErrors, element_at, validate};
use crate::Value;

/// Why a configuration was not merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverlayError {
    #[error("failed to convert patch object to typed object: {0}")]
    Config(TypeErrors),
    #[error("invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}", joined(.0))]
    Atomic(Vec<FieldPath>),
    #[error("failed to convert original object to typed object: {0}")]
    Object(TypeErrors),
    #[error("failed to merge patch: {0}")]
    Merge(TypeErrors),
}

/// A value of the configuration that no object can have. The configuration has any scalar in its
/// place.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// Fields and indices.
    pub path: Vec<Element>,
    /// Go's type of it.
    pub go_type: &'static str,
    /// As messages show it.
    pub shown: String,
}

/// Merges `config` into `object`; both are of the type `of`.
pub fn overlay(
    object: &Value,
    config: &Value,
    foreign: &[Foreign],
    of: Type<'_>,
) -> Result<Value, OverlayError> {
    check(config, foreign, of).map_err(OverlayError::Config)?;
    let mut atomic = Vec::new();
    find_atomic(config, of, &mut Vec::new(), &mut atomic);
    if !atomic.is_empty() {
        return Err(OverlayError::Atomic(atomic));
    }

    validate(object, of, Duplicates::Allowed).map_err(OverlayError::Object)?;
    walk::merge(object, config, of).map_err(OverlayError::Merge)
}

/// Validates the configuration; errors about foreign values are about them, not about what is in
/// their place.
fn check(config: &Value, foreign: &[Foreign], of: Type<'_>) -> Result<(), TypeErrors> {
    let mut errors = match validate(config, of, Duplicates::Refused) {
        Ok(()) => TypeErrors::default(),
        Err(errors) => errors,
    };

    for error in foreign
        .iter()
        .filter_map(|foreign| foreign.error(config, of))
    {
        errors.0.retain(|other| other.path != error.path);
        errors.0.push(error);
    }

    if errors.0.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}

impl Foreign {
    /// Why it is not allowed where it is. `None`: something above it is refused.
    fn error(&self, config: &Value, of: Type<'_>) -> Option<TypeError> {
        let (mut value, mut of) = (config, of);
        let mut path = FieldPath::default();
        for step in &self.path {
            (value, of) = match (step, of.atom().case(value)) {
                (Element::Field(name), Case::Map(fields)) => {
                    path.0.push(step.clone());
                    (value.get(name)?, fields.member(name)?.0)
                }
                (Element::Index(index), Case::List(list)) => {
                    let item = value.as_array()?.get(usize::try_from(*index).ok()?)?;
                    path.0.push(match list.relationship {
                        Relationship::Atomic => step.clone(),
                        _ => element_at(&list, item)?,
                    });
                    (item, list.item)
                }
                _ => return None,
            };
        }

        Some(TypeError {
            path: path.to_string(),
            message: self.message(of),
        })
    }

    fn message(&self, of: Type<'_>) -> String {
        let shown = &self.shown;
        let atom = of.atom();
        if atom.map.is_some() {
            return format!("expected map, got &{{{shown}}}");
        }

        match atom.scalar {
            Some(Scalar::String) => {
                format!("expected string, got &value.valueUnstructured{{Value:{shown}}}")
            }
            Some(Scalar::Number) => {
                format!("expected numeric (int or float), got {}", self.go_type)
            }
            Some(Scalar::Bool) => format!("expected boolean, got &{{{shown}}}"),
            Some(Scalar::Any) => format!("expected any scalar, got &{{{shown}}}"),
            None => format!("expected list, got &{{{shown}}}"),
        }
    }
}

/// The places at which a configuration sets what is owned as a whole. As in upstream, members that
/// no field declares are not looked at.
fn find_atomic(config: &Value, of: Type<'_>, path: &mut Vec<Element>, found: &mut Vec<FieldPath>) {
    let atom = of.atom();
    match (config, atom.map, atom.list) {
        (Value::Object(members), Some(fields), _) => {
            if fields.whole {
                found.push(FieldPath(path.clone()));
            }

            for (name, value) in members.iter() {
                let Some(of) = fields.field(name) else {
                    continue;
                };
                path.push(Element::field(name));
                find_atomic(value, of, path, found);
                path.pop();
            }
        }
        (Value::Array(items), _, Some(list)) => {
            if matches!(list.relationship, Relationship::Atomic) {
                found.push(FieldPath(path.clone()));
            }

            for (index, item) in (0..).zip(items) {
                path.push(Element::Index(index));
                find_atomic(item, list.item, path, found);
                path.pop();
            }
        }
        _ => {}
    }
}

fn joined(paths: &[FieldPath]) -> String {
    let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
    paths.join(", ")
}
