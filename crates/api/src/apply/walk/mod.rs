//! Walks over values with their types in hand.
//!
//! [`validate`] is the gate: everything else expects values that passed it. [`field_set`] tells
//! which fields a configuration names, [`compare`] which fields differ between two objects,
//! [`merge`] lays a configuration over an object, [`remove`] takes fields out of one.
//! [`schema_change`] brings a set of fields in line with a schema that has changed since the set
//! was written.

mod compare;
mod field_set;
mod list;
mod merge;
mod remove;
mod schema_change;
mod validate;

pub(super) use compare::{Comparison, compare};
pub(super) use field_set::{field_set, with_named_fields};
pub(super) use merge::merge;
pub(super) use remove::remove;
pub(super) use schema_change::reconciled;
pub(super) use validate::{Duplicates, validate, validate_beside};
pub use validate::{TypeError, TypeErrors};
