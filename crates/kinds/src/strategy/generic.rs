//! The strategy of kinds that have none of their own.

use serde::de::IgnoredAny;

use super::Strategy;
use crate::{OwnMetadata, Part};

pub(crate) struct Generic;

impl Strategy for Generic {
    /// Nothing is validated, so nothing is decoded.
    type Object = IgnoredAny;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata::NONE
    }
}
