//! Network configurations: the plugins, their order and settings.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// A network: a list of plugins that run in order.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NetworkList {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) plugins: Vec<Plugin>,
    /// The original text, stored for the disconnect.
    pub(super) text: Vec<u8>,
}

/// One plugin and its settings.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plugin {
    /// The name of its program.
    pub(super) kind: String,
    settings: Map<String, Value>,
}

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("no networks found in {0:?}")]
    None(PathBuf),
    #[error("cannot read {0:?}")]
    Read(PathBuf, #[source] io::Error),
    #[error("invalid JSON")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Invalid(&'static str),
}

impl NetworkList {
    /// The first valid configuration of a directory.
    pub(super) fn first(folder: &Path) -> Result<Self, ConfigError> {
        Self::usable(folder)?
            .next()
            .ok_or_else(|| ConfigError::None(folder.to_owned()))
    }

    /// The current configuration of a network, if there is one.
    pub(super) fn named(folder: &Path, name: &str) -> Result<Option<Self>, ConfigError> {
        Ok(Self::usable(folder)?.find(|list| list.name == name))
    }

    /// The valid configurations of a directory, sorted by file name. Invalid ones are logged and
    /// skipped.
    fn usable(folder: &Path) -> Result<impl Iterator<Item = Self>, ConfigError> {
        let read = |source| ConfigError::Read(folder.to_owned(), source);
        let mut paths = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            entries => entries
                .and_then(|entries| {
                    entries
                        .map(|entry| Ok(entry?.path()))
                        .collect::<Result<Vec<_>, _>>()
                })
                .map_err(read)?,
        };
        paths.sort();

        let is_configuration = |path: &PathBuf| {
            path.extension().is_some_and(|extension| {
                ["conf", "conflist", "json"]
                    .iter()
                    .any(|known| extension == *known)
            })
        };

        Ok(paths
            .into_iter()
            .filter(is_configuration)
            .filter_map(|path| {
                let found =
                    fs::read(&path).map_err(|source| ConfigError::Read(path.clone(), source));
                let said = |error: &ConfigError| {
                    tracing::warn!(?path, error = ?error, "invalid CNI configuration; skipping it");
                };
                found
                    .and_then(|text| Self::read(&text))
                    .inspect_err(said)
                    .ok()
            }))
    }

    /// Parses a list, or a single plugin as a list of one.
    pub(super) fn read(text: &[u8]) -> Result<Self, ConfigError> {
        let whole: Map<String, Value> = serde_json::from_slice(text)?;
        let field = |name: &str| {
            whole
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };

        let plugins = match whole.get("plugins") {
            Some(Value::Array(plugins)) => plugins
                .iter()
                .map(Plugin::read)
                .collect::<Result<Vec<_>, _>>()?,
            Some(_) => return Err(ConfigError::Invalid("plugins is not a list")),
            None => vec![Plugin::read(&Value::Object(whole.clone()))?],
        };

        let name = field("name");

        // A single plugin without a name, like the `noop` sample, makes the node ready, but pods
        // cannot be connected to it.
        let is_single_and_nameless = name.is_empty() && !whole.contains_key("plugins");
        let is_file_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
            && name.as_bytes()[0].is_ascii_alphanumeric();

        if !is_file_name && !is_single_and_nameless {
            return Err(ConfigError::Invalid(
                "the network name is missing or invalid",
            ));
        }

        if plugins.is_empty() {
            return Err(ConfigError::Invalid("the plugin list is empty"));
        }

        let version = Some(field("cniVersion")).filter(|version| !version.is_empty());
        Ok(Self {
            name,
            version: version.unwrap_or_else(|| "0.2.0".to_owned()),
            plugins,
            text: text.to_vec(),
        })
    }

    /// Whether pods can be connected to it.
    pub(super) fn check_name(&self) -> Result<(), ConfigError> {
        if self.name.is_empty() {
            Err(ConfigError::Invalid("missing network name"))
        } else {
            Ok(())
        }
    }

    /// The input of a plugin: its settings, the network, its capabilities, and the result of the
    /// previous plugin.
    pub(super) fn input(
        &self,
        plugin: &Plugin,
        capabilities: &BTreeMap<&'static str, Value>,
        previous: Option<&Value>,
    ) -> Value {
        let mut input = plugin.settings.clone();
        input.insert("name".to_owned(), json!(self.name));
        input.insert("cniVersion".to_owned(), json!(self.version));
        let declared = input.remove("capabilities");

        let declares =
            |name: &str| declared.as_ref().and_then(|all| all.get(name)) == Some(&json!(true));
        let given: Map<String, Value> = capabilities
            .iter()
            .filter(|(name, _)| declares(name))
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect();

        if !given.is_empty() {
            input.insert("runtimeConfig".to_owned(), Value::Object(given));
        }
        if let Some(previous) = previous {
            input.insert("prevResult".to_owned(), previous.clone());
        }

        Value::Object(input)
    }
}

impl Plugin {
    fn read(value: &Value) -> Result<Self, ConfigError> {
        let settings = value
            .as_object()
            .ok_or(ConfigError::Invalid("a plugin is not an object"))?;
        let kind = settings
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();

        // A program name, not a path.
        if kind.is_empty() || kind.contains('/') || kind == ".." {
            return Err(ConfigError::Invalid(
                "a plugin has a missing or invalid type",
            ));
        }

        Ok(Self {
            kind: kind.to_owned(),
            settings: settings.clone(),
        })
    }

    /// The programs that it needs: its own and that of its IPAM plugin.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        let addresses = self
            .settings
            .get("ipam")
            .and_then(|ipam| ipam.get("type")?.as_str());
        let addresses = addresses.filter(|kind| !kind.is_empty());
        [Some(self.kind.as_str()), addresses].into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_valid_file_is_the_network() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert!(matches!(
            NetworkList::first(folder.path()),
            Err(ConfigError::None(_))
        ));

        assert!(matches!(
            NetworkList::first(Path::new("/nowhere")),
            Err(ConfigError::None(_))
        ));

        write("05-kubeconfig", r#"{"name": "no", "type": "no"}"#);
        write("10-broken.conf", "{");
        write("15-nameless.conflist", r#"{"plugins": [{"type": "x"}]}"#);
        write("16-way.conf", r#"{"name": "way", "type": "../x"}"#);
        write(
            "20-single.conf",
            r#"{"cniVersion": "1.0.0", "name": "single", "type": "one"}"#,
        );

        write(
            "30-list.conflist",
            r#"{"name": "list", "plugins": [{"type": "x"}]}"#,
        );

        let found = NetworkList::first(folder.path()).unwrap();
        assert_eq!(
            (found.name.as_str(), found.plugins[0].kind.as_str()),
            ("single", "one")
        );
    }

    #[test]
    fn a_plugin_gets_the_capabilities_that_it_declares() {
        let list = NetworkList::read(
            br#"{"cniVersion": "1.0.0", "name": "n", "plugins": [
                {"type": "a", "capabilities": {"portMappings": true, "bandwidth": false}, "own": 1}, {"type": "b"}]}"#,
        )
        .unwrap();

        let capabilities = BTreeMap::from([("portMappings", json!([1])), ("bandwidth", json!({}))]);
        let check = |plugin: usize, previous: Option<&Value>, expected: Value| {
            assert_eq!(
                list.input(&list.plugins[plugin], &capabilities, previous),
                expected
            );
        };

        let first = json!({
            "type": "a", "own": 1, "name": "n", "cniVersion": "1.0.0", "runtimeConfig": {"portMappings": [1]},
        });
        check(0, None, first);
        check(
            1,
            Some(&json!({})),
            json!({"type": "b", "name": "n", "cniVersion": "1.0.0", "prevResult": {}}),
        );
    }
}
