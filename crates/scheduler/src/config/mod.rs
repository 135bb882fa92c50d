//! The configuration: `KubeSchedulerConfiguration`, from a file or by default.
//!
//! [`file`] parses the text strictly, [`plugin_sets`] merges its plugins into the default set, and
//! both become one [`Config`] of final types, with all errors reported together.

mod file;
mod plugin_sets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use coracle_api::Value;

pub use plugin_sets::{Enabled, PluginSets, Point};

/// The configuration of the scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub profiles: Vec<ProfileConfig>,
    /// For profiles without their own; 0: depends on the size of the cluster.
    pub percentage_of_nodes_to_score: i64,
    pub initial_backoff: Duration,
    /// Zero: no backoff.
    pub max_backoff: Duration,
    /// How long a pod waits for a helpful event before it is retried anyway.
    pub unschedulable_for: Duration,
    pub leader_election: LeaderElection,
    /// From the file; empty if not set.
    pub kubeconfig: String,
}

/// The configuration of one profile.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileConfig {
    pub name: String,
    pub percentage_of_nodes_to_score: Option<i64>,
    pub plugins: PluginSets,
    /// Arguments by plugin.
    pub args: BTreeMap<String, Value>,
}

/// Leader election among several schedulers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderElection {
    pub enabled: bool,
    pub lease: Duration,
    pub renew: Duration,
    pub retry: Duration,
    pub namespace: String,
    pub name: String,
}

/// All errors of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct ConfigError(pub Vec<String>);

impl Default for Config {
    fn default() -> Config {
        Config {
            profiles: vec![ProfileConfig::named(DEFAULT_SCHEDULER)],
            percentage_of_nodes_to_score: 0,
            initial_backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(10),
            unschedulable_for: Duration::from_secs(5 * 60),
            leader_election: LeaderElection::default(),
            kubeconfig: String::new(),
        }
    }
}

impl Default for LeaderElection {
    fn default() -> LeaderElection {
        LeaderElection {
            enabled: true,
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            namespace: String::from("kube-system"),
            name: String::from("kube-scheduler"),
        }
    }
}

impl ProfileConfig {
    fn named(name: &str) -> ProfileConfig {
        ProfileConfig {
            name: String::from(name),
            percentage_of_nodes_to_score: None,
            plugins: PluginSets::default(),
            args: BTreeMap::new(),
        }
    }
}

impl Config {
    /// Parses a file, YAML or JSON. Missing values have their defaults.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn from_file(text: &[u8]) -> Result<Config, ConfigError> {
        file::read(text)
    }
}

pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
