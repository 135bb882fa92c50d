//! Plugins by name, and profiles built from them.
//!
//! An out-of-tree plugin is registered beside the built-in ones and named in a profile: nothing else
//! changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Args, Handle, PLUGINS};
use crate::config::{Config, ConfigError, Enabled, Point, ProfileConfig};
use crate::framework::{Extension, Extensions, Profile, WeightedScore};

type Factory = Box<dyn Fn(Args<'_>) -> Result<Extensions, String> + Send + Sync>;

/// All plugins that a profile may name.
pub struct Registry {
    factories: BTreeMap<&'static str, Factory>,
}

/// Two plugins of one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a plugin named {0} already exists")]
pub struct RegistryError(&'static str);

impl Registry {
    /// The built-in plugins.
    pub fn built_in(handle: Handle) -> Registry {
        let handle = Arc::new(handle);
        let mut registry = Registry {
            factories: BTreeMap::new(),
        };

        for (name, _, create) in PLUGINS {
            let handle = Arc::clone(&handle);
            registry.put(name, move |args| create(&handle, args));
        }

        registry
    }

    /// Adds a plugin.
    ///
    /// # Errors
    /// If the name is taken.
    pub fn register(
        &mut self,
        name: &'static str,
        factory: impl Fn(Args<'_>) -> Result<Extensions, String> + Send + Sync + 'static,
    ) -> Result<(), RegistryError> {
        if self.factories.contains_key(name) {
            return Err(RegistryError(name));
        }
        self.put(name, factory);
        Ok(())
    }

    fn put(
        &mut self,
        name: &'static str,
        factory: impl Fn(Args<'_>) -> Result<Extensions, String> + Send + Sync + 'static,
    ) {
        self.factories.insert(name, Box::new(factory));
    }

    /// Builds the profiles of a configuration.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn profiles(&self, config: &Config) -> Result<Vec<Profile>, ConfigError> {
        let mut mistakes = Vec::new();
        let mut profiles = Vec::new();
        for profile in &config.profiles {
            match self.profile(profile, config.percentage_of_nodes_to_score) {
                Ok(profile) => profiles.push(profile),
                Err(found) => mistakes.extend(found),
            }
        }

        if mistakes.is_empty() {
            Ok(profiles)
        } else {
            Err(ConfigError(mistakes))
        }
    }

    fn profile(&self, config: &ProfileConfig, percentage: i64) -> Result<Profile, Vec<String>> {
        let made = self.make(config)?;
        let find = |name: &str| made.iter().find(|(own, _)| **own == name);
        let at = |point: Point| {
            let enabled = config.plugins.at(point, |name| {
                find(name).is_some_and(|(_, extensions)| has(extensions, point))
            });
            enabled.into_iter().filter_map(|enabled| {
                find(&enabled.name).map(|(name, extensions)| (*name, extensions, enabled))
            })
        };

        let sorts: Vec<_> = at(Point::QueueSort)
            .filter_map(|(_, extensions, _)| extensions.queue_sort.clone())
            .collect();
        let binds = named(at(Point::Bind), |extensions| extensions.bind.clone());
        let mut mistakes = Vec::new();

        let name = &config.name;
        if sorts.len() != 1 {
            mistakes.push(format!(
                "exactly one queue sort plugin required for profile with scheduler name \"{name}\", found {}",
                sorts.len()
            ));
        }

        if binds.is_empty() {
            mistakes.push(format!(
                "at least one bind plugin is needed for profile with scheduler name \"{name}\""
            ));
        }

        let Some(queue_sort) = sorts.into_iter().next().filter(|_| mistakes.is_empty()) else {
            return Err(mistakes);
        };
        let queueing_hints = made.iter().filter_map(|(plugin, extensions)| {
            Some(Extension {
                plugin,
                inner: extensions.queueing_hint.clone()?,
            })
        });

        Ok(Profile {
            name: name.clone(),
            percentage_of_nodes_to_score: config.percentage_of_nodes_to_score.unwrap_or(percentage),
            pre_enqueue: named(at(Point::PreEnqueue), |extensions| {
                extensions.pre_enqueue.clone()
            }),
            queue_sort,
            filters: named(at(Point::Filter), |extensions| extensions.filter.clone()),
            post_filters: named(at(Point::PostFilter), |extensions| {
                extensions.post_filter.clone()
            }),
            scores: at(Point::Score).filter_map(weighted).collect(),
            binds,
            queueing_hints: queueing_hints.collect(),
        })
    }

    /// Creates the plugins that a profile names, with their arguments.
    fn make(
        &self,
        config: &ProfileConfig,
    ) -> Result<BTreeMap<&'static str, Extensions>, Vec<String>> {
        let mut made = BTreeMap::new();
        let mut mistakes = Vec::new();
        for name in config.plugins.names() {
            let Some((name, factory)) = self.factories.get_key_value(name) else {
                mistakes.push(format!("plugin \"{name}\" does not exist"));
                continue;
            };

            if made.contains_key(name) {
                continue;
            }

            match factory(config.args.get(*name)) {
                Ok(extensions) => drop(made.insert(*name, extensions)),
                Err(error) => mistakes.push(format!("initializing plugin \"{name}\": {error}")),
            }
        }

        if mistakes.is_empty() {
            Ok(made)
        } else {
            Err(mistakes)
        }
    }
}

/// A plugin at a point: its name, its extensions, and its entry in the profile.
type AtPoint<'m> = (&'static str, &'m Extensions, Enabled);

fn named<'m, T>(
    plugins: impl Iterator<Item = AtPoint<'m>>,
    inner: impl Fn(&Extensions) -> Option<T>,
) -> Vec<Extension<T>> {
    plugins
        .filter_map(|(plugin, extensions, _)| {
            Some(Extension {
                plugin,
                inner: inner(extensions)?,
            })
        })
        .collect()
}

fn weighted((plugin, extensions, enabled): AtPoint<'_>) -> Option<WeightedScore> {
    let weight = if enabled.weight == 0 {
        1
    } else {
        enabled.weight
    };
    Some(WeightedScore {
        plugin,
        weight,
        inner: extensions.score.clone()?,
    })
}

fn has(extensions: &Extensions, point: Point) -> bool {
    match point {
        Point::PreEnqueue => extensions.pre_enqueue.is_some(),
        Point::QueueSort => extensions.queue_sort.is_some(),
        Point::PreFilter | Point::Filter => extensions.filter.is_some(),
        Point::PostFilter => extensions.post_filter.is_some(),
        Point::PreScore | Point::Score => extensions.score.is_some(),
        Point::Bind => extensions.bind.is_some(),
        // No plugin needs these yet.
        Point::Reserve | Point::Permit | Point::PreBind | Point::PostBind => false,
    }
}
