//! Which resources a server has: in two requests where it can say it all at once, group by group
//! where it cannot.

mod mapper;
mod read;
#[cfg(test)]
mod tests;

use std::time::Duration;

use coracle_api::{Text, Value};
use http::{HeaderValue, header};

pub use mapper::{Mapper, Mapping, MappingError};

use crate::client::{self, Client};
use crate::error::Error;
use crate::resource::Resource;

/// All resources of all groups in one document.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// How long discovery may take.
const WITHIN: Duration = Duration::from_secs(32);

/// Asks a server what it has.
#[derive(Clone)]
pub struct Discovery {
    client: Client,
}

/// What a server has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// In the server's order, the core group first.
    pub groups: Vec<Group>,
    /// Versions that could not be learned, and why: the rest is true nevertheless.
    pub failed: Vec<(String, String)>,
}

/// A group of versions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Empty for the core group.
    pub name: Text,
    /// The preferred one first.
    pub versions: Vec<Version>,
}

/// The resources of one version.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Version {
    /// `v1`.
    pub name: Text,
    /// What is served, subresources beside their resources.
    pub resources: Vec<ServedResource>,
}

/// A resource as a server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedResource {
    /// What requests need.
    pub resource: Resource,
    /// One of its objects, as people call it.
    pub singular: Text,
    /// `po`.
    pub short_names: Vec<Text>,
    /// `all`.
    pub categories: Vec<Text>,
    /// What can be done.
    pub verbs: Vec<Text>,
    /// The names of its parts.
    pub subresources: Vec<Text>,
}

impl Discovery {
    pub(crate) fn new(client: Client) -> Discovery {
        Discovery {
            client: client.within(WITHIN),
        }
    }

    /// Everything that the server has.
    pub async fn served(&self) -> Result<Served, Error> {
        let mut served = Served::default();
        for path in ["/api", "/apis"] {
            match self.ask(path).await {
                Ok(document) => self.add(&document, &mut served).await?,
                // A server of extensions alone has no core group.
                Err(error) if path == "/api" && error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(served)
    }

    async fn ask(&self, path: &str) -> Result<Value, Error> {
        let mut request = client::get(path)?;
        request
            .headers_mut()
            .insert(header::ACCEPT, HeaderValue::from_static(AGGREGATED));
        self.client.json(request).await
    }

    async fn add(&self, document: &Value, served: &mut Served) -> Result<(), Error> {
        match document.get("kind").and_then(Value::as_str) {
            Some("APIGroupDiscoveryList") => read::aggregated(document, served),
            Some("APIVersions") => {
                let versions = document
                    .as_object()
                    .map(|map| map.items("versions"))
                    .unwrap_or_default();

                let names = versions
                    .iter()
                    .filter_map(Value::as_str)
                    .map(Text::new)
                    .collect();
                self.add_group("", names, served).await;
            }
            Some("APIGroupList") => {
                for (group, versions) in read::groups(document) {
                    self.add_group(&group, versions, served).await;
                }
            }
            _ => return Err(Error::Answer("no discovery document".to_string())),
        }

        Ok(())
    }

    /// Versions that cannot be learned do not hide the others.
    async fn add_group(&self, name: &str, versions: Vec<Text>, served: &mut Served) {
        let mut group = Group {
            name: Text::new(name),
            versions: Vec::new(),
        };

        for version in versions {
            let path = if name.is_empty() {
                format!("/api/{version}")
            } else {
                format!("/apis/{name}/{version}")
            };

            match self.client.get(&path).await {
                Ok(list) => group.versions.push(read::resources(&list, name, &version)),
                Err(error) => served.failed.push((path, error.to_string())),
            }
        }

        served.groups.push(group);
    }
}
