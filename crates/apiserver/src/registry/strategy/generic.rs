//! The strategy of kinds that have none: the road alone.

use coracle_api::names::{self, Rule};
use serde::de::IgnoredAny;

use super::Strategy;

pub(super) struct Generic;

impl Strategy for Generic {
    /// Nothing is judged, so nothing is decoded.
    type Object = IgnoredAny;

    fn name_rule(&self) -> Rule {
        names::path_segment_name
    }
}
