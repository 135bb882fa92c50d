//! The row of a MutatingWebhookConfiguration.

use coracle_api::time::Timestamp;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;

use crate::render::table::Row;
use crate::render::table::cells::{age, count, name};

pub(super) fn row(configuration: &MutatingWebhookConfiguration, now: Timestamp) -> Row {
    let webhooks = configuration.webhooks.iter().flatten().count();
    row![
        name(&configuration.metadata),
        count(webhooks),
        age(&configuration.metadata, now)
    ]
}
