//! What plugins are asked about: an object, what is done to it, and who does it.

use std::borrow::Cow;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::catalog::{Kind, Resource, split_api_version};
use coracle_api::defaults;
use coracle_kinds::{ApiError, Context, Part};

use super::Notes;
use crate::definitions::Compiled;
use crate::request::{DeleteOptions, WriteOptions};
use crate::storage_version::StorageVersion;
use crate::webhook::conversion::Conversion;

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    Create,
    Update,
    Delete,
    /// A stream to a pod, or a proxy. The object is the options of the request.
    Connect,
}

impl Operation {
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// The options of the operation.
#[derive(Clone, Copy, Debug)]
pub enum Options<'a> {
    /// A connection has none: they are its object.
    None,
    Create(&'a WriteOptions),
    Update(&'a WriteOptions),
    Delete(&'a DeleteOptions),
}

impl Options<'_> {
    /// As an object of `meta.k8s.io/v1`. A patch has the options of the create or update that it is.
    pub fn object(&self) -> Option<Value> {
        match self {
            Options::None => None,
            Options::Create(options) => Some(options.object("CreateOptions")),
            Options::Update(options) => Some(options.object("UpdateOptions")),
            Options::Delete(options) => Some(options.object()),
        }
    }
}

/// A request, as plugins see it.
///
/// Objects are in the storage version; [`Attributes::shown`] and [`Attributes::taken_in`] convert
/// them. Objects that are not stored (a Scale, a Binding, the options of a connection) are in the
/// version that they were sent in.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    /// The request: resource, kind of the object as the client sees it, user, dry run.
    pub cx: Context<'a>,
    pub operation: Operation,
    /// As paths name it; empty for the object itself.
    pub subresource: &'a str,
    /// Empty where the name is yet to be generated, and for the objects of a deleted collection.
    pub name: &'a str,
    /// The object that is there: on an update and on a delete.
    pub old: Option<&'a Value>,
    pub options: Options<'a>,
    pub storage_version: StorageVersion<'a>,
    /// Of a custom resource.
    pub definition: Option<&'a Compiled>,
    /// Converts custom resources whose definition names a webhook for that.
    pub conversion: &'a Conversion,
    /// What plugins leave beside their verdict.
    pub notes: &'a Notes,
}

impl<'a> Attributes<'a> {
    /// The namespace of the request. That of a namespace is itself.
    pub fn namespace(&self) -> &'a str {
        if self.is_of("", "namespaces") {
            self.name
        } else {
            self.cx.namespace
        }
    }

    /// Whether objects of this resource are written.
    pub(super) fn is_of(&self, group: &str, plural: &str) -> bool {
        self.cx.resource.group == group && self.cx.resource.plural == plural
    }

    /// Whether the operation is on an object of this resource itself.
    pub(super) fn does(&self, operation: Operation, group: &str, plural: &str) -> bool {
        self.operation == operation && self.cx.part == Part::Main && self.is_of(group, plural)
    }

    /// A refusal. An object whose name is yet to be generated is called by what it will begin with.
    pub fn forbidden(&self, object: &Value, why: &str) -> ApiError {
        let named = [
            self.name,
            object.meta().name(),
            object.meta().generate_name(),
        ];
        let name = named
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or("Unknown");
        ApiError::forbidden(self.cx.resource, name, why)
    }

    /// A cluster-wide object that is there, or one of the namespace that is written to.
    pub(super) fn lookup(&self, resource: &'static Resource, name: &str) -> Option<Arc<Value>> {
        let key = if resource.namespaced {
            format!("{}/{name}", self.cx.namespace)
        } else {
            name.to_owned()
        };
        self.cx.cluster.get(resource, &key)
    }

    /// An object of the request as `kind` has it. That is the kind that the client sees, or the one
    /// of an equivalent resource that [`matching`](super::matching) found.
    ///
    /// # Errors
    /// It cannot be converted.
    pub async fn shown<'v>(
        &self,
        object: &'v Value,
        kind: &Kind,
    ) -> Result<Cow<'v, Value>, ApiError> {
        match self.converting(kind) {
            Some(definition) => {
                let to = kind.api_version();
                let shown = self.converted(definition, object.clone(), &to).await;
                shown.map(Cow::Owned)
            }
            None => Ok(self.storage_version.show(Cow::Borrowed(object), kind)),
        }
    }

    /// The definition whose webhook converts between this kind and that of the request.
    fn converting(&self, kind: &Kind) -> Option<&'a Compiled> {
        let own = self.storage_version.kind;
        self.storage_version.definition.filter(|definition| {
            definition.conversion.is_some()
                && kind.group == own.group
                && kind.version != own.version
        })
    }

    async fn converted(
        &self,
        definition: &Compiled,
        object: Value,
        api_version: &str,
    ) -> Result<Value, ApiError> {
        let converted = self
            .conversion
            .convert(definition, vec![object], api_version)
            .await;
        let object = converted.map(|mut converted| converted.pop());
        let object = object.map_err(ApiError::unexplained)?;
        let mut object = object.ok_or_else(|| ApiError::unexplained("CR conversion failed"))?;

        if let Some(version) = definition.version(split_api_version(api_version).1) {
            version.prune(&mut object);
        }
        Ok(object)
    }

    /// An object that a plugin changed while it was shown as `kind`: with the defaults of that kind,
    /// and back in the version of the chain.
    ///
    /// # Errors
    /// It cannot be converted.
    pub async fn taken_in(&self, mut object: Value, kind: &Kind) -> Result<Value, ApiError> {
        match self.definition {
            Some(definition) => {
                if let Some(version) = definition.version(&kind.version) {
                    version.default(&mut object)?;
                }
            }
            None => defaults::apply(&mut object, kind, self.cx.now)?,
        }

        if let Some(definition) = self.converting(kind) {
            let to = self.storage_version.kind.api_version();
            object = self.converted(definition, object, &to).await?;
        }
        self.storage_version
            .take_in(object)
            .map_err(|error| ApiError::internal(error.to_string()))
    }
}
