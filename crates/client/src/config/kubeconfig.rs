//! Kubeconfig files: what stands in one, and what several say together.
//!
//! Of clusters, users and contexts the first file that has an entry owns the whole of it; of
//! `current-context` the first that sets it. Paths in a file are relative to the file.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use coracle_api::codec::yaml;
use coracle_api::typed;
use serde::Deserialize;

use super::ConfigError;

/// What kubeconfig files say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Kubeconfig {
    /// Where servers are.
    pub clusters: Vec<Named<Cluster>>,
    /// Who one may be.
    pub users: Vec<Named<User>>,
    /// Who one is where.
    pub contexts: Vec<Named<Context>>,
    /// The context that holds unless another is named.
    pub current_context: String,
}

/// An entry and its name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Named<T> {
    /// By which others refer to it.
    pub name: String,
    /// What it says.
    #[serde(alias = "cluster", alias = "user", alias = "context")]
    pub entry: T,
}

/// Where a server is, and how one knows that it is the right one.
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

/// Who one is.
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

/// A way to get credentials that is built into clients; none is any more.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AuthProvider {
    /// Which one.
    pub name: String,
}

/// A program that gives credentials.
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

/// A variable that such a program gets.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names are the file's")]
pub struct ExecEnv {
    pub name: String,
    pub value: String,
}

/// Who one is where.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names are the file's")]
pub struct Context {
    pub cluster: String,
    pub user: String,
    pub namespace: String,
}

impl Kubeconfig {
    /// What a file says; `Ok(None)`: it is not there.
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

    /// What the text of `file` says.
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

    /// What all files say together, the first of them first; those that are not there say nothing.
    pub fn merged(files: &[PathBuf]) -> Result<Kubeconfig, ConfigError> {
        let mut merged = Kubeconfig::default();
        for file in files {
            if let Some(config) = Kubeconfig::read(file)? {
                merged.merge(config);
            }
        }
        Ok(merged)
    }

    /// Adds what is new in `later`.
    pub fn merge(&mut self, later: Kubeconfig) {
        add(&mut self.clusters, later.clusters);
        add(&mut self.users, later.users);
        add(&mut self.contexts, later.contexts);
        if self.current_context.is_empty() {
            self.current_context = later.current_context;
        }
    }

    /// Whether nothing is said at all.
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
