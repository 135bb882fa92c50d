//! What a CustomResourceDefinition defines, compiled once.
//!
//! [`Compiled`] is a page of the catalogue with a resource and a kind for each version, and beside
//! it what the catalogue has no place for ([`Version`]: schema, columns, where replicas are). From
//! then on its resources are handled like all others; their [`strategy`] is the version itself. The
//! cache compiles a definition when its feed reaches it, before anything that follows, and gives it
//! a cache of its own (`cache/custom.rs`). `definition_controller` keeps the status of definitions.

mod page;
mod strategy;
#[cfg(test)]
mod tests;
mod version;

use std::sync::Arc;

use coracle_api::catalog::{Kind, Page, Resource, Struct, split_api_version};
use coracle_api::codec::json;
use coracle_api::schema::{BuildError, TooMuchAdded};
use coracle_api::{Map, Text, Value};
use ring::digest::{SHA256, digest};
use tracing::warn;

use coracle_kinds::apiextensions::custom_resource_definition::view::Definition;

use crate::webhook_config::ClientConfig;
pub(crate) use page::SELECTABLE;
pub use version::{Cell, Replicas, ResourceNames, Version};

/// What a definition defines.
pub struct Compiled {
    /// Of the definition.
    pub name: Text,
    pub uid: Text,
    pub list_kind: Text,
    pub versions: Vec<Version>,
    /// The webhook that converts objects between versions; `None`: they differ in name only.
    pub conversion: Option<WebhookConversion>,
    /// The storage version.
    kept: usize,
    page: Page,
    /// What documents show of it.
    pub documented: Arc<Page>,
    fingerprint: Fingerprint,
}

/// A webhook that converts objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConversion {
    pub client: ClientConfig,
    /// Of ConversionReview, the preferred one first.
    pub review_versions: Vec<String>,
}

impl WebhookConversion {
    fn of(view: &Definition<'_>) -> Option<WebhookConversion> {
        let conversion = view.spec.below("conversion")?;
        let versions = conversion.items("conversionReviewVersions").iter();
        (conversion.text("strategy") == "Webhook").then(|| WebhookConversion {
            client: conversion
                .below("webhookClientConfig")
                .map(ClientConfig::of)
                .unwrap_or_default(),
            review_versions: versions
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
        })
    }
}

impl std::fmt::Debug for Compiled {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Compiled({})", self.name)
    }
}

/// Of the parts of a definition that are compiled.
type Fingerprint = [u8; 32];

impl Compiled {
    /// # Errors
    /// A pattern of a schema is invalid, which was not checked when the definition was written.
    pub fn new(definition: &Value) -> Result<Compiled, BuildError> {
        let view = Definition::of(definition);
        let recommended = view.recommended_version();
        let versions = view
            .versions()
            .map(|version| Version::new(&view, version, recommended));

        let versions: Vec<Version> = versions.collect::<Result<_, _>>()?;
        let kept = view
            .versions()
            .position(|version| version.flag("storage"))
            .unwrap_or_default();

        let names = accepted_names(&view);
        Ok(Compiled {
            name: Text::new(definition.meta().name()),
            uid: Text::new(definition.meta().uid()),
            list_kind: Text::new(names.text("listKind")),
            versions,
            conversion: WebhookConversion::of(&view),
            kept,
            page: page::of(&view),
            documented: Arc::new(page::documented(&view, |name| version::source(&view, name))),
            fingerprint: fingerprint(definition),
        })
    }

    /// Whether this is what a definition defines.
    pub fn is_of(&self, definition: &Value) -> bool {
        self.uid == definition.meta().uid() && self.fingerprint == fingerprint(definition)
    }

    /// A version that requests may name.
    pub fn served_version(&self, name: &str) -> Option<usize> {
        self.versions
            .iter()
            .position(|version| version.name == name && version.is_served)
    }

    pub fn version(&self, name: &str) -> Option<&Version> {
        self.versions.iter().find(|version| version.name == name)
    }

    pub fn resource(&self, version: usize) -> &Resource {
        let first = &self.page.resources()[0];
        let found = self
            .page
            .resource(&first.group, &self.versions[version].name, &first.plural);
        found.expect("every version has a resource")
    }

    pub fn kind(&self, version: usize) -> &Kind {
        let resource = self.resource(version);
        let found = self
            .page
            .kind(&resource.group, &resource.version, &resource.kind);
        found.expect("every version has a kind")
    }

    pub fn of(&self, version: usize) -> Struct<'_> {
        self.page.root(self.kind(version))
    }

    /// The version that objects are stored in.
    pub fn storage(&self) -> usize {
        self.kept
    }

    /// An object in the storage version. No field is dropped: it has yet to be validated in its own
    /// version.
    pub fn kept(&self, object: Value) -> Value {
        self.renamed(object, self.kind(self.kept))
    }

    /// The place of the version of this name.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.versions
            .iter()
            .position(|version| version.name == name)
    }

    /// Completes an object to store: fields of its version that the storage version does not have
    /// are dropped.
    ///
    /// # Errors
    /// The defaults of the storage version make it too large.
    pub fn finish(&self, object: &mut Value) -> Result<(), TooMuchAdded> {
        let version = &self.versions[self.kept];
        version.prune(object);
        version.default(object)
    }

    /// A stored object, with the defaults that its version has now. Where a webhook converts, it
    /// stays in that version.
    pub fn read(&self, mut object: Value) -> Value {
        let api_version = object
            .get("apiVersion")
            .and_then(Value::as_str)
            .unwrap_or_default();

        if let Some(version) = self.version(split_api_version(api_version).1) {
            version.repair(&mut object);
        }
        if self.conversion.is_some() {
            return object;
        }

        let mut object = self.kept(object);
        if let Err(error) = self.finish(&mut object) {
            warn!(name = object.meta().name(), %error, "cannot apply all defaults to stored object");
        }

        object
    }

    /// A stored object, in a served version.
    pub fn shown(&self, object: Value, version: &str) -> Value {
        let Some(place) = self.place(version) else {
            return object;
        };
        let mut object = self.renamed(object, self.kind(place));
        self.versions[place].prune(&mut object);
        object
    }

    /// An object in the version of a kind, with no other change.
    pub fn renamed(&self, mut object: Value, kind: &Kind) -> Value {
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion", kind.api_version());
        }
        object
    }
}

/// The names that a definition has, or will have.
fn accepted_names<'a>(view: &Definition<'a>) -> &'a Map {
    let accepted = view.status.and_then(|status| status.below("acceptedNames"));
    accepted
        .filter(|names| !names.text("plural").is_empty())
        .unwrap_or_else(|| view.names())
}

fn fingerprint(definition: &Value) -> Fingerprint {
    let mut text = Vec::new();
    for part in [
        definition.get("spec"),
        definition.at(&["status", "acceptedNames"]),
    ] {
        json::write(part.unwrap_or(&Value::Null), &mut text);
    }
    let mut fingerprint = Fingerprint::default();
    fingerprint.copy_from_slice(digest(&SHA256, &text).as_ref());
    fingerprint
}
