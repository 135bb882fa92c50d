//! Conversion between trees and the typed structs of `k8s-openapi`.
//!
//! A typed struct is a read-only view of a tree: it does not preserve what was absent, null or
//! explicitly zero. Code that decides reads the view; code that changes an object changes the tree.
//! The reverse (`to_tree`) is for objects that a component creates.

mod de;
mod ser;
mod size;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;

use crate::Value;
pub use size::size;

/// Why a tree does not fit the type, or the reverse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TypedError(String);

impl serde::de::Error for TypedError {
    fn custom<T: std::fmt::Display>(message: T) -> TypedError {
        TypedError(message.to_string())
    }
}

impl serde::ser::Error for TypedError {
    fn custom<T: std::fmt::Display>(message: T) -> TypedError {
        TypedError(message.to_string())
    }
}

/// A typed view of a tree.
pub fn from_tree<T: DeserializeOwned>(tree: &Value) -> Result<T, TypedError> {
    T::deserialize(de::TreeReader::new(tree))
}

/// A typed view of an object that may be in another version than that of its type: for kinds whose
/// versions differ only in name. managedFields are skipped: they are not used, and decoding them
/// takes longer than all the rest.
pub fn view<T: DeserializeOwned>(object: &Value) -> Result<T, TypedError> {
    let Some(map) = object.as_object() else {
        return from_tree(object);
    };
    T::deserialize(MapDeserializer::new(de::members_of_object(map)))
}

/// The tree of a typed struct.
pub fn to_tree<T: Serialize>(object: &T) -> Result<Value, TypedError> {
    object.serialize(ser::TreeWriter)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::codec::json;

    const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z",
        "labels":{"a":"b"},"managedFields":[{"fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}},"manager":"m"}],"name":"web-0"},
        "spec":{"containers":[{"image":"i","name":"c","ports":[{"containerPort":80}],
        "livenessProbe":{"httpGet":{"port":"http"}},"resources":{"limits":{"cpu":"1"}}}]}}"#;

    fn tree() -> Value {
        let kind = crate::catalog::BUILTIN.kind_of("v1", "Pod").unwrap();
        json::decode(
            POD.as_bytes(),
            Some(crate::catalog::BUILTIN.root(kind).node()),
        )
        .unwrap()
        .value
    }

    #[test]
    fn a_view_has_everything_but_the_owners_of_fields() {
        let pod: Pod = view(&tree()).unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some("web-0"));
        assert_eq!(pod.metadata.managed_fields, None);
        let mut without = tree();
        without.meta_mut().members().remove("managedFields");
        assert_eq!(pod, from_tree(&without).unwrap());
    }

    #[test]
    fn a_pod_round_trips() {
        let pod: Pod = from_tree(&tree()).unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some("web-0"));

        let spec = pod.spec.as_ref().unwrap();
        assert_eq!(
            spec.containers[0].ports.as_ref().unwrap()[0].container_port,
            80
        );

        assert!(
            pod.metadata.managed_fields.as_ref().unwrap()[0]
                .fields_v1
                .is_some()
        );

        let back = to_tree(&pod).unwrap();
        assert_eq!(json::to_string(&back), json::to_string(&tree()));
    }

    #[test]
    fn a_view_ignores_the_version() {
        let mut tree = tree();
        tree.as_object_mut()
            .unwrap()
            .insert("apiVersion", "v1beta1");
        assert!(from_tree::<Pod>(&tree).is_err());
        assert_eq!(
            view::<Pod>(&tree).unwrap().metadata.name.as_deref(),
            Some("web-0")
        );
    }

    #[test]
    fn a_tree_of_another_shape_is_refused() {
        let tree =
            json::parse(br#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":5}}"#).unwrap();
        assert!(
            from_tree::<Pod>(&tree)
                .unwrap_err()
                .to_string()
                .contains("expected a string")
        );
    }
}
