//! CustomResourceDefinition: kept, but its resources are not served yet, and whoever writes one is told.

use coracle_api::Value;
use serde::de::IgnoredAny;

use crate::registry::strategy::{Context, Judged, Strategy};
use crate::registry::{OwnMetadata, Part, keep_metadata};

const NOT_SERVED: &str =
    "CustomResourceDefinition is stored, but this server does not serve its resources yet";

pub(in crate::registry) struct CustomResourceDefinitions;

impl Strategy for CustomResourceDefinitions {
    /// Nothing is judged, so nothing is decoded.
    type Object = IgnoredAny;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata::NONE
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        if cx.part == Part::Status {
            keep_metadata(new, old);
        }
    }

    fn warnings(
        &self,
        _: &Judged<'_, IgnoredAny>,
        _: Option<&Judged<'_, IgnoredAny>>,
        cx: &Context<'_>,
    ) -> Vec<String> {
        if cx.keeps_object() { vec![NOT_SERVED.to_owned()] } else { Vec::new() }
    }
}
