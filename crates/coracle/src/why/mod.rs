//! `coracle why KIND/NAME`: what happened to an object, in which order, how long it took, and what
//! it waits for now. The object, its events and the entries of the server's journal become a
//! `timeline`; a `verdict` summarizes the state of the object in a sentence; `show` prints both as
//! text or JSON. All requests use the credentials of the user.

mod show;
mod timeline;
mod verdict;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use coracle_api::Value;
use coracle_client::{
    Client, Config, ConfigError, Error, ListOptions, Mapper, Mapping, MappingError, Resource,
};

use crate::instance::DEFAULT_DATA_DIR;
use crate::process::{self, ProcessError};
use crate::world::WORLD;

/// Explains what happened to an object and what it waits for.
#[derive(Args)]
pub(crate) struct Why {
    /// The object: pod/web-1, deployment/web, node/n1
    #[arg(value_name = "KIND/NAME", value_parser = kind_and_name)]
    what: (String, String),
    /// Namespace of the object [default: that of the kubeconfig]
    #[arg(long, short, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Output format
    #[arg(long, short, value_name = "FORM", default_value = "text")]
    output: Output,
    /// Kubeconfig of the cluster
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    kubeconfig: Option<PathBuf>,
    /// Data directory of a cluster on this machine, to use its administrator kubeconfig [default:
    /// /var/lib/coracle if it exists and neither --kubeconfig nor $KUBECONFIG is set]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

impl Why {
    /// The kubeconfig to use; `None`: the default of the environment.
    fn access(&self) -> Option<PathBuf> {
        let is_set = std::env::var_os("KUBECONFIG").is_some_and(|files| !files.is_empty());
        let here = Path::new(DEFAULT_DATA_DIR).join(ADMINISTRATOR);
        let of_data_dir = self
            .data_dir
            .as_ref()
            .map(|folder| folder.join(ADMINISTRATOR));
        self.kubeconfig
            .clone()
            .or(of_data_dir)
            .or_else(|| (!is_set && here.exists()).then_some(here))
    }
}

/// The administrator kubeconfig in a data directory.
const ADMINISTRATOR: &str = "admin.kubeconfig";

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
}

fn kind_and_name(text: &str) -> Result<(String, String), String> {
    let (kind, name) = text
        .split_once('/')
        .ok_or("expected KIND/NAME, as in pod/web-1")?;
    Ok((kind.to_string(), name.to_string()))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum WhyError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("cannot configure the API client")]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Kind(#[from] MappingError),
    #[error(transparent)]
    Api(#[from] Error),
}

/// The object and everything related to it.
struct Facts {
    object: Value,
    events: Vec<Value>,
    /// Entries of the server's journal; `None`: no permission to read it, or not a Coracle server.
    stages: Option<Vec<Value>>,
    /// Its controller, the controller of that, and so on.
    owners: Vec<Value>,
    /// Objects that it controls and whose state determines its own.
    below: Vec<Value>,
}

pub(crate) fn run(command: &Why) -> Result<(), WhyError> {
    let facts = process::block_on(collect_facts(command))??;
    let (entries, verdict) = (timeline::entries(&facts), verdict::summarize(&facts));
    match command.output {
        Output::Text => process::print(show::text(&facts, &verdict, &entries)),
        Output::Json => process::print_line(show::json(&facts, &verdict, &entries)),
    }
    Ok(())
}

async fn collect_facts(command: &Why) -> Result<Facts, WhyError> {
    let environment = process::environment();
    let config = Config::load(command.access().as_deref(), None, &environment)?;
    let client = Client::connect(config, WORLD).await?.named("coracle-why");
    let mapper = Mapper::new(client.discovery());
    let mapping = mapper.of_name(&command.what.0).await?;

    let namespace = command
        .namespace
        .as_deref()
        .unwrap_or(client.default_namespace())
        .to_string();

    let object = client
        .resource(&mapping.resource)
        .namespace(&namespace)
        .get(&command.what.1)
        .await?;
    let uid = object.meta().uid().to_string();

    let events = client.resource(&Resource::builtin("", "v1", "events"));
    let about = ListOptions::fields(format!("involvedObject.uid={uid}"));
    let events = events
        .namespace(object.meta().namespace())
        .list_all(&about)
        .await;

    // Without permission to read events or the journal, the rest is shown.
    let stages = client.get(&format!("/coracle/why/{uid}")).await.ok();
    let stages = stages.and_then(|noted| Some(noted.get("stages")?.as_array()?.to_vec()));

    Ok(Facts {
        owners: owners(&client, &mapper, &object).await,
        below: below(&client, &mapping, &object).await,
        events: events.map(|list| list.items).unwrap_or_default(),
        stages,
        object,
    })
}

/// The controllers of an object, the nearest first.
async fn owners(client: &Client, mapper: &Mapper, object: &Value) -> Vec<Value> {
    let mut owners: Vec<Value> = Vec::new();
    loop {
        let meta = owners.last().unwrap_or(object).meta();
        let Some(owner) = meta.owner_references().find(|owner| owner.controller) else {
            return owners;
        };
        let (group, version) = owner
            .api_version
            .split_once('/')
            .unwrap_or(("", owner.api_version));

        let Ok(mapping) = mapper.of_kind(group, version, owner.kind).await else {
            return owners;
        };

        let access = client
            .resource(&mapping.resource)
            .namespace(meta.namespace());
        match access.get(owner.name).await {
            Ok(found) if found.meta().uid() == owner.uid && owners.len() < LONGEST_CHAIN => {
                owners.push(found)
            }
            _ => return owners,
        }
    }
}

/// Maximum length of a chain of owners.
const LONGEST_CHAIN: usize = 8;

/// The pods that a workload controls, or the ReplicaSets of a Deployment and their pods.
async fn below(client: &Client, mapping: &Mapping, object: &Value) -> Vec<Value> {
    let controlled = async |plural: &str, group: &str, by: &[String]| {
        let access = client
            .resource(&Resource::builtin(group, "v1", plural))
            .namespace(object.meta().namespace());
        let all = access
            .list_all(&ListOptions::default())
            .await
            .map(|list| list.items)
            .unwrap_or_default();

        let is = |item: &Value| {
            item.meta()
                .owner_references()
                .any(|owner| owner.controller && by.iter().any(|uid| uid == owner.uid))
        };

        all.into_iter().filter(is).collect::<Vec<_>>()
    };

    let own = [object.meta().uid().to_string()];
    match mapping.resource.kind.as_str() {
        "ReplicaSet" | "StatefulSet" | "DaemonSet" | "Job" | "ReplicationController" => {
            controlled("pods", "", &own).await
        }
        "Deployment" => {
            let sets = controlled("replicasets", "apps", &own).await;
            let uids: Vec<String> = sets
                .iter()
                .map(|set| set.meta().uid().to_string())
                .collect();
            controlled("pods", "", &uids).await
        }
        "Service" => behind_service(client, object).await,
        _ => Vec::new(),
    }
}

/// The EndpointSlices of a Service, and the pods that its selector matches.
async fn behind_service(client: &Client, service: &Value) -> Vec<Value> {
    let list = async |resource: Resource, selector: String| {
        let access = client
            .resource(&resource)
            .namespace(service.meta().namespace());
        let found = access.list_all(&ListOptions::labels(selector)).await;
        let kind = resource.kind.clone();
        let mut items = found.map(|list| list.items).unwrap_or_default();

        // Items of a list have no kind.
        items
            .iter_mut()
            .filter_map(Value::as_object_mut)
            .for_each(|item| drop(item.insert("kind", kind.as_str())));

        items
    };

    let of_service = format!("kubernetes.io/service-name={}", service.meta().name());
    let mut found = list(
        Resource::builtin("discovery.k8s.io", "v1", "endpointslices"),
        of_service,
    )
    .await;

    if let Some(selector) = verdict::selector(service) {
        found.extend(list(Resource::builtin("", "v1", "pods"), selector).await);
    }

    found
}
