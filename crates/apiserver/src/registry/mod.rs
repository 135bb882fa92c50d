//! The verbs on objects: one code path for every kind.
//!
//! A request that is parsed, authenticated and authorized arrives at one of the verbs here. A write
//! is decoded, admitted, prepared and validated by the kind's [`strategy`], encoded once, compared
//! and swapped in the store, and acknowledged when the cache has it. Reads stop at the cache.

mod allocations;
mod cluster;
mod connect;
mod continuation;
mod conversion;
mod create;
mod decode;
mod delete;
mod expiry;
mod meta;
mod owners;
mod patch;
mod read;
mod subresource;
mod update;

use std::sync::Arc;

use bytes::Bytes;
use coracle_api::catalog::{BUILTIN, Kind, Resource, Struct, Subresource};
use coracle_api::codec::canonical;
use coracle_api::time::Timestamp;
use coracle_api::{Value, defaults, typed};
pub use coracle_kinds::core::service::NodePorts;
use coracle_kinds::{AnyStrategy, Behaviour, Context, behaviour};
use coracle_store::{Revision, Store};
use tokio::sync::Semaphore;

use crate::ApiError;
use crate::access::Access;
use crate::admission::{Admission, Attributes, Notes, Operation, Options};
use crate::aside::aside;
use crate::authn::Caller;
use crate::cache::{Cache, Caches, Custom, Entry};
use crate::definitions::{Compiled, Version};
use crate::served::{BuiltIn, Served};
use crate::storage_version::StorageVersion;
use crate::webhook::conversion::Conversion;

pub use allocations::AllocationMetrics;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use continuation::check_continue_token;
pub(crate) use conversion::{BATCH, Requested};
pub use coracle_kinds::Part;
pub use create::Written;
pub use decode::Body;
pub use delete::{DeleteAdmission, Deleted};
pub use expiry::Expiry;
pub(crate) use read::field_selector;
pub use read::{List, RequiredVersion};
pub use subresource::{Call, Content, Reply};
pub(crate) use update::store_error;

/// The most memory for the lists of an object when its fields are read.
const MOST_IN_VIEW: usize = 64 * 1024 * 1024;

/// Objects of one resource, and the means to work on them.
pub struct Registry {
    pub store: Arc<dyn Store>,
    pub caches: Arc<Caches>,
    pub admission: Admission,
    pub access: Access,
    pub node_ports: Arc<NodePorts>,
    pub allocations: AllocationMetrics,
    /// When events expire.
    pub expiry: Expiry,
    /// Converts custom resources.
    pub conversion: Conversion,
    /// Whether others write to the store as well: then a cache has to be proven fresh before it is
    /// read.
    pub shared_store: bool,
    /// Whether containers may be privileged.
    pub allow_privileged: bool,
    /// Permits for work that may take long.
    pub(crate) long_work: Arc<Semaphore>,
    /// The wall clock.
    pub now: fn() -> Timestamp,
    /// 64 random bits.
    pub random: fn() -> u64,
}

/// The resource of a request.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    pub resource: &'a Resource,
    /// The kind of bodies and responses.
    pub kind: &'a Kind,
    pub of: Struct<'a>,
    /// What everything in between works on.
    pub storage_version: StorageVersion<'a>,
    /// Of a custom resource: its definition, and the requested version.
    pub custom: Option<(&'a Custom, &'a Version)>,
    /// Of the path; empty for cluster-wide objects and lists over all namespaces.
    pub namespace: &'a str,
    pub caller: &'a Caller,
    behaviour: &'static Behaviour,
    /// The one of the behaviour; of a custom resource, its definition's.
    strategy: &'a dyn AnyStrategy,
}

impl<'a> Scope<'a> {
    pub fn new(resource: &'static Resource, namespace: &'a str, caller: &'a Caller) -> Scope<'a> {
        let BuiltIn {
            resource,
            kind,
            of,
            storage_version,
        } = BuiltIn::of(resource);

        let behaviour = behaviour(
            &storage_version.resource.group,
            &storage_version.resource.plural,
        );
        Scope {
            resource,
            kind,
            of,
            storage_version,
            custom: None,
            namespace,
            caller,
            behaviour,
            strategy: behaviour.strategy,
        }
    }

    /// The same for whatever a path can name.
    pub fn of(served: &'a Served, namespace: &'a str, caller: &'a Caller) -> Scope<'a> {
        let custom = served.custom();
        let (kind, of, storage_version) = (served.kind(), served.of(), served.storage_version());
        let behaviour = behaviour(
            &storage_version.resource.group,
            &storage_version.resource.plural,
        );
        let strategy: &dyn AnyStrategy = match custom {
            Some((_, version)) => version,
            None => behaviour.strategy,
        };

        Scope {
            resource: served.resource(),
            kind,
            of,
            storage_version,
            custom,
            namespace,
            caller,
            behaviour,
            strategy,
        }
    }

    /// The same, for bodies and responses of the kind of a subresource.
    pub fn with_kind_of(&self, subresource: Option<&'a Subresource>) -> Scope<'a> {
        let Some(subresource) = subresource else {
            return *self;
        };
        let own = |theirs: &'a str, own: &'a str| if theirs.is_empty() { own } else { theirs };
        let group = own(&subresource.group, &self.resource.group);
        let version = own(&subresource.version, &self.resource.version);
        let kind = BUILTIN.kind(group, version, &subresource.kind);
        let kind = kind.expect("the kind of a subresource is in the catalogue");

        Scope {
            kind,
            of: BUILTIN.root(kind),
            custom: None,
            ..*self
        }
    }

    /// The same for an object that is not stored: it stays in the version that it was sent in.
    fn as_sent(&self) -> Scope<'a> {
        Scope {
            storage_version: StorageVersion {
                kind: self.kind,
                of: self.of,
                definition: None,
                ..self.storage_version
            },
            ..*self
        }
    }

    /// Brings an object into the form in which upstream would read it from its store again.
    fn canonicalize(&self, object: &mut Value) {
        match &self.resource.storage {
            Some(storage) if !storage.json => {
                canonical::canonicalize_stored(object, self.storage_version.of.node())
            }
            _ => canonical::canonicalize(object, self.storage_version.of.node()),
        }
    }

    fn has_status(&self) -> bool {
        self.resource
            .subresources
            .iter()
            .any(|subresource| subresource.name == "status")
    }

    /// The object's key below the resource's prefix.
    fn key(&self, name: &str) -> String {
        if self.resource.namespaced {
            format!("{}/{name}", self.namespace)
        } else {
            name.to_string()
        }
    }

    /// The object's key in the store.
    fn store_key(&self, name: &str) -> Bytes {
        let prefix = self
            .resource
            .storage
            .as_ref()
            .map_or("", |storage| storage.prefix.as_str());
        format!("/registry/{prefix}/{}", self.key(name)).into()
    }

    /// A version of an object that is about to be written.
    fn entry(&self, object: &Value) -> Entry {
        let bytes = Entry::encode(object, self.storage_version.of);
        Entry::of(
            &self.key(object.meta().name()),
            object,
            bytes,
            Revision::ZERO,
            self.storage_version.resource,
        )
    }
}

/// A write of one object.
struct Write<'a> {
    scope: &'a Scope<'a>,
    /// What the kind's strategy knows of it.
    cx: Context<'a>,
    /// As the path names it.
    subresource: &'a str,
    /// Of the custom resource that the path names.
    definition: Option<&'a Compiled>,
    conversion: &'a Conversion,
}

impl<'a> Write<'a> {
    fn new(registry: &'a Registry, scope: &'a Scope<'a>, part: Part, dry_run: bool) -> Write<'a> {
        let cx = Context {
            cluster: registry,
            resource: scope.resource,
            kind: scope.kind,
            namespace: scope.namespace,
            user: &scope.caller.user,
            part,
            update_verb: "update",
            dry_run,
            now: (registry.now)(),
        };
        Write {
            scope,
            cx,
            subresource: part.name(),
            definition: scope.storage_version.definition,
            conversion: &registry.conversion,
        }
    }

    /// The write as admission sees it.
    fn attributes<'w>(
        &'w self,
        operation: Operation,
        options: Options<'w>,
        name: &'w str,
        notes: &'w Notes,
    ) -> Attributes<'w> {
        Attributes {
            cx: self.cx,
            operation,
            subresource: self.subresource,
            name,
            old: None,
            options,
            storage_version: self.scope.storage_version,
            definition: self.definition,
            conversion: self.conversion,
            notes,
        }
    }
}

impl Registry {
    /// Runs a validation. One that may take long leaves its worker thread to other requests, and
    /// waits while half of the processors are busy with others, so that the rest stay free for
    /// everything else.
    async fn validate<T>(&self, scope: &Scope<'_>, validation: impl FnOnce() -> T) -> T {
        if !scope.strategy.takes_long() {
            return validation();
        }
        let permit = self.long_work.acquire().await;
        let result = aside(validation);
        drop(permit);
        result
    }

    /// The current object of any resource, for strategies and admission. `key` is `namespace/name`,
    /// or the name of a cluster-wide object. Objects that every write looks up are decoded once.
    pub fn lookup(&self, resource: &Resource, key: &str) -> Option<Arc<Value>> {
        let cache = self.caches.get(&resource.storage.as_ref()?.prefix)?;
        Some(
            self.caches
                .trees
                .of(&*cache.get(key)?, cache.storage_version().of),
        )
    }

    /// Every current object of a resource in a namespace; in all namespaces if it is empty.
    pub fn lookup_all(&self, resource: &Resource, namespace: &str) -> Vec<Arc<Value>> {
        let cache = resource
            .storage
            .as_ref()
            .and_then(|storage| self.caches.get(&storage.prefix));

        let Some(cache) = cache else {
            return Vec::new();
        };
        let prefix = if namespace.is_empty() {
            String::new()
        } else {
            format!("{namespace}/")
        };

        let snapshot = cache.snapshot();
        let found = snapshot.entries.below(&prefix, &prefix);

        found
            .map(|entry| self.caches.trees.of(entry, cache.storage_version().of))
            .collect()
    }

    /// Normalizes a decoded object: with the defaults of the version it was sent in, in the storage
    /// version, and with every field that upstream always writes, so that it gets owners.
    fn settle(&self, scope: &Scope<'_>, object: &mut Value) -> Result<(), ApiError> {
        // Upstream reads `null` as an object without fields.
        if object.is_null() {
            *object = Value::object();
        }

        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion", scope.kind.api_version());
            fields.insert("kind", scope.kind.name.clone());
        }

        let forgets_owners = owners::are_forgotten(object);

        match scope.custom {
            Some((_, version)) => version.default(object)?,
            None => defaults::apply(object, scope.kind, (self.now)())?,
        }

        *object = scope
            .storage_version
            .take_in(object.take())
            .map_err(|error| decode::not_converted(scope, &error))?;

        if forgets_owners {
            owners::forget(object);
        }
        if typed::size(object, scope.storage_version.of) > MOST_IN_VIEW {
            return Err(ApiError::too_many_elements());
        }

        Ok(())
    }

    /// Sets the defaults of the storage version in an object to store: readers of that version find
    /// them, and admission may rely on them.
    fn complete(&self, scope: &Scope<'_>, object: &mut Value) -> Result<(), ApiError> {
        if let Some(requested) = scope.requested() {
            if requested.version == requested.custom.storage() {
                requested.custom.finish(object)?;
            }
            return Ok(());
        }
        if let Some(definition) = scope.storage_version.definition {
            return Ok(definition.finish(object)?);
        }
        defaults::apply(object, scope.storage_version.kind, (self.now)())?;
        if !scope.storage_version.keeps(scope.kind) {
            canonical::canonicalize(object, scope.storage_version.of.node());
        }
        Ok(())
    }

    pub(crate) fn cache<'c>(&'c self, scope: &Scope<'c>) -> Result<&'c Arc<Cache>, ApiError> {
        if let Some((custom, _)) = scope.custom {
            let changed = || {
                ApiError::service_unavailable(
                    "the definition of the resource has changed, try again",
                )
            };
            return Some(&custom.cache)
                .filter(|cache| !cache.is_replaced())
                .ok_or_else(changed);
        }

        let prefix = scope
            .resource
            .storage
            .as_ref()
            .map(|storage| storage.prefix.as_str());

        prefix
            .and_then(|prefix| self.caches.get(prefix))
            .ok_or_else(ApiError::method_not_allowed)
    }
}
