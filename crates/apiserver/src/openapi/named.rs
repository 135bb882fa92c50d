//! Types that documents give a name, and what they are called.

use coracle_api::catalog::{Node, RawKind, Shape, Struct, scalar_description};
use coracle_api::{Map, Text, Value};

use super::names;
use super::operation::KindName;
use super::schema::{describe, scalar, structure};

/// The version of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    V2,
    V3,
}

impl Version {
    pub(super) fn reference(self, name: &str) -> Text {
        let prefix = match self {
            Version::V2 => "#/definitions/",
            Version::V3 => "#/components/schemas/",
        };
        let mut text = Text::with_capacity(prefix.len() + name.len());
        text.push_str(prefix);
        text.push_str(name);
        text
    }
}

/// A type that documents give a name.
#[derive(Clone, Copy)]
pub(super) enum Named<'c> {
    Struct(Struct<'c>),
    Scalar(&'static str, Shape),
}

impl<'c> Named<'c> {
    /// The named type at a node; `None`: its schema is inlined.
    pub(super) fn at(node: Node<'c>) -> Option<Named<'c>> {
        let name = match node.shape {
            Shape::Struct(id) => return Some(Named::Struct(node.page.struct_of(id))),
            Shape::Quantity => "io.k8s.apimachinery.pkg.api.resource.Quantity",
            Shape::Time => "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
            Shape::MicroTime => "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
            Shape::Duration => "io.k8s.apimachinery.pkg.apis.meta.v1.Duration",
            Shape::IntOrString => "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
            Shape::Raw(RawKind::RawExtension) => "io.k8s.apimachinery.pkg.runtime.RawExtension",
            Shape::Raw(RawKind::FieldsV1) => "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
            Shape::Raw(RawKind::Json) => {
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
            }
            Shape::SchemaOrArray(_) => {
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray"
            }
            Shape::SchemaOrBool(_) => {
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool"
            }
            Shape::SchemaOrStrings(_) => {
                "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray"
            }
            _ => return None,
        };

        Some(Named::Scalar(name, node.shape))
    }

    pub(super) fn name(self) -> String {
        match self {
            Named::Struct(of) => names::definition(of),
            Named::Scalar(name, _) => name.to_string(),
        }
    }

    /// Its definition. `kinds`: the kinds whose objects are of this type.
    pub(super) fn definition(self, version: Version, kinds: &[KindName<'_>]) -> Value {
        let mut schema = match self {
            Named::Struct(of) => structure(of, version),
            Named::Scalar(name, shape) => {
                let mut schema = scalar(shape, version);
                describe(&mut schema, scalar_description(name));
                schema
            }
        };

        if !kinds.is_empty() {
            let kinds: Vec<Value> = kinds
                .iter()
                .map(|kind| Value::Object(kind_value(*kind)))
                .collect();
            schema.insert("x-kubernetes-group-version-kind", kinds);
        }

        Value::Object(schema)
    }
}

pub(super) fn kind_value(kind: KindName<'_>) -> Map {
    let mut value = Map::new();
    value.insert("group", kind.group);
    value.insert("kind", kind.kind);
    value.insert("version", kind.version);
    value
}
