//! The configuration file: its format, parsed strictly, and validation of its values.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use coracle_api::Value;
use coracle_api::codec::yaml;
use coracle_api::time::parse_duration;
use coracle_api::typed::from_tree;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::plugin_sets::{Enabled, PluginSet, PluginSets, Point};
use super::{Config, ConfigError, DEFAULT_SCHEDULER, LeaderElection, ProfileConfig};

pub(super) fn read(text: &[u8]) -> Result<Config, ConfigError> {
    let one = |message: String| ConfigError(vec![message]);
    let (tree, duplicates) = yaml::decode_strict(text).map_err(|error| one(error.to_string()))?;
    if let Some(duplicates) = duplicates {
        return Err(one(duplicates.to_string()));
    }
    check_kind(&tree).map_err(one)?;
    let file: File = from_tree(&tree).map_err(|error| one(error.to_string()))?;
    config(file, &tree)
}

fn check_kind(tree: &Value) -> Result<(), String> {
    let text = |name| tree.get(name).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        (_, "Policy") => Err(String::from(
            "scheduler policies are no longer supported: use profiles of a KubeSchedulerConfiguration",
        )),
        (VERSION, KIND) => Ok(()),
        (version, kind) => Err(format!(
            "no kind \"{kind}\" is registered for version \"{version}\": want {KIND} of {VERSION}"
        )),
    }
}

fn config(file: File, tree: &Value) -> Result<Config, ConfigError> {
    let mut mistakes = Vec::new();
    let default = Config::default();

    check_numbers(&file, &mut mistakes);
    let config = Config {
        profiles: profiles(&file, tree, &mut mistakes),
        percentage_of_nodes_to_score: file.percentage_of_nodes_to_score.unwrap_or(0),
        initial_backoff: seconds(file.pod_initial_backoff_seconds, default.initial_backoff),
        max_backoff: seconds(file.pod_max_backoff_seconds, default.max_backoff),
        unschedulable_for: default.unschedulable_for,
        leader_election: leader_election(&file.leader_election.unwrap_or_default(), &mut mistakes),
        kubeconfig: file
            .client_connection
            .and_then(|client| client.kubeconfig)
            .unwrap_or_default(),
    };

    if mistakes.is_empty() {
        Ok(config)
    } else {
        Err(ConfigError(mistakes))
    }
}

fn seconds(value: Option<i64>, default: Duration) -> Duration {
    value
        .and_then(|value| u64::try_from(value).ok())
        .map_or(default, Duration::from_secs)
}

fn check_numbers(file: &File, mistakes: &mut Vec<String>) {
    let mut invalid = |path: &str, value: i64, why: &str| {
        mistakes.push(format!("{path}: Invalid value: {value}: {why}"))
    };

    let parallelism = file.parallelism.unwrap_or(16);
    if parallelism <= 0 {
        invalid(
            "parallelism",
            parallelism,
            "should be an integer value greater than zero",
        );
    }

    let (initial, most) = (
        file.pod_initial_backoff_seconds.unwrap_or(1),
        file.pod_max_backoff_seconds.unwrap_or(10),
    );

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

    let percentages = [(
        String::from("percentageOfNodesToScore"),
        file.percentage_of_nodes_to_score,
    )]
    .into_iter();

    let of_profiles = file
        .profiles
        .iter()
        .flatten()
        .enumerate()
        .map(|(index, profile)| {
            (
                format!("profiles[{index}].percentageOfNodesToScore"),
                profile.percentage_of_nodes_to_score,
            )
        });

    for (path, percentage) in percentages.chain(of_profiles) {
        if let Some(percentage) = percentage.filter(|percentage| !(0..=100).contains(percentage)) {
            invalid(&path, percentage, "not in valid range [0-100]");
        }
    }

    if file.extenders.iter().flatten().next().is_some() {
        mistakes.push(String::from("extenders: not supported yet"));
    }
}

fn profiles(file: &File, tree: &Value, mistakes: &mut Vec<String>) -> Vec<ProfileConfig> {
    let none = Vec::new();
    let listed = file
        .profiles
        .as_ref()
        .filter(|profiles| !profiles.is_empty())
        .unwrap_or(&none);

    if listed.is_empty() {
        return Config::default().profiles;
    }

    let trees = tree
        .get("profiles")
        .and_then(Value::as_array)
        .unwrap_or_default();

    let mut profiles: Vec<ProfileConfig> = Vec::new();
    for (index, (profile, tree)) in listed.iter().zip(trees).enumerate() {
        let path = format!("profiles[{index}]");
        let name = match &profile.scheduler_name {
            Some(name) => name.clone(),
            None if listed.len() == 1 => String::from(DEFAULT_SCHEDULER),
            None => String::new(),
        };

        if name.is_empty() {
            mistakes.push(format!("{path}.schedulerName: Required value"));
        } else if profiles.iter().any(|earlier| earlier.name == name) {
            mistakes.push(format!("{path}.schedulerName: Duplicate value: \"{name}\""));
        }

        profiles.push(ProfileConfig {
            name,
            percentage_of_nodes_to_score: profile.percentage_of_nodes_to_score,
            plugins: profile
                .plugins
                .as_ref()
                .map(FilePlugins::sets)
                .unwrap_or_default(),
            args: args(profile, tree, &path, mistakes),
        });
    }

    profiles
}

fn args(
    profile: &FileProfile,
    tree: &Value,
    path: &str,
    mistakes: &mut Vec<String>,
) -> BTreeMap<String, Value> {
    let trees = tree
        .get("pluginConfig")
        .and_then(Value::as_array)
        .unwrap_or_default();

    let mut all = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for (index, (config, tree)) in profile
        .plugin_config
        .iter()
        .flatten()
        .zip(trees)
        .enumerate()
    {
        if !seen.insert(&config.name) {
            mistakes.push(format!(
                "{path}.pluginConfig[{index}]: Duplicate value: \"{}\"",
                config.name
            ));
        }

        if let Some(args) = tree.get("args").filter(|args| !args.is_null()) {
            all.insert(config.name.clone(), args.clone());
        }
    }

    all
}

fn leader_election(file: &FileLeaderElection, mistakes: &mut Vec<String>) -> LeaderElection {
    let default = LeaderElection::default();
    let mut duration = |name: &str, text: &Option<String>, default: Duration| match text.as_deref()
    {
        None | Some("" | "0s") => default,
        Some(text) => match parse_duration(text)
            .ok()
            .and_then(coracle_api::time::Duration::to_std)
        {
            Some(duration) => duration,
            None => {
                mistakes.push(format!(
                    "leaderElection.{name}: Invalid value: \"{text}\": must be greater than zero"
                ));
                default
            }
        },
    };

    let text = |text: &Option<String>, default: String| {
        text.clone()
            .filter(|text| !text.is_empty())
            .unwrap_or(default)
    };

    let election = LeaderElection {
        enabled: file.leader_elect.unwrap_or(default.enabled),
        lease: duration("leaseDuration", &file.lease_duration, default.lease),
        renew: duration("renewDeadline", &file.renew_deadline, default.renew),
        retry: duration("retryPeriod", &file.retry_period, default.retry),
        namespace: text(&file.resource_namespace, default.namespace),
        name: text(&file.resource_name, default.name),
    };

    if election.enabled && election.lease <= election.renew {
        mistakes.push(String::from(
            "leaderElection.leaseDuration: Invalid value: LeaseDuration must be greater than RenewDeadline",
        ));
    }

    if let Some(lock) = file
        .resource_lock
        .as_deref()
        .filter(|lock| !lock.is_empty() && *lock != "leases")
    {
        mistakes.push(format!(
            "leaderElection.resourceLock: Invalid value: \"{lock}\": resourceLock value must be \"leases\""
        ));
    }

    election
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    parallelism: Option<i64>,
    leader_election: Option<FileLeaderElection>,
    client_connection: Option<FileClient>,
    #[serde(rename = "enableProfiling")]
    _enable_profiling: Option<bool>,
    #[serde(rename = "enableContentionProfiling")]
    _enable_contention_profiling: Option<bool>,
    percentage_of_nodes_to_score: Option<i64>,
    pod_initial_backoff_seconds: Option<i64>,
    pod_max_backoff_seconds: Option<i64>,
    profiles: Option<Vec<FileProfile>>,
    extenders: Option<Vec<IgnoredAny>>,
    #[serde(rename = "delayCacheUntilActive")]
    _delay_cache_until_active: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileLeaderElection {
    leader_elect: Option<bool>,
    lease_duration: Option<String>,
    renew_deadline: Option<String>,
    retry_period: Option<String>,
    resource_lock: Option<String>,
    resource_name: Option<String>,
    resource_namespace: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileClient {
    kubeconfig: Option<String>,
    #[serde(rename = "acceptContentTypes")]
    _accept_content_types: Option<String>,
    #[serde(rename = "contentType")]
    _content_type: Option<String>,
    #[serde(rename = "qps")]
    _qps: Option<f64>,
    #[serde(rename = "burst")]
    _burst: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FileProfile {
    scheduler_name: Option<String>,
    percentage_of_nodes_to_score: Option<i64>,
    plugins: Option<FilePlugins>,
    plugin_config: Option<Vec<FilePluginConfig>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FilePluginConfig {
    name: String,
    #[serde(rename = "args")]
    _args: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct FilePlugins {
    multi_point: FileSet,
    pre_enqueue: FileSet,
    queue_sort: FileSet,
    pre_filter: FileSet,
    filter: FileSet,
    post_filter: FileSet,
    pre_score: FileSet,
    score: FileSet,
    reserve: FileSet,
    permit: FileSet,
    pre_bind: FileSet,
    bind: FileSet,
    post_bind: FileSet,
    /// For gang scheduling, which is off: accepted and ignored.
    #[serde(rename = "placementGenerate")]
    _placement_generate: FileSet,
    #[serde(rename = "placementScore")]
    _placement_score: FileSet,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileSet {
    enabled: Vec<FilePlugin>,
    disabled: Vec<FilePlugin>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePlugin {
    name: String,
    weight: Option<i64>,
}

impl FilePlugins {
    fn sets(&self) -> PluginSets {
        let points = [
            (Point::PreEnqueue, &self.pre_enqueue),
            (Point::QueueSort, &self.queue_sort),
            (Point::PreFilter, &self.pre_filter),
            (Point::Filter, &self.filter),
            (Point::PostFilter, &self.post_filter),
            (Point::PreScore, &self.pre_score),
            (Point::Score, &self.score),
            (Point::Reserve, &self.reserve),
            (Point::Permit, &self.permit),
            (Point::PreBind, &self.pre_bind),
            (Point::Bind, &self.bind),
            (Point::PostBind, &self.post_bind),
        ];

        let points = points
            .into_iter()
            .map(|(point, set)| (point, set.plain()))
            .collect();

        PluginSets::changed(&self.multi_point.plain(), points)
    }
}

impl FileSet {
    fn plain(&self) -> PluginSet {
        let enabled = |plugin: &FilePlugin| Enabled {
            name: plugin.name.clone(),
            weight: plugin.weight.unwrap_or(0),
        };

        PluginSet {
            enabled: self.enabled.iter().map(enabled).collect(),
            disabled: self
                .disabled
                .iter()
                .map(|plugin| plugin.name.clone())
                .collect(),
        }
    }
}

const VERSION: &str = "kubescheduler.config.k8s.io/v1";
const KIND: &str = "KubeSchedulerConfiguration";
