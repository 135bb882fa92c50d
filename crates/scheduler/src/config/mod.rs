//! The configuration of the scheduler.
//!
//! [`profiles`] parses the profiles of a file, [`plugin_sets`] merges their plugins into the default
//! set. Everything else is plain values, which the binary sets.

mod plugin_sets;
mod profiles;
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

impl ProfileConfig {
    /// Parses the value of `profiles` in a KubeSchedulerConfiguration. Missing values have their
    /// defaults.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn read(profiles: &Value) -> Result<Vec<ProfileConfig>, ConfigError> {
        profiles::read(profiles)
    }
}

pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
