//! Computes the environment of one container.

use std::collections::BTreeMap;
use std::path::PathBuf;

use coracle_api::go_text::Quoted;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVarSource, FileKeySelector, Pod};

use super::expand::expand;
use super::file;
use crate::downward::{
    Allocatable, Amounts, DownwardError, PodAddresses, field_of_pod, resource_of_container,
};
use crate::pod::PodView as _;
use crate::references::ReferenceError;

/// All inputs of an environment.
pub(super) struct EnvSources<'a> {
    pub(super) pod: &'a Pod,
    pub(super) container: &'a Container,
    pub(super) addresses: PodAddresses<'a>,
    /// The allocatable of the node.
    pub(super) allocatable: &'a Amounts,
    /// Service variables.
    pub(super) services: BTreeMap<String, String>,
    /// By name: the text values of ConfigMaps, and of Secrets.
    pub(super) config_maps: BTreeMap<String, Result<BTreeMap<String, String>, ReferenceError>>,
    pub(super) secrets: BTreeMap<String, Result<BTreeMap<String, ByteString>, ReferenceError>>,
    /// Environment files by volume and path.
    pub(super) files: BTreeMap<(String, String), EnvFile>,
}

/// An environment file.
pub(super) enum EnvFile {
    /// The pod has no such volume.
    NoVolume,
    Read {
        path: PathBuf,
        text: Option<String>,
    },
}

/// Why there is no environment. The texts are upstream's and appear in the container's waiting
/// state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VariableError {
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error(transparent)]
    Downward(#[from] DownwardError),
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    NoKey {
        kind: &'static str,
        key: String,
        namespace: String,
        name: String,
    },
    #[error("cannot find the volume {} referenced by FileKeyRef", Quoted(.0))]
    NoVolume(String),
    #[error("couldn't parse env file")]
    File,
    #[error(
        "environment variable key {} not found in file {}",
        Quoted(key),
        Quoted(file)
    )]
    NoKeyInFile { key: String, file: String },
    #[error("services have not yet been read at least once, cannot construct envvars")]
    NoServices,
    #[error("failed to find node object, expected a node")]
    NoNode,
}

/// The variables: those of `envFrom`, then those of `env` in order, then Service variables. The
/// last of a name wins, but Service variables never override the container's.
pub(super) fn variables(sources: &EnvSources<'_>) -> Result<Vec<(String, String)>, VariableError> {
    let mut result = OrderedVariables::default();
    for from in sources.container.env_from.iter().flatten() {
        for (name, value) in sources.entries_of(from)? {
            result.set(
                format!("{}{name}", from.prefix.as_deref().unwrap_or_default()),
                value,
            );
        }
    }

    for variable in sources.container.env.iter().flatten() {
        let text = variable.value.as_deref().unwrap_or_default();
        let value = match &variable.value_from {
            Some(source) if text.is_empty() => match sources.value_of(source)? {
                Some(value) => value,
                None => continue,
            },
            _ => expand(text, |name| {
                result
                    .get(name)
                    .or(sources.services.get(name).map(String::as_str))
            }),
        };
        result.set(variable.name.clone(), value);
    }

    for (name, value) in &sources.services {
        if result.get(name).is_none() {
            result.set(name.clone(), value.clone());
        }
    }

    Ok(result.variables)
}

/// Variables in the order in which they were first set.
#[derive(Default)]
struct OrderedVariables {
    variables: Vec<(String, String)>,
    positions: BTreeMap<String, usize>,
}

impl OrderedVariables {
    fn get(&self, name: &str) -> Option<&str> {
        self.positions
            .get(name)
            .map(|position| self.variables[*position].1.as_str())
    }

    fn set(&mut self, name: String, value: String) {
        match self.positions.get(&name) {
            Some(position) => self.variables[*position].1 = value,
            None => {
                self.positions.insert(name.clone(), self.variables.len());
                self.variables.push((name, value));
            }
        }
    }
}

impl EnvSources<'_> {
    /// All entries of an object; none if it is optional and missing.
    fn entries_of(&self, from: &EnvFromSource) -> Result<Vec<(String, String)>, VariableError> {
        let pairs = if let Some(reference) = &from.config_map_ref {
            let found = present(self.config_maps.get(&reference.name), reference.optional)?;
            found
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        } else if let Some(reference) = &from.secret_ref {
            let found = present(self.secrets.get(&reference.name), reference.optional)?;
            found
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), text(value)))
                .collect()
        } else {
            Vec::new()
        };

        Ok(pairs)
    }

    /// The value of a source; none: the variable is optional and missing.
    fn value_of(&self, source: &EnvVarSource) -> Result<Option<String>, VariableError> {
        if let Some(field) = &source.field_ref {
            return Ok(Some(field_of_pod(field, self.pod, self.addresses)?));
        }

        if let Some(resource) = &source.resource_field_ref {
            let allocatable = Allocatable::OfPodThenNode(self.allocatable);
            let value =
                resource_of_container(resource, self.pod, Some(self.container), allocatable)?;
            return Ok(Some(value));
        }

        if let Some(reference) = &source.config_map_key_ref {
            let Some(found) = present(self.config_maps.get(&reference.name), reference.optional)?
            else {
                return Ok(None);
            };

            let value = found.get(&reference.key).cloned();
            return self.check_key(
                value,
                "ConfigMap",
                &reference.name,
                &reference.key,
                reference.optional,
            );
        }

        if let Some(reference) = &source.secret_key_ref {
            let Some(found) = present(self.secrets.get(&reference.name), reference.optional)?
            else {
                return Ok(None);
            };
            let value = found.get(&reference.key).map(text);
            return self.check_key(
                value,
                "Secret",
                &reference.name,
                &reference.key,
                reference.optional,
            );
        }

        if let Some(reference) = &source.file_key_ref {
            return self.value_in_file(reference);
        }

        Ok(Some(String::new()))
    }

    fn check_key(
        &self,
        value: Option<String>,
        kind: &'static str,
        name: &str,
        key: &str,
        optional: Option<bool>,
    ) -> Result<Option<String>, VariableError> {
        if value.is_some() || optional == Some(true) {
            return Ok(value);
        }
        let (key, name) = (key.to_owned(), name.to_owned());
        Err(VariableError::NoKey {
            kind,
            key,
            namespace: self.pod.namespace().to_owned(),
            name,
        })
    }

    fn value_in_file(&self, reference: &FileKeySelector) -> Result<Option<String>, VariableError> {
        let file = self
            .files
            .get(&(reference.volume_name.clone(), reference.path.clone()));
        let Some(EnvFile::Read { path, text }) = file else {
            return Err(VariableError::NoVolume(reference.volume_name.clone()));
        };
        let text = text.as_deref().ok_or(VariableError::File)?;

        let value = file::value_of(text, &reference.key).map_err(|_| VariableError::File)?;
        match value.as_str() {
            "" if reference.optional == Some(true) => Ok(None),
            "" => Err(VariableError::NoKeyInFile {
                key: reference.key.clone(),
                file: path.to_string_lossy().into_owned(),
            }),
            _ => Ok(Some(value)),
        }
    }
}

/// An object's entries; none if it is optional and missing.
fn present<T>(
    found: Option<&Result<T, ReferenceError>>,
    optional: Option<bool>,
) -> Result<Option<&T>, ReferenceError> {
    match found {
        Some(Ok(entries)) => Ok(Some(entries)),
        Some(Err(error)) if error.is_not_found() && optional == Some(true) => Ok(None),
        Some(Err(error)) => Err(error.clone()),
        None => Ok(None),
    }
}

/// Bytes that are not UTF-8 are replaced.
fn text(bytes: &ByteString) -> String {
    String::from_utf8_lossy(&bytes.0).into_owned()
}
