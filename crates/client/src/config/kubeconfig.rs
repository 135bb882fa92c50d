//! Kubeconfig files and their merge.
//!
//! The first file with an entry of a cluster, user or context wins for the whole entry; the first
//! one that sets `current-context` wins. Paths in a file are relative to the file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use coracle_api::codec::yaml;
use coracle_api::typed;
use serde::Deserialize;

use super::ConfigError;

/// The contents of kubeconfig files.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kubeconfig {
    /// The clusters.
    pub clusters: Vec<Named<Cluster>>,
    /// The users.
    pub users: Vec<Named<User>>,
    /// The contexts.
    pub contexts: Vec<Named<Context>>,
    /// The current context.
    pub current_context: String,
}

/// A named entry.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Named<T> {
    /// The name.
    pub name: String,
    /// The entry.
    #[serde(alias = "cluster", alias = "user", alias = "context")]
    pub entry: T,
}

/// A server and how to verify it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Cluster {
    #[expect(missing_docs, reason = "the names are the file's")]
    pub server: String,
    #[expect(missing_docs, reason = "the names are the file's")]
    pub tls_server_name: String,
    #[expect(missing_docs, reason = "the names are the file's")]
    pub insecure_skip_tls_verify: bool,
    #[expect(missing_docs, reason = "the names are the file's")]
    pub proxy_url: String,
    #[expect(missing_docs, reason = "the names are the file's")]
    pub certificate_authority: String,
    #[expect(missing_docs, reason = "the names are the file's")]
    pub certificate_authority_data: String,
}

/// A user's credentials.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[expect(missing_docs, reason = "the names are the file's")]
pub struct User {
    pub client_certificate: String,
    pub client_certificate_data: String,
    pub client_key: String,
    pub client_key_data: String,
    pub token: String,
    #[serde(rename = "tokenFile")]
    pub token_file: String,
    pub username: String,
    pub password: String,
    #[serde(rename = "as")]
    pub as_user: String,
    pub as_uid: String,
    pub as_groups: Vec<String>,
    pub as_user_extra: BTreeMap<String, Vec<String>>,
    pub auth_provider: Option<AuthProvider>,
    pub exec: Option<Exec>,
}

/// A legacy auth provider; none is supported any more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AuthProvider {
    /// The provider's name.
    pub name: String,
}

/// A credential plugin.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the names are the file's")]
pub struct Exec {
    pub api_version: String,
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<ExecEnv>,
    pub install_hint: String,
    pub provide_cluster_info: bool,
    pub interactive_mode: String,
}

/// An environment variable of a credential plugin.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names are the file's")]
pub struct ExecEnv {
    pub name: String,
    pub value: String,
}

/// A cluster, a user and a default namespace.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names are the file's")]
pub struct Context {
    pub cluster: String,
    pub user: String,
    pub namespace: String,
}

impl Kubeconfig {
    /// Reads a file; `Ok(None)`: it does not exist.
    pub fn read(file: &Path) -> Result<Option<Kubeconfig>, ConfigError> {
        match std::fs::read(file) {
            Ok(text) => Kubeconfig::parse(&text, file).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ConfigError::Read {
                file: file.to_path_buf(),
                source,
            }),
        }
    }

    /// Parses the contents of `file`.
    pub fn parse(text: &[u8], file: &Path) -> Result<Kubeconfig, ConfigError> {
        let malformed = |reason: String| ConfigError::Malformed {
            file: file.to_path_buf(),
            reason,
        };

        let tree = yaml::decode(text).map_err(|error| malformed(error.to_string()))?;
        if tree.is_null() {
            return Ok(Kubeconfig::default());
        }

        let mut config: Kubeconfig =
            typed::from_tree(&tree).map_err(|error| malformed(error.to_string()))?;
        unique(&config.clusters).map_err(malformed)?;
        unique(&config.users).map_err(malformed)?;
        unique(&config.contexts).map_err(malformed)?;
        config.resolve_paths(file.parent().unwrap_or(Path::new("")));

        Ok(config)
    }

    /// Merges files, the first one first; missing files are skipped.
    pub fn merged(files: &[PathBuf]) -> Result<Kubeconfig, ConfigError> {
        let mut merged = Kubeconfig::default();
        for file in files {
            if let Some(config) = Kubeconfig::read(file)? {
                merged.merge(config);
            }
        }
        Ok(merged)
    }

    /// Adds the entries of `later` that are not there yet.
    pub fn merge(&mut self, later: Kubeconfig) {
        add(&mut self.clusters, later.clusters);
        add(&mut self.users, later.users);
        add(&mut self.contexts, later.contexts);
        if self.current_context.is_empty() {
            self.current_context = later.current_context;
        }
    }

    /// Whether there is no entry at all.
    pub fn is_empty(&self) -> bool {
        *self == Kubeconfig::default()
    }

    fn resolve_paths(&mut self, folder: &Path) {
        let resolve = |path: &mut String| {
            if !path.is_empty() {
                *path = folder.join(path.as_str()).to_string_lossy().into_owned();
            }
        };

        self.clusters
            .iter_mut()
            .for_each(|cluster| resolve(&mut cluster.entry.certificate_authority));

        for Named { entry: user, .. } in &mut self.users {
            let files = [
                &mut user.client_certificate,
                &mut user.client_key,
                &mut user.token_file,
            ];
            files.into_iter().for_each(resolve);

            // A bare name is looked up in PATH.
            if let Some(exec) = user.exec.as_mut().filter(|exec| exec.command.contains('/')) {
                resolve(&mut exec.command);
            }
        }
    }
}

pub(super) fn find<'a, T>(entries: &'a [Named<T>], name: &str) -> Option<&'a T> {
    entries
        .iter()
        .find(|entry| entry.name == name)
        .map(|entry| &entry.entry)
}

fn add<T>(entries: &mut Vec<Named<T>>, later: Vec<Named<T>>) {
    for entry in later {
        if find(entries, &entry.name).is_none() {
            entries.push(entry);
        }
    }
}

fn unique<T>(entries: &[Named<T>]) -> Result<(), String> {
    let twice = entries
        .iter()
        .enumerate()
        .find(|(at, entry)| find(&entries[..*at], &entry.name).is_some());
    twice.map_or(Ok(()), |(_, entry)| {
        Err(format!("duplicate name {:?} in list", entry.name))
    })
}
