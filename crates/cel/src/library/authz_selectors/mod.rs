//! Selectors of questions to the authorizer.

mod table;

pub(super) use table::FUNCTIONS;

mod run {
    pub(super) use crate::library::authz::{field_selector, label_selector};
}
