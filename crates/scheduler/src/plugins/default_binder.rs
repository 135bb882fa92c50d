//! `DefaultBinder`: binds pods through the API.

use std::sync::Arc;

use crate::framework::{Bind, Parts};

pub(super) const NAME: &str = "DefaultBinder";

/// The binder is passed in by the event loop.
pub(super) fn parts(binder: Arc<dyn Bind>) -> Parts {
    Parts {
        bind: Some(binder),
        ..Parts::default()
    }
}
