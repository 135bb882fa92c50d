//! The profiles of a KubeSchedulerConfiguration, parsed strictly.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Value;
use coracle_api::typed::from_tree;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::plugin_sets::{Enabled, PluginSet, PluginSets, Point};
use super::{Config, ConfigError, DEFAULT_SCHEDULER, ProfileConfig};

pub(super) fn read(tree: &Value) -> Result<Vec<ProfileConfig>, ConfigError> {
    let listed: Vec<FileProfile> =
        from_tree(tree).map_err(|error| ConfigError(vec![error.to_string()]))?;
    let mut mistakes = Vec::new();
    let profiles = profiles(&listed, tree, &mut mistakes);

    if mistakes.is_empty() {
        Ok(profiles)
    } else {
        Err(ConfigError(mistakes))
    }
}

fn profiles(
    listed: &[FileProfile],
    tree: &Value,
    mistakes: &mut Vec<String>,
) -> Vec<ProfileConfig> {
    if listed.is_empty() {
        return Config::default().profiles;
    }

    let trees = tree.as_array().unwrap_or_default();
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

        let percentage = profile.percentage_of_nodes_to_score;
        if let Some(percentage) = percentage.filter(|percentage| !(0..=100).contains(percentage)) {
            mistakes.push(format!(
                "{path}.percentageOfNodesToScore: Invalid value: {percentage}: not in valid range [0-100]"
            ));
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
