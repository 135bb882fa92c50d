//! The options of the scheduler, and their validation.

use std::path::PathBuf;
use std::time::Duration;

use coracle_scheduler::config::{Config, ProfileConfig};
use coracle_settings::{Mistakes, Part, Tree};

use crate::settings::{ApiClient, Delegation, ElectionOptions, Gates, Logs, Serving};

/// What the settings set.
#[derive(Default)]
pub(super) struct Options {
    pub(super) config: Option<PathBuf>,
    pub(super) write_config_to: Option<PathBuf>,
    pub(super) api: ApiClient,
    pub(super) election: ElectionOptions,
    pub(super) serving: Serving,
    pub(super) delegation: Delegation,
    pub(super) logs: Logs,
    pub(super) feature_gates: Gates,
    /// Upstream's number of threads of a cycle. Here a cycle has one; the value is only validated.
    pub(super) parallelism: i32,
    pub(super) percentage_of_nodes_to_score: i64,
    pub(super) initial_backoff_seconds: i64,
    pub(super) max_backoff_seconds: i64,
    pub(super) unschedulable_for: Duration,
    pub(super) profiles: Tree,
}

impl Part<ApiClient> for Options {
    fn part(&mut self) -> &mut ApiClient {
        &mut self.api
    }
}

impl Part<ElectionOptions> for Options {
    fn part(&mut self) -> &mut ElectionOptions {
        &mut self.election
    }
}

impl Part<Serving> for Options {
    fn part(&mut self) -> &mut Serving {
        &mut self.serving
    }
}

impl Part<Delegation> for Options {
    fn part(&mut self) -> &mut Delegation {
        &mut self.delegation
    }
}

impl Part<Gates> for Options {
    fn part(&mut self) -> &mut Gates {
        &mut self.feature_gates
    }
}

impl Part<Logs> for Options {
    fn part(&mut self) -> &mut Logs {
        &mut self.logs
    }
}

impl Options {
    /// The configuration of the scheduler; reports all errors together.
    pub(super) fn complete(&self) -> Result<Config, Mistakes> {
        let mut mistakes = Vec::new();
        self.check_numbers(&mut mistakes);
        let default = Config::default();
        let profiles = match &self.profiles.0 {
            None => default.profiles,
            Some(tree) => ProfileConfig::read(tree).unwrap_or_else(|error| {
                mistakes.extend(error.0);
                Vec::new()
            }),
        };

        let seconds = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let config = Config {
            profiles,
            percentage_of_nodes_to_score: self.percentage_of_nodes_to_score,
            initial_backoff: seconds(self.initial_backoff_seconds),
            max_backoff: seconds(self.max_backoff_seconds),
            unschedulable_for: self.unschedulable_for,
        };

        if mistakes.is_empty() {
            Ok(config)
        } else {
            Err(Mistakes(mistakes))
        }
    }

    fn check_numbers(&self, mistakes: &mut Vec<String>) {
        let mut invalid = |path: &str, value: i64, why: &str| {
            mistakes.push(format!("{path}: Invalid value: {value}: {why}"));
        };

        if self.parallelism <= 0 {
            invalid(
                "parallelism",
                self.parallelism.into(),
                "should be an integer value greater than zero",
            );
        }

        let (initial, most) = (self.initial_backoff_seconds, self.max_backoff_seconds);
        if initial <= 0 {
            invalid(
                "podInitialBackoffSeconds",
                initial,
                "must be greater than 0",
            );
        }

        if most < initial {
            invalid(
                "podMaxBackoffSeconds",
                most,
                "must be greater than or equal to PodInitialBackoffSeconds",
            );
        }

        let percentage = self.percentage_of_nodes_to_score;
        if !(0..=100).contains(&percentage) {
            invalid(
                "percentageOfNodesToScore",
                percentage,
                "not in valid range [0-100]",
            );
        }
    }
}
