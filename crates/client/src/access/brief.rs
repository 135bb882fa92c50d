//! Writes of which only little of the answer is read.

use coracle_api::resource_version::ResourceVersion;
use coracle_api::{Text, Value};

use super::Access;
use crate::client;
use crate::error::Error;
use crate::patch::Patch;
use crate::skim;

/// The same requests for those who do not look at what they have written.
#[derive(Clone, Copy)]
pub struct Brief<'a>(pub(super) &'a Access);

/// What was written, as far as most writers want to know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// What it is called.
    pub name: Text,
    /// Which it is.
    pub uid: Text,
    /// Which version of it this is.
    pub version: ResourceVersion,
}

impl Brief<'_> {
    /// Creates an object, in the namespace that it or this says.
    pub async fn create(self, object: &Value) -> Result<Written, Error> {
        self.send(self.0.creation(object)).await
    }

    /// Creates something below an object: a binding, an eviction.
    pub async fn create_below(self, name: &str, body: &Value) -> Result<(), Error> {
        self.send(self.0.creation_below(name, body)).await.map(drop)
    }

    /// Replaces an object; if it says its version, only where that is still the newest.
    pub async fn update(self, object: &Value) -> Result<Written, Error> {
        self.send(self.0.replacement(object)).await
    }

    /// Changes an object; applying creates it where it is not there.
    pub async fn patch(self, name: &str, patch: &Patch) -> Result<Written, Error> {
        self.send(self.0.change(name, patch)).await
    }

    async fn send(self, request: super::Asked) -> Result<Written, Error> {
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
