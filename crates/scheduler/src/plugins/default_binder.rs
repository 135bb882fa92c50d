//! `DefaultBinder`: tells the API which node a pod has.

use std::sync::Arc;

use crate::framework::{Bind, Parts};

pub(super) const NAME: &str = "DefaultBinder";

/// How the API is told is the shell's business, and handed in.
pub(super) fn parts(binder: Arc<dyn Bind>) -> Parts {
    Parts {
        bind: Some(binder),
        ..Parts::default()
    }
}
