//! DenyServiceExternalIPs: Services get no new external IPs.

use std::collections::BTreeSet;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::Part;

use super::{Attributes, Plugin};
use crate::ApiError;

pub(super) struct DenyServiceExternalIPs;

#[async_trait]
impl Plugin for DenyServiceExternalIPs {
    async fn validate(
        &self,
        service: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let is_service = attributes.is_of("", "services") && attributes.cx.part == Part::Main;
        let Some(service) = service.filter(|_| is_service) else {
            return Ok(());
        };

        let had = attributes.old.map(addresses).unwrap_or_default();
        if addresses(service).is_subset(&had) {
            return Ok(());
        }

        let why = "Use of external IPs is denied by admission control";
        Err(attributes.forbidden(service, why))
    }
}

fn addresses(service: &Value) -> BTreeSet<&str> {
    let list = service
        .at(&["spec", "externalIPs"])
        .and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}
