//! Server-side apply: field ownership, and applying a configuration to an object.
//!
//! A request handler uses [`Tracker`] (`tracker.rs`): it reads the owners from
//! `metadata.managedFields` (`owners/`, encoded as FieldsV1, `fields_v1/`), lets the engine
//! (`engine.rs`) compute changes and ownership, and writes the owners back. The engine inspects
//! objects only through walks (`walk/`) over a value and its type (`types/`): a type of the
//! catalogue, a schema created at run time, or one deduced from the value. Field sets (`set.rs`,
//! `element.rs`) are the results of walks and the contents of owners. Besides: `rules.rs`
//! (validation of manager names), `last_applied.rs` (migration from client-side apply), `scale.rs`
//! (owners of replicas as the `scale` subresource sees them), `times.rs` (writes that change
//! nothing), `overlay.rs` (configurations of admission policies, which own nothing). No clock, no conversion, no I/O: all are passed in.

mod element;
mod engine;
pub mod fields_v1;
mod filter;
mod last_applied;
mod order;
mod overlay;
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
pub use overlay::{Foreign, OverlayError, overlay};
pub use owners::{Conflict, Conflicts, EntryError, Form, Manager, Operation, Owner, Owners};
pub use scale::Scale;
pub use set::Set;
pub use times::keep_times_of_unchanged;
pub use tracker::{ApplyError, Tracker, UpdateError, only_version};
pub use types::{CatalogueType, Declared, Scalar, SchemaError, Type};
pub use version::{Conversion, Convert, VersionError};
pub use walk::{TypeError, TypeErrors};
