//! The row of a ValidatingWebhookConfiguration.

use coracle_api::time::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;

use crate::render::table::Row;
use crate::render::table::cells::{age, count, name};

pub(super) fn row(configuration: &ValidatingWebhookConfiguration, now: Timestamp) -> Row {
    let webhooks = configuration.webhooks.iter().flatten().count();
    row![
        name(&configuration.metadata),
        count(webhooks),
        age(&configuration.metadata, now)
    ]
}
