//! Discovery of a server's resources: in two requests if the server supports aggregated discovery,
//! else group by group.

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

/// The media type of aggregated discovery.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// The timeout of discovery.
const WITHIN: Duration = Duration::from_secs(32);

/// Queries a server's resources.
#[derive(Clone)]
pub struct Discovery {
    client: Client,
}

/// The resources of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// In the server's order, the core group first.
    pub groups: Vec<Group>,
    /// Versions whose discovery failed, and why: the rest is valid nevertheless.
    pub failed: Vec<(String, String)>,
}

/// An API group.
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
    /// The resources, each with its subresources.
    pub resources: Vec<ServedResource>,
}

/// A resource as a server describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedResource {
    /// The resource for requests.
    pub resource: Resource,
    /// The singular name.
    pub singular: Text,
    /// Short names: `po`.
    pub short_names: Vec<Text>,
    /// Categories: `all`.
    pub categories: Vec<Text>,
    /// The supported verbs.
    pub verbs: Vec<Text>,
    /// The names of its subresources.
    pub subresources: Vec<Text>,
}

impl Discovery {
    pub(crate) fn new(client: Client) -> Discovery {
        Discovery {
            client: client.within(WITHIN),
        }
    }

    /// Queries all resources.
    pub async fn served(&self) -> Result<Served, Error> {
        let mut served = Served::default();
        for path in ["/api", "/apis"] {
            match self.ask(path).await {
                Ok(document) => self.add(&document, &mut served).await?,
                // A server of extensions only has no core group.
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
            _ => return Err(Error::Answer("not a discovery document".to_string())),
        }

        Ok(())
    }

    /// A version whose discovery fails does not hide the others.
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
