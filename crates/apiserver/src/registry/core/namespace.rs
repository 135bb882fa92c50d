//! Namespace: its finalizer is there from the start, and only `finalize` takes finalizers away.

use coracle_api::names::{self, Rule};
use coracle_api::{Map, Value};
use k8s_openapi::api::core::v1::Namespace;

use crate::ApiError;
use crate::registry::Part;
use crate::registry::strategy::{Context, Strategy};

/// What the namespace controller takes away when a namespace is empty.
const KUBERNETES: &str = "kubernetes";

/// The label by which selectors find a namespace by its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

const BEING_EMPTIED: &str = "The system is ensuring all content is removed from this namespace.  Upon completion, this \
     namespace will automatically be purged by the system.";

pub(in crate::registry) struct Namespaces;

impl Strategy for Namespaces {
    type Object = Namespace;

    fn name_rule(&self) -> Rule {
        names::dns1123_label
    }

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        label_with_name(new);
        let Some(namespace) = new.as_object_mut() else { return };
        let mut status = Map::new();
        status.insert("phase", "Active");
        namespace.insert("status", status);
        let finalizers =
            namespace.object_mut("spec").get_or_insert_with("finalizers", || Value::Array(Vec::new()));
        if let Some(finalizers) = finalizers.as_array_mut()
            && !finalizers.iter().any(|finalizer| finalizer.as_str() == Some(KUBERNETES))
        {
            finalizers.push(Value::string(KUBERNETES));
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, cx: &Context<'_>) {
        label_with_name(new);
        let Some(namespace) = new.as_object_mut() else { return };
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

    fn holds(&self, object: &Value) -> bool {
        object.at(&["spec", "finalizers"]).and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    }

    fn mark_deleted(&self, object: &mut Value) {
        if let Some(namespace) = object.as_object_mut() {
            namespace.object_mut("status").insert("phase", "Terminating");
        }
    }

    fn check_delete(&self, object: &Value, cx: &Context<'_>) -> Result<(), ApiError> {
        if object.meta().is_being_deleted() && self.holds(object) {
            return Err(ApiError::conflict(cx.scope.resource, object.meta().name(), BEING_EMPTIED));
        }
        Ok(())
    }
}

fn label_with_name(namespace: &mut Value) {
    let name = namespace.meta().name().to_string();
    namespace.meta_mut().set_label(NAME_LABEL, Some(&name));
}
