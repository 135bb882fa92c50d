//! Walks over values along their types.
//!
//! [`validate`] comes first: the others expect validated values. [`field_set`] returns the fields
//! that a configuration sets, [`compare`] the fields that differ between two objects, [`merge`]
//! merges a configuration into an object, [`remove`] removes fields from one. [`schema_change`]
//! adapts a field set to a schema that has changed since the set was written.

mod compare;
mod field_set;
mod list;
mod merge;
mod remove;
mod schema_change;
mod validate;

pub(super) use compare::{Comparison, compare};
pub(super) use field_set::{field_set, with_named_fields};
pub(super) use list::element_at;
pub(super) use merge::merge;
pub(super) use remove::remove;
pub(super) use schema_change::reconciled;
pub(super) use validate::{Duplicates, validate, validate_beside};
pub use validate::{TypeError, TypeErrors};
