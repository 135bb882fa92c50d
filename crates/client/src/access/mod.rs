//! Requests for the objects of one resource, as trees; `typed` has the same for built-in kinds as
//! structs.

mod brief;
mod typed;

use bytes::Bytes;
use coracle_api::codec::json;
use coracle_api::{Text, Value};
use http::{HeaderValue, Method, Request, header};

pub use brief::{Brief, Written};
pub use typed::{TypedAccess, TypedList};

use crate::client::{self, Client};
use crate::error::Error;
use crate::options::{DeleteOptions, ListOptions, Query, escape};
use crate::patch::Patch;
use crate::resource::Resource;
use crate::status::Status;
use crate::transport::TakesTrees;
use crate::watch::Watch;
use crate::world::World;

const JSON: Option<&str> = Some("application/json");
/// Only the metadata: of an object, and of the items of a list.
const METADATA: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
);
const METADATA_LIST: HeaderValue = HeaderValue::from_static(
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
);

/// The objects of one resource: of the whole cluster, or of one namespace.
#[derive(Clone)]
pub struct Access {
    client: Client,
    resource: Resource,
    namespace: Text,
    subresource: Text,
    manager: Text,
    dry_run: bool,
    metadata_only: bool,
    shared: bool,
}

/// A request, or why it is invalid.
type RequestResult = Result<Request<Bytes>, Error>;

/// A list of objects, at one resource version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// Each with its `apiVersion` and `kind`.
    pub items: Vec<Value>,
    /// The resource version of the list.
    pub resource_version: Text,
    /// The continue token of the next page; empty: this was the last one.
    pub continue_token: Text,
    /// How many more objects there are, if the server reports it.
    pub remaining: Option<i64>,
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq)]
pub enum Deleted {
    /// It is being deleted (finalizers, grace period), or the server returned the deleted object.
    Pending(Value),
    /// It is deleted.
    Gone,
}

impl Access {
    pub(crate) fn new(client: Client, resource: Resource) -> Access {
        let none = Text::default;
        Access {
            client,
            resource,
            namespace: none(),
            subresource: none(),
            manager: none(),
            dry_run: false,
            metadata_only: false,
            shared: false,
        }
    }

    /// Only the objects of one namespace; no effect on cluster-scoped resources.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Access {
        if self.resource.namespaced {
            self.namespace = Text::new(namespace);
        }
        self
    }

    /// A subresource of the objects: `status`, `scale`, `binding` …
    #[must_use]
    pub fn subresource(mut self, name: &str) -> Access {
        self.subresource = Text::new(name);
        self
    }

    /// The field manager of writes; the default is the program's name.
    #[must_use]
    pub fn manager(mut self, name: &str) -> Access {
        self.manager = Text::new(name);
        self
    }

    /// Sets `dryRun=All` on writes.
    #[must_use]
    pub fn dry_run(mut self) -> Access {
        self.dry_run = true;
        self
    }

    /// Objects are read with their metadata only.
    #[must_use]
    pub fn metadata_only(mut self) -> Access {
        self.metadata_only = true;
        self
    }

    /// Watched objects may be shared trees, complete but without `managedFields`.
    pub(crate) fn shared(mut self) -> Access {
        self.shared = true;
        self
    }

    /// The resource of this access.
    pub fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The client's clock and random source.
    pub fn world(&self) -> World {
        self.client.world()
    }

    /// Gets one object.
    pub async fn get(&self, name: &str) -> Result<Value, Error> {
        self.client
            .json(self.reading(&self.path(Some(name))?, METADATA)?)
            .await
    }

    /// Gets one object, or `None` if it does not exist.
    pub async fn find(&self, name: &str) -> Result<Option<Value>, Error> {
        match self.get(name).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lists the objects, or a page of them.
    pub async fn list(&self, options: &ListOptions) -> Result<List, Error> {
        let mut query = Query::default();
        options.write(&mut query);
        let path = self.path(None)? + query.as_str();
        self.read_list(
            self.client
                .json(self.reading(&path, METADATA_LIST)?)
                .await?,
        )
    }

    /// Lists all objects at one resource version, page by page.
    pub async fn list_all(&self, options: &ListOptions) -> Result<List, Error> {
        let mut options = ListOptions {
            limit: options.limit.max(1).max(500),
            ..options.clone()
        };

        let mut all = List::default();
        loop {
            let page = self.list(&options).await?;
            all.items.extend(page.items);
            all.resource_version = page.resource_version;

            if page.continue_token.is_empty() {
                return Ok(all);
            }

            options.continue_token = page.continue_token.to_string();
            options.resource_version = String::new();
            options.resource_version_match = String::new();
        }
    }

    /// Watches the objects from now on, or from the resource version in the options.
    pub async fn watch(&self, options: &ListOptions) -> Result<Watch, Error> {
        let mut query = Query::default();
        query.flag("watch", true);
        options.write(&mut query);

        let mut request = self.reading(&(self.path(None)? + query.as_str()), METADATA)?;
        if self.shared {
            request.extensions_mut().insert(TakesTrees);
        }

        let answer = self.client.send(request).await?;
        match answer.status().is_success() {
            true => Ok(Watch::new(answer)),
            false => Err(client::succeeded(answer)
                .await
                .err()
                .unwrap_or_else(unreadable)),
        }
    }

    /// The same requests for callers that need little of the written object.
    pub fn briefly(&self) -> Brief<'_> {
        Brief(self)
    }

    /// Creates an object, in its own namespace or in that of this access.
    pub async fn create(&self, object: &Value) -> Result<Value, Error> {
        self.client.json(self.creation(object)?).await
    }

    /// Creates a subresource of an object: a binding, an eviction, a token.
    pub async fn create_below(&self, name: &str, body: &Value) -> Result<Value, Error> {
        self.client.json(self.creation_below(name, body)?).await
    }

    /// Replaces an object; if it has a resource version, only if that is current.
    pub async fn update(&self, object: &Value) -> Result<Value, Error> {
        self.client.json(self.replacement(object)?).await
    }

    /// Patches an object; server-side apply creates it if it does not exist.
    pub async fn patch(&self, name: &str, patch: &Patch) -> Result<Value, Error> {
        self.client.json(self.change(name, patch)?).await
    }

    /// Deletes an object.
    pub async fn delete(&self, name: &str, options: &DeleteOptions) -> Result<Deleted, Error> {
        let answer = self
            .client
            .json(deletion(&self.path(Some(name))?, options)?)
            .await?;
        let is_status = Status::from_value(&answer).is_some();
        Ok(if is_status {
            Deleted::Gone
        } else {
            Deleted::Pending(answer)
        })
    }

    /// Deletes all matching objects and returns them.
    pub async fn delete_collection(
        &self,
        options: &DeleteOptions,
        which: &ListOptions,
    ) -> Result<List, Error> {
        let mut query = Query::default();
        which.write(&mut query);
        let path = self.path(None)? + query.as_str();
        self.read_list(self.client.json(deletion(&path, options)?).await?)
    }

    fn creation(&self, object: &Value) -> RequestResult {
        let path = self.path_of(self.namespace_of(object)?, None)? + self.write_query().as_str();
        client::request(Method::POST, &path, JSON, json::to_vec(object))
    }

    fn creation_below(&self, name: &str, body: &Value) -> RequestResult {
        let path = self.path(Some(name))? + self.write_query().as_str();
        client::request(Method::POST, &path, JSON, json::to_vec(body))
    }

    fn replacement(&self, object: &Value) -> RequestResult {
        let path = self.path_of(self.namespace_of(object)?, Some(object.meta().name()))?;
        client::request(
            Method::PUT,
            &(path + self.write_query().as_str()),
            JSON,
            json::to_vec(object),
        )
    }

    fn change(&self, name: &str, patch: &Patch) -> RequestResult {
        let mut query = Query::default();
        match patch {
            Patch::Apply { manager, force, .. } => {
                query.text("fieldManager", manager);
                query.flag("force", *force);
            }
            _ => query.text("fieldManager", &self.manager),
        }

        query.text("dryRun", if self.dry_run { "All" } else { "" });
        let path = self.path(Some(name))? + query.as_str();

        client::request(
            Method::PATCH,
            &path,
            Some(patch.content_type()),
            patch.body(),
        )
    }

    fn reading(&self, path: &str, metadata: HeaderValue) -> RequestResult {
        let mut request = client::get(path)?;
        if self.metadata_only {
            request.headers_mut().insert(header::ACCEPT, metadata);
        }
        Ok(request)
    }

    fn write_query(&self) -> Query {
        let mut query = Query::default();
        query.text("fieldManager", &self.manager);
        query.text("dryRun", if self.dry_run { "All" } else { "" });
        query
    }

    /// A write goes to the namespace of the object; an error if neither the object nor this access
    /// has one.
    fn namespace_of<'a>(&'a self, object: &'a Value) -> Result<&'a str, Error> {
        if !self.resource.namespaced || !self.namespace.is_empty() {
            return Ok(&self.namespace);
        }

        match object.meta().namespace() {
            "" => {
                let what = &self.resource;
                Err(Error::Request(format!(
                    "an empty namespace may not be set when {what} are written"
                )))
            }
            namespace => Ok(namespace),
        }
    }

    fn path(&self, name: Option<&str>) -> Result<String, Error> {
        self.path_of(&self.namespace, name)
    }

    fn path_of(&self, namespace: &str, name: Option<&str>) -> Result<String, Error> {
        let mut path = self.resource.root();
        if !namespace.is_empty() {
            path.push_str("/namespaces/");
            segment(namespace, "namespace", &mut path)?;
        }

        path.push('/');
        path.push_str(&self.resource.plural);
        let Some(name) = name else { return Ok(path) };
        if name.is_empty() {
            return Err(Error::Request("resource name may not be empty".to_string()));
        }

        path.push('/');
        segment(name, "resource name", &mut path)?;

        if !self.subresource.is_empty() {
            path.push('/');
            path.push_str(&self.subresource);
        }

        Ok(path)
    }

    fn read_list(&self, list: Value) -> Result<List, Error> {
        let metadata = |name: &str| list.at(&["metadata", name]);
        let text =
            |name: &str| Text::new(metadata(name).and_then(Value::as_str).unwrap_or_default());
        let mut read = List {
            resource_version: text("resourceVersion"),
            continue_token: text("continue"),
            remaining: metadata("remainingItemCount").and_then(Value::as_int),
            items: Vec::new(),
        };

        let Value::Object(mut members) = list else {
            return Err(unreadable());
        };
        if let Some(Value::Array(items)) = members.remove("items") {
            read.items = items;
        }

        // Items of a list have no `apiVersion` and `kind` of their own.
        let api_version = self.resource.api_version();
        for item in read.items.iter_mut().filter_map(Value::as_object_mut) {
            item.get_or_insert_with("apiVersion", || Value::String(api_version.clone()));
            item.get_or_insert_with("kind", || Value::String(self.resource.kind.clone()));
        }

        Ok(read)
    }
}

fn deletion(path: &str, options: &DeleteOptions) -> RequestResult {
    let body = options.body();
    let content_type = JSON.filter(|_| !body.is_empty());
    client::request(Method::DELETE, path, content_type, body)
}

/// Appends a name as a path segment.
fn segment(name: &str, what: &str, path: &mut String) -> Result<(), Error> {
    if matches!(name, "." | "..") || name.contains(['/', '%']) {
        return Err(Error::Request(format!(
            "invalid {what} {name:?}: may not be or contain '.', '..', '/' or '%'"
        )));
    }
    escape(name, path);
    Ok(())
}

fn unreadable() -> Error {
    Error::Answer("unexpected kind of object".to_string())
}
