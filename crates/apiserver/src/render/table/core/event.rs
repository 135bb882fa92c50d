//! The row of an Event, of either API: both are kept as this one.

use coracle_api::time::Timestamp;
use k8s_openapi::api::core::v1::Event;

use crate::render::table::Row;
use crate::render::table::cells::{name, or, since, since_micro};

pub(super) fn row(event: &Event, now: Timestamp) -> Row {
    let first = match &event.first_timestamp {
        Some(time) => since(Some(time), now),
        None => since_micro(event.event_time.as_ref(), now),
    };

    let last = match (&event.series, &event.last_timestamp) {
        (Some(series), _) => since_micro(series.last_observed_time.as_ref(), now),
        (None, Some(time)) => since(Some(time), now),
        (None, None) => first.clone(),
    };

    let count = match (&event.series, event.count) {
        (Some(series), _) => series.count.unwrap_or_default(),
        // The newer API does not count what happened once.
        (None, None | Some(0)) => 1,
        (None, Some(count)) => count,
    };

    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    row![
        last,
        text(&event.type_),
        text(&event.reason),
        target(event),
        text(&event.involved_object.field_path),
        source(event),
        event.message.as_deref().unwrap_or_default().trim(),
        first,
        count,
        name(&event.metadata)
    ]
}

/// `pod/web-0`.
fn target(event: &Event) -> String {
    let kind = event
        .involved_object
        .kind
        .as_deref()
        .unwrap_or_default()
        .to_lowercase();
    match event.involved_object.name.as_deref().unwrap_or_default() {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

/// Who reports it, and from where.
fn source(event: &Event) -> String {
    let source = event.source.as_ref();
    let component = or(
        source.and_then(|source| source.component.as_deref()),
        event.reporting_component.as_deref().unwrap_or_default(),
    );

    let instance = or(
        source.and_then(|source| source.host.as_deref()),
        event.reporting_instance.as_deref().unwrap_or_default(),
    );

    if instance.is_empty() {
        component.to_string()
    } else {
        format!("{component}, {instance}")
    }
}
