//! Label selectors and field selectors.
//!
//! A selector is created once, from a query's text or from an object's `LabelSelector`, and matched
//! often: matching does not allocate and looks labels up in place ([`Lookup`]).

mod field;
mod label;
mod parse;
mod requirement;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::BTreeMap;

use crate::value::Map;

pub use field::{FieldLabelError, FieldSelector, FieldSelectorError, FieldTerm, metadata_field};
pub use label::LabelSelector;
pub use parse::{LabelSelectorError, RequirementError};
pub(crate) use requirement::shown;
pub use requirement::{Operator, Requirement};
pub use validate::{Values, has_bad_value, validate};

/// Strings by key: an object's labels, or its selectable fields.
pub trait Lookup {
    fn lookup(&self, key: &str) -> Option<&str>;
}

impl Lookup for Map {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.str(key)
    }
}

impl Lookup for BTreeMap<String, String> {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

/// Few pairs, in any order.
impl Lookup for [(&str, &str)] {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.iter()
            .find(|(name, _)| *name == key)
            .map(|(_, value)| *value)
    }
}

/// No labels.
impl<L: Lookup + ?Sized> Lookup for Option<&L> {
    fn lookup(&self, key: &str) -> Option<&str> {
        self.as_ref()?.lookup(key)
    }
}
