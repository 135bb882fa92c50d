//! Which function makes the rows of which kind.

use coracle_api::Value;
use coracle_api::catalog::{Kind, Resource};
use coracle_api::time::Timestamp;
use coracle_api::typed::{TypedError, from_tree};

use super::Row;

/// Makes the row of an object at a moment.
pub(super) type Printer = fn(&Value, Timestamp) -> Result<Row, TypedError>;

/// The printer of a kind, as a request to the resource is answered with it.
pub(super) fn of(resource: &Resource, kind: &Kind) -> Option<Printer> {
    let _ = (resource, kind);
    None
}
