//! The environment of containers.
//!
//! [`Environment`] fetches the inputs of a container's variables (ConfigMaps, Secrets, Services,
//! files written by init containers); `variables` computes the variables from them, pure, in
//! upstream's order and with upstream's messages. [`expand`] replaces `$(NAME)` in values, commands
//! and paths; `services` are the Service environment variables.

mod expand;
mod file;
mod services;
#[cfg(test)]
mod tests;
mod variables;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coracle_client::{Informer, Resource, Selection, Typed};
use coracle_files::read;
use k8s_openapi::api::core::v1::{Container, Node, Pod, Service};

use crate::cgroups::blocking;
use crate::downward::{Amounts, PodAddresses};
use crate::host::Host;
use crate::layout::Layout;
use crate::pod::PodView as _;
use crate::references::References;
use crate::volumes;
pub use expand::{expand_all, expand_with};
use services::{ServiceLink, service_variables};
pub use variables::VariableError;
use variables::{EnvFile, EnvSources, variables};

/// How long the first container of a node waits until the Service and Node informers have synced.
const SYNC_TIMEOUT: Duration = Duration::from_secs(5);

/// Computes environments.
pub struct Environment {
    layout: Layout,
    /// Of the host, as text.
    addresses: Vec<String>,
    references: Arc<References>,
    services: Informer<ServiceLink>,
    node: Informer<Typed<Node>>,
}

impl Environment {
    pub fn new(host: &Host, references: Arc<References>) -> Environment {
        Environment {
            layout: host.layout.clone(),
            addresses: host.addresses.iter().map(ToString::to_string).collect(),
            references,
            services: host.informers.of(&Resource::of::<Service>()),
            node: own_node(host),
        }
    }

    /// The variables of a container, in order and expanded. `pod_ips` are those of the pod's
    /// sandbox, or of the host for a pod on the host network.
    pub async fn variables(
        &self,
        pod: &Pod,
        container: &Container,
        pod_ips: &[String],
    ) -> Result<Vec<(String, String)>, VariableError> {
        self.references.register(pod);
        let synced = tokio::time::timeout(SYNC_TIMEOUT, self.services.synced()).await;
        synced.map_err(|_| VariableError::NoServices)?;
        let links = pod.pod_spec().enable_service_links.unwrap_or(true);

        let known = self.services.list();
        let services = service_variables(
            known.iter().map(|service| &service.object),
            pod.namespace(),
            links,
        );

        let allocatable = match uses_resource_fields(container) {
            true => allocatable(&self.node).await.ok_or(VariableError::NoNode)?,
            false => Amounts::new(),
        };

        let (config_maps, secrets) = self.objects(pod, container).await;
        let sources = EnvSources {
            pod,
            container,
            addresses: PodAddresses {
                pod: pod_ips,
                host: &self.addresses,
            },
            allocatable: &allocatable,
            services,
            config_maps,
            secrets,
            files: self.files(pod, container).await,
        };

        variables(&sources)
    }

    /// The objects that a container references, each fetched once.
    async fn objects(&self, pod: &Pod, container: &Container) -> (ConfigMaps, Secrets) {
        let (mut config_maps, mut secrets) = (ConfigMaps::new(), Secrets::new());
        let each = || {
            container
                .env
                .iter()
                .flatten()
                .filter_map(|variable| variable.value_from.as_ref())
        };

        let all = || container.env_from.iter().flatten();
        let names = all().filter_map(|from| Some(&from.config_map_ref.as_ref()?.name));

        let names =
            names.chain(each().filter_map(|from| Some(&from.config_map_key_ref.as_ref()?.name)));
        for name in names.filter(|name| !name.is_empty()) {
            if !config_maps.contains_key(name) {
                let found = self.references.config_map(pod.namespace(), name).await;
                let entries = found.map(|found| found.data.clone().unwrap_or_default());
                config_maps.insert(name.clone(), entries);
            }
        }

        let names = all().filter_map(|from| Some(&from.secret_ref.as_ref()?.name));
        let names =
            names.chain(each().filter_map(|from| Some(&from.secret_key_ref.as_ref()?.name)));
        for name in names.filter(|name| !name.is_empty()) {
            if !secrets.contains_key(name) {
                let found = self.references.secret(pod.namespace(), name).await;
                let entries = found.map(|found| found.data.clone().unwrap_or_default());
                secrets.insert(name.clone(), entries);
            }
        }

        (config_maps, secrets)
    }

    /// The environment files that a container references.
    async fn files(&self, pod: &Pod, container: &Container) -> BTreeMap<(String, String), EnvFile> {
        let sources = container
            .env
            .iter()
            .flatten()
            .filter_map(|variable| variable.value_from.as_ref());
        let reference = sources.filter_map(|source| source.file_key_ref.as_ref());

        let mut files = BTreeMap::new();
        for reference in reference {
            let file = match volumes::host_path(&self.layout, pod, &reference.volume_name) {
                None => EnvFile::NoVolume,
                Some(volume) => {
                    let path = volume.join(&reference.path);
                    let below = reference.path.clone();
                    let text = blocking(move || file_text(&volume, &below)).await;
                    let text = text
                        .inspect_err(|error| {
                            tracing::warn!(pod = %pod.id(), %error, "cannot read environment file");
                        })
                        .ok();

                    EnvFile::Read { text, path }
                }
            };
            files.insert(
                (reference.volume_name.clone(), reference.path.clone()),
                file,
            );
        }

        files
    }
}

/// Size limit of an environment file: containers of the pod write it, and it is held in memory.
const MAX_FILE_SIZE: u64 = 1 << 20;

fn file_text(volume: &Path, below: &str) -> io::Result<String> {
    let bytes = read::whole(volumes::open_inside(volume, below)?, MAX_FILE_SIZE)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

type ConfigMaps =
    BTreeMap<String, Result<BTreeMap<String, String>, crate::references::ReferenceError>>;
type Secrets = BTreeMap<
    String,
    Result<BTreeMap<String, k8s_openapi::ByteString>, crate::references::ReferenceError>,
>;

/// The informer of this kubelet's own node.
pub(crate) fn own_node(host: &Host) -> Informer<Typed<Node>> {
    let itself = format!("metadata.name={}", host.node_name);
    host.informers
        .of(Selection::all(&Resource::of::<Node>()).fields(&itself))
}

/// The allocatable of this node, once known.
pub(crate) async fn allocatable(node: &Informer<Typed<Node>>) -> Option<Amounts> {
    tokio::time::timeout(SYNC_TIMEOUT, node.synced())
        .await
        .ok()?;
    let node = node.list().into_iter().next()?;
    node.status.as_ref()?.allocatable.clone()
}

fn uses_resource_fields(container: &Container) -> bool {
    let mut sources = container
        .env
        .iter()
        .flatten()
        .filter_map(|variable| variable.value_from.as_ref());
    sources.any(|source| source.resource_field_ref.is_some())
}
