//! A question: an expression, where it stands, and what its variables are.

use std::collections::BTreeMap;

use serde::Serialize;

/// As the oracle reads it; see its README.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Question {
    pub(crate) expr: String,
    /// Name to type, as messages print types.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) vars: BTreeMap<String, String>,
    /// Name to an expression of the value.
    #[serde(rename = "let", skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) lets: BTreeMap<String, String>,
}

impl Question {
    pub(crate) fn of(expr: impl Into<String>) -> Self {
        Self {
            expr: expr.into(),
            ..Self::default()
        }
    }
}
