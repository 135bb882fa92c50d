//! Label selectors: all requirements must match, or nothing is selected.

use std::fmt;
use std::str::FromStr;

use super::Lookup;
use super::parse::{self, LabelSelectorError};
use super::requirement::{Operator, Requirement};
use crate::fuzz::steps;
use crate::value::{Map, Path, Text, Value};

/// A selector over labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LabelSelector {
    /// Selects no object: what an absent `LabelSelector` means.
    Nothing,
    /// Selects the objects for which all of these hold, in the order of their keys; every object,
    /// if there are none.
    All(Vec<Requirement>),
}

impl LabelSelector {
    pub const fn everything() -> LabelSelector {
        LabelSelector::All(Vec::new())
    }

    /// A selector from requirements in any order.
    pub fn new(mut requirements: Vec<Requirement>) -> LabelSelector {
        steps::count(requirements.len() * requirements.len().checked_ilog2().unwrap_or(0) as usize);
        requirements.sort_by(|one, other| one.key().cmp(other.key()));
        LabelSelector::All(requirements)
    }

    /// The selector of a map of labels, as in a Service or a ReplicationController. They are not
    /// validated: the object was.
    pub fn from_labels(labels: &Map) -> LabelSelector {
        let equal = |(key, value): (&str, &Value)| {
            let value = Text::new(value.as_str().unwrap_or_default());
            Requirement::trusted(Text::new(key), Operator::Equals, vec![value])
        };
        LabelSelector::new(labels.iter().map(equal).collect())
    }

    /// The selector of a `LabelSelector` in an object. An absent one selects nothing, an empty one
    /// everything.
    pub fn from_value(selector: Option<&Value>) -> Result<LabelSelector, LabelSelectorError> {
        let Some(selector) = selector.and_then(Value::as_object) else {
            return Ok(LabelSelector::Nothing);
        };

        let mut requirements = Vec::new();
        for (key, value) in selector
            .get("matchLabels")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::iter)
        {
            let value = Text::new(value.as_str().unwrap_or_default());
            requirements.push(Requirement::new(
                Text::new(key),
                Operator::Equals,
                vec![value],
                &Path::Root,
            )?);
        }

        for expression in selector
            .get("matchExpressions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let text = |name| {
                Text::new(
                    expression
                        .get(name)
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                )
            };

            let values = expression
                .get("values")
                .and_then(Value::as_array)
                .unwrap_or_default();

            let values = values
                .iter()
                .map(|value| Text::new(value.as_str().unwrap_or_default()))
                .collect();

            let operator = set_operator(&text("operator"))?;
            requirements.push(Requirement::new(
                text("key"),
                operator,
                values,
                &Path::Root,
            )?);
        }

        Ok(LabelSelector::new(requirements))
    }

    pub fn matches(&self, labels: &(impl Lookup + ?Sized)) -> bool {
        match self {
            LabelSelector::Nothing => false,
            LabelSelector::All(requirements) => requirements
                .iter()
                .all(|requirement| requirement.matches(labels)),
        }
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        matches!(self, LabelSelector::All(requirements) if requirements.is_empty())
    }

    pub fn requirements(&self) -> &[Requirement] {
        match self {
            LabelSelector::Nothing => &[],
            LabelSelector::All(requirements) => requirements,
        }
    }

    /// The exact value that the first requirement on a label demands.
    pub fn exact_value(&self, key: &str) -> Option<&str> {
        self.requirements()
            .iter()
            .find(|requirement| requirement.key() == key)?
            .exact_value()
    }
}

fn set_operator(operator: &str) -> Result<Operator, LabelSelectorError> {
    match operator {
        "In" => Ok(Operator::In),
        "NotIn" => Ok(Operator::NotIn),
        "Exists" => Ok(Operator::Exists),
        "DoesNotExist" => Ok(Operator::DoesNotExist),
        _ => Err(LabelSelectorError::Operator(operator.to_owned())),
    }
}

impl FromStr for LabelSelector {
    type Err = LabelSelectorError;

    /// Parses `app=web,tier in (front,back),!canary`.
    fn from_str(text: &str) -> Result<LabelSelector, LabelSelectorError> {
        Ok(LabelSelector::new(parse::parse(text)?))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements().iter().enumerate() {
            if index > 0 {
                out.write_str(",")?;
            }
            write!(out, "{requirement}")?;
        }
        Ok(())
    }
}
