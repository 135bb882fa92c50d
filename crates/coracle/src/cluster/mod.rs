//! `coracle cluster`: clusters of several nodes on one machine, for people who develop and for tests.
//!
//! Each node is a server or an agent with real containers, in namespaces of its own ([`place`]):
//! network, mounts, and a place in the cgroups that its data directory names. The nodes of a cluster
//! are connected by a bridge in another network namespace, which this machine reaches by one interface.
//! What is known of a cluster is in its directory ([`state`]); no process belongs to it but its nodes.

mod kubeconfig;
mod nodes;
mod place;
mod state;
mod sys;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use coracle_api::codec::yaml;
use coracle_base::error_chain;
use coracle_client::ConfigError;
use coracle_netlink::NetlinkError;

use crate::process::{self, ProcessError};
use crate::settings::subdomain;
use crate::token::TokenError;
use nodes::State;
use state::Cluster;

/// Creates and manages clusters of several nodes on this machine.
#[derive(Args)]
pub(crate) struct ClusterCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Create a cluster, and add it to the kubeconfig
    Create {
        /// Name of the cluster
        name: String,
        /// Number of nodes; the first is the server
        #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u8).range(1..=50))]
        nodes: u8,
        /// Leave the kubeconfig as it is
        #[arg(long)]
        no_kubeconfig: bool,
    },
    /// List clusters and their nodes
    List,
    /// Delete a cluster with everything that belongs to it
    Delete {
        /// Name of the cluster
        name: String,
    },
    /// Print the kubeconfig of a cluster
    Kubeconfig {
        /// Name of the cluster
        name: String,
    },
    /// Import image archives on all nodes of a cluster
    LoadImage {
        /// Name of the cluster
        name: String,
        /// Archives or OCI layout directories
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Stop a node with its pods, as when its machine is switched off
    StopNode {
        /// Name of the node
        node: String,
    },
    /// Start a stopped node
    StartNode {
        /// Name of the node
        node: String,
    },
    /// Cut a node off from the others and from this machine
    Partition {
        /// Name of the node
        node: String,
    },
    /// Connect a node again that was cut off
    Heal {
        /// Name of the node
        node: String,
    },
    /// Copy the logs of all nodes and of their pods
    ExportLogs {
        /// Name of the cluster
        name: String,
        /// Directory to create
        folder: PathBuf,
    },
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("clusters need root")]
    NotRoot,
    #[error("cluster name: {0}")]
    Name(String),
    #[error("a cluster named {0} exists")]
    Exists(String),
    #[error("no cluster is named {0}")]
    Unknown(String),
    #[error("no node is named {0}")]
    UnknownNode(String),
    #[error("there are too many clusters on this machine")]
    TooMany,
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{}: invalid content: {error}", path.display())]
    Damaged {
        path: PathBuf,
        error: serde_json::Error,
    },
    #[error("{}: not a kubeconfig", .0.display())]
    Kubeconfig(PathBuf),
    #[error("neither KUBECONFIG nor HOME is set; use --no-kubeconfig")]
    NoHome,
    #[error("cannot set up the network of the cluster")]
    Network(#[from] NetlinkError),
    #[error("cannot create the namespaces of {node}")]
    Place { node: String, source: io::Error },
    #[error("node {node} does not start; the end of its log, {}:\n{tail}", log.display())]
    Node {
        node: String,
        log: PathBuf,
        tail: String,
    },
    #[error("cannot configure the API client")]
    Client(#[from] ConfigError),
    #[error("cannot create a token")]
    Token(#[from] TokenError),
    #[error("{node}: `coracle {command}` failed: {error}")]
    Command {
        node: String,
        command: &'static str,
        error: String,
    },
}

pub(crate) fn run(command: &ClusterCommand) -> Result<(), ClusterError> {
    if !rustix::process::geteuid().is_root() {
        return Err(ClusterError::NotRoot);
    }

    match &command.command {
        Command::Create {
            name,
            nodes,
            no_kubeconfig,
        } => create(name, *nodes, !no_kubeconfig),
        Command::List => list(),
        Command::Delete { name } => delete(&state::find(name)?),
        Command::Kubeconfig { name } => {
            let config = kubeconfig::own(&state::find(name)?)?;
            process::print(yaml::print(&config));
            Ok(())
        }
        Command::LoadImage { name, files } => nodes::load_images(&state::find(name)?, files),
        Command::StopNode { node } => {
            let (cluster, index) = state::find_node(node)?;
            nodes::stop(&cluster, index)
        }
        Command::StartNode { node } => {
            let (cluster, index) = state::find_node(node)?;
            nodes::start(&cluster, index, None)
        }
        Command::Partition { node } => {
            let (cluster, index) = state::find_node(node)?;
            nodes::connect(&cluster, index, false)
        }
        Command::Heal { node } => {
            let (cluster, index) = state::find_node(node)?;
            nodes::connect(&cluster, index, true)
        }
        Command::ExportLogs { name, folder } => nodes::export_logs(&state::find(name)?, folder),
    }
}

fn create(name: &str, count: u8, merges: bool) -> Result<(), ClusterError> {
    subdomain(name).map_err(ClusterError::Name)?;
    if name.len() > 40 || name.contains('.') {
        let why = "at most 40 letters, digits and hyphens".to_owned();
        return Err(ClusterError::Name(why));
    }
    let taken = state::all()?;
    if taken.iter().any(|cluster| cluster.name == name) {
        return Err(ClusterError::Exists(name.to_owned()));
    }

    let mut cluster = Cluster::new(name, count, &taken)?;
    let folder = cluster.folder();
    let fail = |error| ClusterError::File {
        path: folder.clone(),
        error,
    };
    cluster.made_kubelet_folder = place::make_kubelet_folder().map_err(fail)?;
    cluster.write().map_err(fail)?;

    let made = nodes::create(&cluster).and_then(|()| match merges {
        true => kubeconfig::merge(&cluster).map(Some),
        false => Ok(None),
    });
    match made {
        Ok(context) => {
            let count = cluster.nodes.len();
            let nodes = if count == 1 { "node" } else { "nodes" };
            process::print_line(format_args!(
                "cluster {name} is ready at {} with {count} {nodes}",
                cluster.url()
            ));
            if let Some(context) = context {
                process::print_line(format_args!("  kubectl --context {context} get nodes"));
            }
            Ok(())
        }
        Err(error) => {
            if let Err(also) = remove(&cluster) {
                tracing::warn!(error = %error_chain(&also), "cannot remove what was created");
            }
            Err(error)
        }
    }
}

fn list() -> Result<(), ClusterError> {
    process::print_line("CLUSTER  NODE  ADDRESS  STATE");
    for cluster in state::all()? {
        for (index, node) in cluster.nodes.iter().enumerate() {
            let state = match nodes::state(&cluster, node)? {
                State::Running => "running",
                State::Stopped => "stopped",
            };
            let address = cluster.node_address(index);
            process::print_line(format_args!("{}  {node}  {address}  {state}", cluster.name));
        }
    }
    Ok(())
}

fn delete(cluster: &Cluster) -> Result<(), ClusterError> {
    remove(cluster)?;
    match kubeconfig::remove(cluster) {
        // There is no file to remove it from.
        Err(ClusterError::NoHome) => {}
        other => other?,
    }
    process::print_line(format_args!("cluster {} deleted", cluster.name));
    Ok(())
}

/// Removes everything of a cluster from this machine. Can be repeated.
fn remove(cluster: &Cluster) -> Result<(), ClusterError> {
    nodes::remove(cluster)?;
    remove_tree(&cluster.folder())?;
    state::remove_empty_folders()?;

    if !cluster.made_kubelet_folder {
        return Ok(());
    }
    let removed = match state::all()?.into_iter().next() {
        None => place::remove_kubelet_folder(),
        // The others need it; the last one removes it.
        Some(mut other) => {
            other.made_kubelet_folder = true;
            other.write()
        }
    };
    removed.map_err(|error| ClusterError::File {
        path: cluster.folder(),
        error,
    })
}

fn remove_tree(path: &Path) -> Result<(), ClusterError> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(ClusterError::File {
            path: path.to_owned(),
            error,
        }),
        _ => Ok(()),
    }
}
