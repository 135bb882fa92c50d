//! Writes that return only the metadata of the result.

use coracle_api::resource_version::ResourceVersion;
use coracle_api::{Text, Value};

use super::Access;
use crate::client;
use crate::error::Error;
use crate::patch::Patch;
use crate::skim;

/// The same requests for callers that need little of the written object.
#[derive(Clone, Copy)]
pub struct Brief<'a>(pub(super) &'a Access);

/// The parts of a written object that most callers need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The object's name.
    pub name: Text,
    /// The object's UID.
    pub uid: Text,
    /// The object's resource version.
    pub version: ResourceVersion,
}

impl Brief<'_> {
    /// Creates an object, in its own namespace or in that of this access.
    pub async fn create(self, object: &Value) -> Result<Written, Error> {
        self.send(self.0.creation(object)).await
    }

    /// Creates a subresource of an object: a binding, an eviction.
    pub async fn create_below(self, name: &str, body: &Value) -> Result<(), Error> {
        self.send(self.0.creation_below(name, body)).await.map(drop)
    }

    /// Replaces an object; if it has a resource version, only if that is current.
    pub async fn update(self, object: &Value) -> Result<Written, Error> {
        self.send(self.0.replacement(object)).await
    }

    /// Patches an object; server-side apply creates it if it does not exist.
    pub async fn patch(self, name: &str, patch: &Patch) -> Result<Written, Error> {
        self.send(self.0.change(name, patch)).await
    }

    async fn send(self, request: super::RequestResult) -> Result<Written, Error> {
        let answer = self.0.client.request(request?).await?;
        client::expect_content(&answer)?;
        let text = |name: &str| skim::text(&answer, &["metadata", name]).unwrap_or_default();
        Ok(Written {
            name: Text::new(text("name")),
            uid: Text::new(text("uid")),
            version: text("resourceVersion").parse().unwrap_or_default(),
        })
    }
}
