//! What is known of the clusters of this machine. Each has a directory with the files of its nodes.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::ClusterError;
use super::place::Place;

/// A cluster of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Cluster {
    pub(super) name: String,
    /// Which of the subnets it has.
    pub(super) number: u8,
    /// Its nodes; the first is the server.
    pub(super) nodes: Vec<String>,
    /// Whether `/var/lib/kubelet` was made for it.
    pub(super) made_kubelet_folder: bool,
}

/// The directory of all clusters.
const CLUSTERS: &str = "/var/lib/coracle-clusters";
/// The directory of their namespaces.
const PLACES: &str = "/run/coracle-clusters";
/// The first host of each subnet is this machine.
const SUBNETS: [u8; 2] = [172, 30];

impl Cluster {
    pub(super) fn new(name: &str, nodes: u8, taken: &[Cluster]) -> Result<Cluster, ClusterError> {
        let number = (0..=u8::MAX)
            .find(|number| taken.iter().all(|cluster| cluster.number != *number))
            .ok_or(ClusterError::TooMany)?;
        let workers = (1..nodes).map(|worker| match worker {
            1 => format!("{name}-worker"),
            worker => format!("{name}-worker{worker}"),
        });
        Ok(Cluster {
            name: name.to_owned(),
            number,
            nodes: std::iter::once(format!("{name}-control-plane"))
                .chain(workers)
                .collect(),
            made_kubelet_folder: false,
        })
    }

    pub(super) fn folder(&self) -> PathBuf {
        Path::new(CLUSTERS).join(&self.name)
    }

    pub(super) fn places(&self) -> PathBuf {
        Path::new(PLACES).join(&self.name)
    }

    /// The bridge that connects its nodes.
    pub(super) fn bridge(&self) -> Place {
        Place::at(self.places().join("bridge"))
    }

    pub(super) fn place(&self, node: &str) -> Place {
        Place::at(self.places().join("nodes").join(node))
    }

    pub(super) fn data_dir(&self, node: &str) -> PathBuf {
        self.folder().join("nodes").join(node)
    }

    pub(super) fn log(&self, node: &str) -> PathBuf {
        self.folder().join(format!("{node}.log"))
    }

    /// The interface of this machine to its nodes.
    pub(super) fn uplink(&self) -> String {
        format!("cor-cl-{}", self.number)
    }

    /// The address of this machine in its subnet.
    pub(super) fn gateway(&self) -> Ipv4Addr {
        self.address(0)
    }

    /// The address of a node, by its place in the list.
    pub(super) fn node_address(&self, index: usize) -> Ipv4Addr {
        self.address(u8::try_from(index + 1).unwrap_or(u8::MAX))
    }

    fn address(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(SUBNETS[0], SUBNETS[1], self.number, host + 1)
    }

    /// The port of the bridge for a node.
    pub(super) fn port(index: usize) -> String {
        format!("node{index}")
    }

    pub(super) fn url(&self) -> String {
        format!("https://{}:6443", self.node_address(0))
    }

    pub(super) fn write(&self) -> io::Result<()> {
        fs::create_dir_all(self.folder())?;
        let text = serde_json::to_vec_pretty(self).expect("it is plain data");
        fs::write(self.folder().join(FILE), text)
    }
}

const FILE: &str = "cluster.json";

/// Removes the directories of all clusters after the last one.
pub(super) fn remove_empty_folders() -> Result<(), ClusterError> {
    for folder in [CLUSTERS, PLACES] {
        match fs::remove_dir(folder) {
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty
                ) =>
            {
                let path = PathBuf::from(folder);
                return Err(ClusterError::File { path, error });
            }
            _ => {}
        }
    }
    Ok(())
}

/// All clusters, by name.
pub(super) fn all() -> Result<Vec<Cluster>, ClusterError> {
    let fail = |error| ClusterError::File {
        path: PathBuf::from(CLUSTERS),
        error,
    };
    let entries = match fs::read_dir(CLUSTERS) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(fail)?,
    };

    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(fail)?.path().join(FILE);
        match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ClusterError::File { path, error }),
            Ok(bytes) => found.push(
                serde_json::from_slice(&bytes)
                    .map_err(|error| ClusterError::Damaged { path, error })?,
            ),
        }
    }
    found.sort_by(|one: &Cluster, other| one.name.cmp(&other.name));
    Ok(found)
}

pub(super) fn find(name: &str) -> Result<Cluster, ClusterError> {
    let found = all()?.into_iter().find(|cluster| cluster.name == name);
    found.ok_or_else(|| ClusterError::Unknown(name.to_owned()))
}

/// The cluster of a node, and the node's place in its list.
pub(super) fn find_node(node: &str) -> Result<(Cluster, usize), ClusterError> {
    let found = all()?.into_iter().find_map(|cluster| {
        let index = cluster.nodes.iter().position(|name| name == node)?;
        Some((cluster, index))
    });
    found.ok_or_else(|| ClusterError::UnknownNode(node.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_have_names_and_addresses_of_their_own() {
        let one = Cluster::new("a", 3, &[]).unwrap();
        assert_eq!(one.nodes, ["a-control-plane", "a-worker", "a-worker2"]);
        assert_eq!(one.node_address(0).to_string(), "172.30.0.2");
        assert_eq!(one.gateway().to_string(), "172.30.0.1");
        assert_eq!(one.url(), "https://172.30.0.2:6443");

        let other = Cluster::new("b", 1, &[one]).unwrap();
        assert_eq!(other.number, 1);
        assert!(other.uplink().len() <= 15);
    }
}
