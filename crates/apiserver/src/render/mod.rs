//! Encodes objects as the client requested.
//!
//! `Accept` has two parts: a form (JSON, YAML, protobuf) and a shape (the object itself, its
//! metadata only, a table). A [`Rendering`] is both, negotiated once per request. An object is an
//! entry of the cache or a tree ([`Shown`]), and is written as JSON in its shape: `whole`,
//! `partial` or `table`. Other forms are converted from that JSON. [`EventWriter`] does the same
//! for the events of a watch. Status codes and headers are set by `answer`.
//!
//! Nothing here does I/O; the current time is passed in.

mod chunks;
mod events;
mod form;
mod partial;
mod pretty;
mod shown;
mod table;
mod whole;

use std::borrow::Cow;

use bytes::Bytes;
use coracle_api::catalog::{BUILTIN, Kind, Resource, Struct};
use coracle_api::codec::media_type::{self, Accepted, Endpoint, MediaType, MetaVersion, Transform};
use coracle_api::codec::{cbor, json, protobuf, yaml};
use coracle_api::time::Timestamp;

use crate::ApiError;
use crate::cache::Custom;
use crate::definitions::Version;
use crate::registry::{List, Scope};
use crate::request::Query;
use crate::served::Served;
use crate::storage_version::StorageVersion;
pub use events::EventWriter;
pub use form::{Form, typed_json};
pub use shown::Shown;
use table::Table;

/// What is rendered: objects of one resource.
#[derive(Clone, Copy)]
struct Objects<'a> {
    resource: &'a Resource,
    /// What clients see.
    kind: &'a Kind,
    of: Struct<'a>,
    storage_version: StorageVersion<'a>,
    /// Of a custom resource.
    custom: Option<(&'a Custom, &'a Version)>,
}

impl<'a> Objects<'a> {
    fn of(scope: &Scope<'a>) -> Objects<'a> {
        let Scope {
            resource,
            kind,
            of,
            storage_version,
            custom,
            ..
        } = *scope;

        Objects {
            resource,
            kind,
            of,
            storage_version,
            custom,
        }
    }

    /// For renderings that outlive a request.
    fn served(served: &'a Served) -> Objects<'a> {
        let (resource, kind, of, storage_version) = (
            served.resource(),
            served.kind(),
            served.of(),
            served.storage_version(),
        );
        Objects {
            resource,
            kind,
            of,
            storage_version,
            custom: served.custom(),
        }
    }

    /// What a list of them is.
    fn list_kind(&self) -> Cow<'a, str> {
        match self.custom {
            Some((custom, _)) => Cow::Borrowed(&custom.list_kind),
            None => Cow::Owned(format!("{}List", self.kind.name)),
        }
    }
}

/// The body of a long list. An item that cannot be encoded aborts it.
pub type LongList = Box<dyn Iterator<Item = Result<Bytes, ApiError>> + Send>;

/// How a client wants to see objects.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendering {
    pub form: Form,
    shape: Shape,
}

/// Which part of the objects is encoded.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    Whole,
    /// The metadata of one object.
    Partial(MetaVersion),
    /// The metadata of every object of a list.
    PartialList(MetaVersion),
    Table {
        version: MetaVersion,
        /// `includeObject` as it was given: it is validated only when there is something to encode.
        include: String,
    },
}

impl Shape {
    /// Appends the JSON of one object in this shape.
    fn write(
        &self,
        shown: Shown<'_>,
        objects: &Objects<'_>,
        now: Timestamp,
        with_columns: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        match self {
            Shape::Whole => shown.write(objects, out),
            Shape::Partial(version) => partial::write(shown, objects, *version, out),
            Shape::PartialList(_) => return Err(not_a_list(objects)),
            Shape::Table { version, include } => {
                Table::new(objects, *version, include, now)?.write_one(shown, with_columns, out)?;
            }
        }
        Ok(())
    }

    /// The type of what is written, by which protobuf encodes it. A table has no such form.
    fn meta_type(&self) -> Option<Struct<'static>> {
        let kind = match self {
            Shape::Partial(_) => "PartialObjectMetadata",
            Shape::PartialList(_) => "PartialObjectMetadataList",
            Shape::Whole | Shape::Table { .. } => return None,
        };
        BUILTIN
            .kind("meta.k8s.io", "v1", kind)
            .map(|kind| BUILTIN.root(kind))
    }
}

impl Rendering {
    /// The best of what the client accepts and the endpoint offers.
    pub fn negotiate(
        accept: &str,
        query: &Query,
        user_agent: &str,
        endpoint: Endpoint,
    ) -> Result<Rendering, ApiError> {
        let accepted = media_type::negotiate(accept, endpoint)
            .map_err(|refused| ApiError::not_acceptable(refused.to_string()))?;
        let Accepted {
            media_type,
            transform,
            pretty,
            ..
        } = accepted;

        let shape = match transform {
            None | Some(Transform::ApiGroupDiscoveryList) => Shape::Whole,
            Some(Transform::PartialObjectMetadata(version)) => Shape::Partial(version),
            Some(Transform::PartialObjectMetadataList(version)) => Shape::PartialList(version),
            Some(Transform::Table(version)) => {
                let include = query.get("includeObject").unwrap_or_default().to_string();
                Shape::Table { version, include }
            }
        };

        let pretty = pretty || pretty::is_wanted(query, user_agent);
        Ok(Rendering {
            form: Form { media_type, pretty },
            shape,
        })
    }

    /// Refuses a form that cannot be encoded, before a request changes anything. `list`: the
    /// response is a list.
    pub fn check(&self, list: bool, scope: &Scope<'_>) -> Result<(), ApiError> {
        match &self.shape {
            Shape::Partial(_) if list => Err(a_list(&Objects::of(scope))),
            Shape::PartialList(_) if !list => Err(not_a_list(&Objects::of(scope))),
            Shape::Table { include, .. } => table::Include::parse(include).map(drop),
            Shape::Whole | Shape::Partial(_) | Shape::PartialList(_) => Ok(()),
        }
    }

    /// One object.
    pub fn object(
        &self,
        shown: Shown<'_>,
        scope: &Scope<'_>,
        now: Timestamp,
    ) -> Result<Vec<u8>, ApiError> {
        self.object_of(shown, &Objects::of(scope), now)
    }

    fn object_of(
        &self,
        shown: Shown<'_>,
        objects: &Objects<'_>,
        now: Timestamp,
    ) -> Result<Vec<u8>, ApiError> {
        // A Status has one shape, whatever the client would rather see.
        let shape = if shown.kind(objects).name == "Status" {
            &Shape::Whole
        } else {
            &self.shape
        };

        if *shape == Shape::Whole && self.form.media_type == MediaType::Protobuf {
            return whole::protobuf(shown, objects);
        }

        if *shape == Shape::Whole && self.form.media_type == MediaType::Cbor {
            let node = shown.of(objects).node();
            return Ok(cbor::encode(&shown.tree(objects), Some(node)));
        }

        let mut out = Vec::new();
        shape.write(shown, objects, now, true, &mut out)?;

        self.finish(out, shape.meta_type())
    }

    /// A list of objects.
    pub fn list(
        &self,
        list: &List,
        scope: &Scope<'_>,
        now: Timestamp,
    ) -> Result<Vec<u8>, ApiError> {
        self.list_of(list, &Objects::of(scope), now)
    }

    /// A long list, piece by piece; `Err` gives back a list that is short enough to be sent at
    /// once.
    pub fn long_list(
        &self,
        list: List,
        served: &Served,
        gzip: bool,
        now: Timestamp,
    ) -> Result<Result<LongList, ApiError>, List> {
        if whole::size(&list) < chunks::LONG || self.form.media_type == MediaType::Cbor {
            return Err(list);
        }
        let pieces = chunks::Pieces::new(list, served.clone(), self.clone(), now);
        Ok(pieces.map(|pieces| -> LongList {
            match gzip {
                true => Box::new(chunks::Compressed::new(pieces)),
                false => Box::new(pieces.map(|piece| piece.map(Bytes::from))),
            }
        }))
    }

    fn list_of(
        &self,
        list: &List,
        objects: &Objects<'_>,
        now: Timestamp,
    ) -> Result<Vec<u8>, ApiError> {
        let mut out = Vec::new();
        match &self.shape {
            Shape::Whole => whole::write_list(list, objects, &mut out),
            Shape::Partial(_) => return Err(a_list(objects)),
            Shape::PartialList(version) => partial::write_list(list, objects, *version, &mut out),
            Shape::Table { version, include } => {
                Table::new(objects, *version, include, now)?.write_list(list, &mut out)?;
            }
        }

        let of = match &self.shape {
            Shape::Whole => whole::list_type(objects),
            other => other.meta_type(),
        };

        self.finish(out, of)
    }

    /// Converts the JSON of an object to the requested form.
    fn finish(&self, json: Vec<u8>, of: Option<Struct<'static>>) -> Result<Vec<u8>, ApiError> {
        match self.form.media_type {
            MediaType::Json => Ok(self.form.finish(json)),
            MediaType::Yaml => {
                let tree = json::parse(&json).expect("this server wrote it");
                Ok(yaml::print(&tree).into_bytes())
            }
            MediaType::Protobuf => to_protobuf(&json, of),
            MediaType::Cbor => Ok(to_cbor(&json, of)),
        }
    }
}

fn to_cbor(text: &[u8], of: Option<Struct<'static>>) -> Vec<u8> {
    let node = of.map(Struct::node);
    let tree = json::decode(text, node)
        .expect("this server wrote it")
        .value;
    cbor::encode(&tree, node)
}

fn to_protobuf(text: &[u8], of: Option<Struct<'static>>) -> Result<Vec<u8>, ApiError> {
    let of = of.ok_or_else(|| ApiError::internal("no protobuf form of this kind is known"))?;
    let tree = json::decode(text, Some(of.node()))
        .expect("this server wrote it")
        .value;
    protobuf::encode(&tree, of).map_err(|error| ApiError::internal(error.to_string()))
}

/// `meta.k8s.io/v1`.
fn meta_api_version(version: MetaVersion) -> &'static str {
    match version {
        MetaVersion::V1 => "meta.k8s.io/v1",
        MetaVersion::V1beta1 => "meta.k8s.io/v1beta1",
    }
}

fn a_list(objects: &Objects<'_>) -> ApiError {
    ApiError::not_acceptable(format!(
        "you requested PartialObjectMetadata, but the requested object is a list ({}List)",
        go_type(objects)
    ))
}

fn not_a_list(objects: &Objects<'_>) -> ApiError {
    ApiError::not_acceptable(format!(
        "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
        go_type(objects)
    ))
}

/// What upstream calls the type that it keeps objects of a resource in: `*apps.Deployment`.
fn go_type(objects: &Objects<'_>) -> String {
    if objects.custom.is_some() {
        return "*unstructured.Unstructured".to_owned();
    }

    let group = objects
        .resource
        .storage
        .as_ref()
        .map_or(&objects.resource.group, |storage| &storage.group);

    let package = match group.split('.').next().unwrap_or_default() {
        "" => "core",
        "internal" => "apiserverinternal",
        label => label,
    };

    format!("*{package}.{}", objects.kind.name)
}

#[cfg(test)]
mod tests;
