//! Namespace: its finalizer is set on create, and only `finalize` removes finalizers.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::meta::validate;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Path, Value, names};
use k8s_openapi::api::core::v1::Namespace;

use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, SPEC, Strategy, View};
use crate::validate::{items, text};
use crate::{OwnMetadata, Part};

/// The finalizer that the namespace controller removes when a namespace is empty.
const KUBERNETES: &str = "kubernetes";

/// The label by which selectors find a namespace by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &Namespaces,
    printer: printer!(print_row),
    ..Behaviour::DEFAULT
};

struct Namespaces;

impl Strategy for Namespaces {
    type Object = Namespace;

    fn own_metadata(&self, part: Part) -> OwnMetadata {
        OwnMetadata {
            on_update: part != Part::Main,
            ..OwnMetadata::named(names::dns1123_label)
        }
    }

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        label_with_name(new);
        let Some(namespace) = new.as_object_mut() else {
            return;
        };
        let mut status = Map::new();
        status.insert("phase", "Active");
        namespace.insert("status", status);

        let spec = namespace.object_mut("spec");
        if spec.get("finalizers").is_none_or(Value::is_null) {
            spec.insert("finalizers", Vec::new());
        }

        let finalizers = spec.get_or_insert_with("finalizers", || Value::Array(Vec::new()));
        if let Some(finalizers) = finalizers.as_array_mut()
            && !finalizers
                .iter()
                .any(|finalizer| finalizer.as_str() == Some(KUBERNETES))
        {
            finalizers.push(Value::string(KUBERNETES));
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        label_with_name(new);
        let Some(namespace) = new.as_object_mut() else {
            return;
        };
        let carried: &[&str] = match cx.part {
            Part::Finalize => &["status"],
            _ => &["spec"],
        };

        for name in carried {
            match old.get(name) {
                Some(value) => namespace.insert(*name, value.clone()),
                None => namespace.remove(name),
            };
        }
    }

    fn validate(&self, new: &View<'_, Namespace>, _: &Context<'_>, errors: &mut Errors) {
        let at = SPEC.field("finalizers");
        for name in finalizers(new) {
            validate_finalizer(name, &at, errors);
        }
    }

    fn validate_update(
        &self,
        new: &View<'_, Namespace>,
        old: &View<'_, Namespace>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        match cx.part {
            Part::Status => validate_phase(new, errors),
            Part::Finalize => {
                let at = SPEC.field("finalizers");
                for (index, name) in finalizers(new).iter().enumerate() {
                    validate_finalizer(name, &at.index(index), errors);
                }
            }
            _ => {
                self.validate_anew(new, cx, errors);
                self.own_metadata(cx.part)
                    .validate_change(new.tree, old.tree, errors);
            }
        }
    }

    /// The first delete marks a namespace in any case; the second may remove it.
    fn holds(&self, object: &Value) -> bool {
        let held = object
            .at(&["spec", "finalizers"])
            .and_then(Value::as_array)
            .is_some_and(|list| !list.is_empty());
        held || !object.meta().is_being_deleted()
    }

    fn mark_deleted(&self, object: &mut Value) {
        // Deleting the contents takes as long as it takes: there is no grace period to report.
        object.meta_mut().set_deletion_grace_period_seconds(None);
        if let Some(namespace) = object.as_object_mut() {
            namespace
                .object_mut("status")
                .insert("phase", "Terminating");
        }
    }
}

fn finalizers<'a>(namespace: &'a View<'_, Namespace>) -> &'a [String] {
    namespace
        .spec
        .as_ref()
        .map(|spec| items(&spec.finalizers))
        .unwrap_or_default()
}

fn validate_finalizer(name: &str, at: &Path<'_>, errors: &mut Errors) {
    refuse(at, name, names::qualified_name(name), errors);
    validate::known_finalizer(name, at, errors);
}

/// A namespace is `Terminating` exactly when it is being deleted.
fn validate_phase(namespace: &View<'_, Namespace>, errors: &mut Errors) {
    let phase = namespace
        .status
        .as_ref()
        .map(|status| text(&status.phase))
        .unwrap_or_default();

    let (wanted, detail) = if namespace.tree.meta().is_being_deleted() {
        (
            "Terminating",
            "may only be 'Terminating' if `deletionTimestamp` is not empty",
        )
    } else {
        (
            "Active",
            "may only be 'Active' if `deletionTimestamp` is empty",
        )
    };

    if phase != wanted {
        // The field's name is upstream's.
        errors.push(FieldError::invalid_str(
            &Path::Root.field("status.Phase"),
            phase,
            detail,
        ));
    }
}

fn label_with_name(namespace: &mut Value) {
    let name = namespace.meta().name().to_string();
    namespace.meta_mut().set_label(NAME_LABEL, Some(&name));
}

fn print_row(namespace: &Namespace, now: Timestamp) -> Row {
    let phase = namespace
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    row![
        cells::name(&namespace.metadata),
        phase.unwrap_or_default(),
        cells::age(&namespace.metadata, now)
    ]
}
