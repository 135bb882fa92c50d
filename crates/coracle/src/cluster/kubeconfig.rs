//! The kubeconfig of a cluster: printed, and merged into that of the user.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use coracle_api::codec::yaml;
use coracle_api::{Map, Value};
use coracle_files::private;

use super::ClusterError;
use super::state::Cluster;
use crate::process;

/// The name of cluster, user and context in the kubeconfig.
fn entry_name(cluster: &Cluster) -> String {
    format!("coracle-{}", cluster.name)
}

/// The user's file: the first of KUBECONFIG, or ~/.kube/config.
fn file() -> Option<PathBuf> {
    let given = process::variable("KUBECONFIG").unwrap_or_default();
    let first = given.split(':').find(|file| !file.is_empty());
    let home = process::variable("HOME").filter(|home| !home.is_empty());
    first
        .map(PathBuf::from)
        .or_else(|| home.map(|home| Path::new(&home).join(".kube/config")))
}

fn read(path: &Path) -> Result<Value, ClusterError> {
    let fail = |error| ClusterError::File {
        path: path.to_owned(),
        error,
    };
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Value::Null),
        Err(error) => Err(fail(error)),
        Ok(text) => yaml::decode(&text).map_err(|error| fail(io::Error::other(error.to_string()))),
    }
}

/// The administrator's kubeconfig of a cluster, with the address at which this machine reaches it.
pub(super) fn own(cluster: &Cluster) -> Result<Value, ClusterError> {
    let server = &cluster.nodes[0];
    let mut config = read(&cluster.data_dir(server).join("admin.kubeconfig"))?;
    let name = entry_name(cluster);
    for (list, field) in [
        ("clusters", "cluster"),
        ("users", "user"),
        ("contexts", "context"),
    ] {
        let entries = config
            .as_object_mut()
            .and_then(|config| config.get_mut(list));
        let entries = entries.and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            let Some(entry) = entry.as_object_mut() else {
                continue;
            };
            entry.insert("name", name.as_str());
            let fields = entry.object_mut(field);
            match list {
                "clusters" => drop(fields.insert("server", cluster.url())),
                "contexts" => {
                    fields.insert("cluster", name.as_str());
                    fields.insert("user", name.as_str());
                }
                _ => {}
            }
        }
    }
    if let Some(config) = config.as_object_mut() {
        config.insert("current-context", name);
    }
    Ok(config)
}

/// Adds a cluster to the user's kubeconfig, as its current context; returns the name of the context.
pub(super) fn merge(cluster: &Cluster) -> Result<String, ClusterError> {
    let own = own(cluster)?;
    change(cluster, |config, name| {
        for list in LISTS {
            let entries = own.get(list).and_then(Value::as_array);
            let entries = entries.into_iter().flatten().cloned();
            list_of(config, list).extend(entries);
        }
        config.insert("current-context", name);
    })?;
    Ok(entry_name(cluster))
}

/// Removes a cluster from the user's kubeconfig.
pub(super) fn remove(cluster: &Cluster) -> Result<(), ClusterError> {
    change(cluster, |config, name| {
        if config.str("current-context") == Some(name) {
            config.insert("current-context", "");
        }
    })
}

const LISTS: [&str; 3] = ["clusters", "users", "contexts"];

/// Changes the user's kubeconfig, from which the entries of the cluster are removed first. Others
/// stay as they are.
fn change(cluster: &Cluster, change: impl FnOnce(&mut Map, &str)) -> Result<(), ClusterError> {
    let path = file().ok_or(ClusterError::NoHome)?;
    let name = entry_name(cluster);
    let mut config = match read(&path)? {
        Value::Object(config) => config,
        Value::Null => {
            let mut config = Map::new();
            config.insert("apiVersion", "v1");
            config.insert("kind", "Config");
            config
        }
        _ => return Err(ClusterError::Kubeconfig(path)),
    };

    for list in LISTS {
        list_of(&mut config, list)
            .retain(|entry| entry.get("name").and_then(Value::as_str) != Some(&name));
    }
    change(&mut config, &name);

    let fail = |error| ClusterError::File {
        path: path.clone(),
        error,
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    private::write(&path, yaml::print(&Value::Object(config)).as_bytes()).map_err(fail)
}

/// A list of a kubeconfig, which may be missing or null.
fn list_of<'a>(config: &'a mut Map, name: &str) -> &'a mut Vec<Value> {
    if config.get(name).and_then(Value::as_array).is_none() {
        config.insert(name, Value::Array(Vec::new()));
    }
    config
        .get_mut(name)
        .and_then(Value::as_array_mut)
        .expect("it is a list now")
}
