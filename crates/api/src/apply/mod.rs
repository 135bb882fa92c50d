//! Server-side apply: who owns which fields of an object, and what becomes of it when a
//! configuration is applied.
//!
//! A request goes through [`Tracker`] (`tracker.rs`): it reads the owners from
//! `metadata.managedFields` (`owners/`, whose sets are FieldsV1 texts, `fields_v1/`), lets the
//! engine (`engine.rs`) find what changes and whose it is, and writes the owners back. The engine
//! knows objects only through walks (`walk/`) over a value with its type in hand (`types/`): a
//! place of the catalogue, a schema made at run time, or nothing but the value itself. Sets of
//! fields (`set.rs`, `element.rs`) are what walks answer with and owners are made of. Beside that
//! road: `rules.rs` (names of managers), `last_applied.rs` (objects from client-side apply),
//! `scale.rs` (owners of replicas, seen through the subresource), `times.rs` (writes that change
//! nothing). No clock, no conversion, no I/O: all is handed in.

mod element;
mod engine;
pub mod fields_v1;
mod filter;
mod last_applied;
mod order;
mod owners;
pub mod rules;
mod scale;
mod set;
#[cfg(test)]
mod tests;
mod times;
mod tracker;
mod types;
mod version;
mod walk;

pub use element::{Element, FieldPath};
pub use engine::{EngineError, PruneError};
pub use filter::{Filter, Filters, Step};
pub use last_applied::LAST_APPLIED;
pub use owners::{Conflict, Conflicts, EntryError, Form, Manager, Operation, Owner, Owners};
pub use scale::Scale;
pub use set::Set;
pub use times::keep_times_of_unchanged;
pub use tracker::{ApplyError, Tracker, UpdateError, only_version};
pub use types::{Declared, Place, Scalar, SchemaError, Type};
pub use version::{Conversion, Convert, VersionError};
pub use walk::{TypeError, TypeErrors};
