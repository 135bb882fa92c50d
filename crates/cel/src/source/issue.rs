//! Errors with their places, shown as cel-go shows them.

use std::sync::Arc;

use super::{Location, Source};

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    pub location: Location,
    pub message: String,
}

/// Why an expression does not compile: all errors of the first stage that found any.
#[derive(Clone, Debug)]
pub struct Issues {
    pub issues: Vec<Issue>,
    pub source: Arc<Source>,
}
