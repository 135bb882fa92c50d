//! AlwaysAdmit and AlwaysDeny, which decide without looking.

use async_trait::async_trait;
use coracle_api::Value;

use super::{Attributes, Operation, Plugin};
use crate::ApiError;

const WHY: &str = "admission control is denying all modifications";

pub(super) struct AlwaysAdmit;

#[async_trait]
impl Plugin for AlwaysAdmit {
    fn handles(&self, _: Operation) -> bool {
        false
    }
}

pub(super) struct AlwaysDeny;

#[async_trait]
impl Plugin for AlwaysDeny {
    fn handles(&self, _: Operation) -> bool {
        true
    }

    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        Err(attributes.forbidden(object, WHY))
    }

    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        Err(attributes.forbidden(object.unwrap_or(&Value::Null), WHY))
    }
}
