//! Rows of tables: what `kubectl get` prints for an object.
//!
//! The columns of a resource are data of the catalogue. Each kind has a pure function from its
//! typed view to a [`Row`]; [`cells`] has what many kinds print.

pub(crate) mod cells;
#[cfg(test)]
pub(crate) mod tests;

use coracle_api::Value;
use coracle_api::catalog::{Column, Kind, Resource};
use coracle_api::time::Timestamp;
use coracle_api::typed::TypedError;

use crate::autoscaling::scale;
use crate::table::behaviour;

/// The row of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub cells: Vec<Value>,
    /// Set for an object that will not change any more.
    pub completed: Option<Completed>,
}

/// Why an object will not change any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    pub reason: &'static str,
    pub message: &'static str,
}

/// Prints the row of an object at the given time.
pub type Printer = fn(&Value, Timestamp) -> Result<Row, TypedError>;

/// A row of these cells: texts, numbers, flags.
macro_rules! row {
    ($($cell:expr),* $(,)?) => {
        $crate::print::Row { cells: vec![$(coracle_api::Value::from($cell)),*], completed: None }
    };
}

/// A [`Printer`] of a function from the typed object and the time to a row.
macro_rules! printer {
    ($print:path) => {
        Some(|tree, now| Ok($print(&coracle_api::typed::from_tree(tree)?, now)))
    };
}

/// How a kind is printed where a request to the resource is answered with it: the printer, if it
/// has one, and its columns. Objects are printed as they are stored: a kind that is stored as
/// another group's has that group's rows.
pub fn printer<'r>(resource: &'r Resource, kind: &Kind) -> (Option<Printer>, &'r [Column]) {
    if kind.group == "autoscaling" && kind.name == "Scale" {
        return (scale::PRINTER, &scale::COLUMNS);
    }
    if kind.name != resource.kind {
        return (None, &resource.columns);
    }

    let stored = resource.storage.as_ref().map(|storage| &storage.group);
    let group = stored.unwrap_or(&kind.group);
    (
        behaviour(group, &resource.plural).printer,
        &resource.columns,
    )
}
