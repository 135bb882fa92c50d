//! Event: something happened to an object.
//!
//! Two APIs share the kind: the core one, whose events were always loosely validated, and
//! `events.k8s.io`, which requires the newer fields, refuses the older ones, and lets a series grow
//! but nothing else change.

use coracle_api::field_error::{FieldError, refuse, shown};
use coracle_api::meta::validate::IMMUTABLE;
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names};
use k8s_openapi::api::core::v1::Event;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};
use crate::validate::{internal, text};
use crate::{OwnMetadata, Part};

const OWN: OwnMetadata = OwnMetadata::named(names::dns1123_subdomain);

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Events,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct Events;

impl Strategy for Events {
    type Object = Event;

    /// The core API does not validate metadata itself; `events.k8s.io` does so after the shared
    /// checks.
    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OwnMetadata::NONE
    }

    fn validate(&self, new: &View<'_, Event>, cx: &Context<'_>, errors: &mut Errors) {
        validate_loosely(new, cx, errors);
        if is_strict(cx) {
            OWN.validate(new.tree, cx, errors);
            validate_series(new, errors);
            validate_strictly(new, errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, Event>,
        old: &View<'_, Event>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        validate_loosely(new, cx, errors);

        if !is_strict(cx) {
            return;
        }

        OWN.validate_change(new.tree, old.tree, errors);

        if new.tree.get("series") != old.tree.get("series") {
            validate_series(new, errors);
        }

        for (name, shown) in IMMUTABLE_FIELDS {
            let found = new.tree.get(name);
            if found != old.tree.get(name) {
                let at = if name == "reportingComponent" {
                    "reportingController"
                } else {
                    name
                };

                errors.push(FieldError::invalid(
                    &Path::Root.field(at),
                    shown.of(found),
                    IMMUTABLE,
                ));
            }
        }
    }
}

/// Fields that an update must not change, in upstream's order, which has the reason twice; and how
/// errors show them.
const IMMUTABLE_FIELDS: [(&str, Rendering); 14] = [
    ("involvedObject", Rendering::Reference),
    ("reason", Rendering::Text),
    ("message", Rendering::Text),
    ("source", Rendering::Source),
    ("firstTimestamp", Rendering::Plain),
    ("lastTimestamp", Rendering::Plain),
    ("count", Rendering::Number),
    ("reason", Rendering::Text),
    ("type", Rendering::Text),
    ("eventTime", Rendering::Plain),
    ("action", Rendering::Text),
    ("related", Rendering::Pointer),
    ("reportingComponent", Rendering::Text),
    ("reportingInstance", Rendering::Text),
];

/// How an error shows a field.
#[derive(Clone, Copy)]
enum Rendering {
    Text,
    Number,
    /// As it is, or null.
    Plain,
    Source,
    Reference,
    /// A reference, or null.
    Pointer,
}

impl Rendering {
    fn of(self, found: Option<&Value>) -> String {
        let fields = |names: &[(&str, &str)]| {
            let part = |name: &str| {
                found
                    .and_then(|found| found.get(name)?.as_str())
                    .unwrap_or_default()
            };

            let fields: Vec<(&str, String)> = names
                .iter()
                .map(|(shown, name)| (*shown, internal::text(part(name))))
                .collect();

            internal::object(&fields)
        };

        match (self, found) {
            (Rendering::Source, _) => fields(&[("Component", "component"), ("Host", "host")]),
            (Rendering::Reference, _) | (Rendering::Pointer, Some(_)) => fields(&[
                ("Kind", "kind"),
                ("Namespace", "namespace"),
                ("Name", "name"),
                ("UID", "uid"),
                ("APIVersion", "apiVersion"),
                ("ResourceVersion", "resourceVersion"),
                ("FieldPath", "fieldPath"),
            ]),
            (_, Some(found)) => shown(found),
            (Rendering::Text, None) => "\"\"".to_owned(),
            (Rendering::Number, None) => "0".to_owned(),
            (Rendering::Plain | Rendering::Pointer, None) => "null".to_owned(),
        }
    }
}

fn is_strict(cx: &Context<'_>) -> bool {
    cx.resource.group == "events.k8s.io"
}

/// Validates what both APIs require.
fn validate_loosely(event: &View<'_, Event>, cx: &Context<'_>, errors: &mut Errors) {
    let namespace = event.tree.meta().namespace();
    let about = text(&event.involved_object.namespace);
    let is_new = event.event_time.is_some();
    let fits = match about {
        "" if is_new => matches!(namespace, "default" | "kube-system"),
        "" => matches!(namespace, "" | "default"),
        _ if is_new => true,
        about => about == namespace,
    };

    if !fits {
        let at = Path::Root.field("involvedObject.namespace");
        errors.push(FieldError::invalid_str(
            &at,
            about,
            "does not match event.namespace",
        ));
    }

    if is_new {
        validate_new_style(event, cx, errors);
    }

    refuse(
        &Path::Root.field("namespace"),
        namespace,
        names::dns1123_subdomain(namespace),
        errors,
    );
}

/// Validates events with an `eventTime`.
fn validate_new_style(event: &Event, cx: &Context<'_>, errors: &mut Errors) {
    let controller = text(&event.reporting_component);
    let at = if is_strict(cx) {
        "reportingController"
    } else {
        "reportingComponent"
    };

    if controller.is_empty() {
        errors.push(FieldError::required(&Path::Root.field(at), ""));
    }

    refuse(
        &Path::Root.field(at),
        controller,
        names::qualified_name(controller),
        errors,
    );

    let fields = [
        (
            "reportingInstance",
            text(&event.reporting_instance),
            SHORT,
            true,
        ),
        ("action", text(&event.action), SHORT, true),
        ("reason", text(&event.reason), SHORT, true),
        ("message", text(&event.message), LONG, false),
    ];

    for (name, found, most, needed) in fields {
        if needed && found.is_empty() {
            errors.push(FieldError::required(&Path::Root.field(name), ""));
        }
        if found.len() > most {
            let detail = format!("can have at most {most} characters");
            errors.push(FieldError::invalid_str(&Path::Root.field(name), "", detail));
        }
    }
}

/// Validates what only `events.k8s.io` requires of a new event.
fn validate_strictly(event: &View<'_, Event>, errors: &mut Errors) {
    if event.event_time.is_none() {
        errors.push(FieldError::required(&Path::Root.field("eventTime"), ""));
    }

    let kind = text(&event.type_);
    if !matches!(kind, "Normal" | "Warning") {
        let detail = format!("has invalid value: {kind}");
        errors.push(FieldError::invalid_str(
            &Path::Root.field("type"),
            "",
            detail,
        ));
    }

    let source = event.source.as_ref();
    let from = source.is_some_and(|source| {
        !text(&source.component).is_empty() || !text(&source.host).is_empty()
    });
    let unset = [
        ("firstTimestamp", event.first_timestamp.is_none()),
        ("lastTimestamp", event.last_timestamp.is_none()),
        ("count", event.count.unwrap_or_default() == 0),
        ("source", !from),
    ];

    for (name, _) in unset.into_iter().filter(|(_, unset)| !unset) {
        errors.push(FieldError::invalid_str(
            &Path::Root.field(name),
            "",
            "needs to be unset",
        ));
    }
}

fn validate_series(event: &Event, errors: &mut Errors) {
    let Some(series) = &event.series else { return };
    if series.count.unwrap_or_default() < 2 {
        errors.push(FieldError::invalid_str(
            &Path::Root.field("series.count"),
            "",
            "should be at least 2",
        ));
    }

    if series.last_observed_time.is_none() {
        errors.push(FieldError::required(
            &Path::Root.field("series.lastObservedTime"),
            "",
        ));
    }
}

/// The most characters of most texts of an event, and of its message.
const SHORT: usize = 128;
const LONG: usize = 1024;

fn print_row(event: &Event, now: Timestamp) -> Row {
    let first = match &event.first_timestamp {
        Some(time) => cells::since(Some(time), now),
        None => cells::since_micro(event.event_time.as_ref(), now),
    };

    let last = match (&event.series, &event.last_timestamp) {
        (Some(series), _) => cells::since_micro(series.last_observed_time.as_ref(), now),
        (None, Some(time)) => cells::since(Some(time), now),
        (None, None) => first.clone(),
    };

    let count = match (&event.series, event.count) {
        (Some(series), _) => series.count.unwrap_or_default(),
        // The newer API does not count an event that happened once.
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
        cells::name(&event.metadata)
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

/// The component that reports it, and its host.
fn source(event: &Event) -> String {
    let source = event.source.as_ref();
    let component = cells::or(
        source.and_then(|source| source.component.as_deref()),
        event.reporting_component.as_deref().unwrap_or_default(),
    );

    let instance = cells::or(
        source.and_then(|source| source.host.as_deref()),
        event.reporting_instance.as_deref().unwrap_or_default(),
    );

    if instance.is_empty() {
        component.to_string()
    } else {
        format!("{component}, {instance}")
    }
}
