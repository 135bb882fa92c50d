//! Plugins by name, and profiles made of them.
//!
//! A plugin of somebody else is registered beside those of the house and named in a profile:
//! nothing else changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Value;

use super::{
    args, default_binder, default_preemption, dynamic_resources, image_locality,
    inter_pod_affinity, node_affinity, node_name, node_ports, node_resources_balanced_allocation,
    node_resources_fit, node_unschedulable, pod_topology_spread, priority_sort, scheduling_gates,
    taint_toleration, volume_binding,
};
use crate::config::{Config, ConfigError, Enabled, Point, ProfileConfig};
use crate::framework::{Bind, Named, Parts, Profile, Weighted};

/// Makes a plugin of its arguments.
type Factory = Box<dyn Fn(Option<&Value>) -> Result<Parts, String> + Send + Sync>;

/// A plugin without arguments.
type Simple = fn() -> Parts;

/// All plugins that can be named.
pub struct Registry {
    factories: BTreeMap<&'static str, Factory>,
}

/// Two plugins of one name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a plugin named {0} already exists")]
pub struct RegistryError(&'static str);

impl Registry {
    /// The plugins of the house. `binder` tells the API which node a pod has.
    pub fn of_the_house(binder: &Arc<dyn Bind>) -> Registry {
        let mut registry = Registry {
            factories: BTreeMap::new(),
        };
        let simple: [(&'static str, Simple); 9] = [
            (scheduling_gates::NAME, scheduling_gates::parts),
            (priority_sort::NAME, priority_sort::parts),
            (node_unschedulable::NAME, node_unschedulable::parts),
            (node_name::NAME, node_name::parts),
            (taint_toleration::NAME, taint_toleration::parts),
            (node_ports::NAME, node_ports::parts),
            (image_locality::NAME, image_locality::parts),
            (volume_binding::NAME, volume_binding::parts),
            (dynamic_resources::NAME, dynamic_resources::parts),
        ];

        for (name, parts) in simple {
            registry.put(name, move |given| args::none(given).map(|()| parts()));
        }

        for name in NOT_BUILT {
            registry.put(name, |_| Ok(Parts::default()));
        }

        let binder = Arc::clone(binder);
        registry.put(default_binder::NAME, move |given| {
            args::none(given).map(|()| default_binder::parts(Arc::clone(&binder)))
        });
        registry.put(node_affinity::NAME, |given| {
            Ok(args::node_affinity(given)?.parts())
        });

        registry.put(node_resources_fit::NAME, |given| {
            Ok(args::node_resources_fit(given)?.parts())
        });
        registry.put(pod_topology_spread::NAME, |given| {
            Ok(args::pod_topology_spread(given)?.parts())
        });

        registry.put(inter_pod_affinity::NAME, |given| {
            Ok(args::inter_pod_affinity(given)?.parts())
        });
        registry.put(default_preemption::NAME, |given| {
            Ok(args::default_preemption(given)?.parts())
        });

        let balanced = node_resources_balanced_allocation::NAME;
        registry.put(balanced, |given| {
            Ok(args::balanced_allocation(given)?.parts())
        });

        registry
    }

    /// Adds a plugin.
    ///
    /// # Errors
    /// If there is one of that name.
    pub fn register(
        &mut self,
        name: &'static str,
        factory: impl Fn(Option<&Value>) -> Result<Parts, String> + Send + Sync + 'static,
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
        factory: impl Fn(Option<&Value>) -> Result<Parts, String> + Send + Sync + 'static,
    ) {
        self.factories.insert(name, Box::new(factory));
    }

    /// The profiles of a configuration, ready to be asked.
    ///
    /// # Errors
    /// With all that is wrong.
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
                find(name).is_some_and(|(_, parts)| has(parts, point))
            });
            enabled.into_iter().filter_map(|enabled| {
                find(&enabled.name).map(|(name, parts)| (*name, parts, enabled))
            })
        };

        let sorts: Vec<_> = at(Point::QueueSort)
            .filter_map(|(_, parts, _)| parts.queue_sort.clone())
            .collect();
        let binds = named(at(Point::Bind), |parts| parts.bind.clone());
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
        let wakes = made.iter().filter_map(|(plugin, parts)| {
            Some(Named {
                plugin,
                part: parts.wake.clone()?,
            })
        });

        Ok(Profile {
            name: name.clone(),
            percentage_of_nodes_to_score: config.percentage_of_nodes_to_score.unwrap_or(percentage),
            pre_enqueue: named(at(Point::PreEnqueue), |parts| parts.pre_enqueue.clone()),
            queue_sort,
            filters: named(at(Point::Filter), |parts| parts.filter.clone()),
            post_filters: named(at(Point::PostFilter), |parts| parts.post_filter.clone()),
            scores: at(Point::Score).filter_map(weighted).collect(),
            reserves: named(at(Point::Reserve), |parts| parts.reserve.clone()),
            permits: named(at(Point::Permit), |parts| parts.permit.clone()),
            pre_binds: named(at(Point::PreBind), |parts| parts.pre_bind.clone()),
            binds,
            post_binds: named(at(Point::PostBind), |parts| parts.post_bind.clone()),
            wakes: wakes.collect(),
        })
    }

    /// The plugins that a profile names, made with their arguments.
    fn make(&self, config: &ProfileConfig) -> Result<BTreeMap<&'static str, Parts>, Vec<String>> {
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
                Ok(parts) => drop(made.insert(*name, parts)),
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

/// A plugin at a point: its name, all it takes part in, and how the profile names it there.
type AtPoint<'m> = (&'static str, &'m Parts, Enabled);

fn named<'m, T>(
    plugins: impl Iterator<Item = AtPoint<'m>>,
    part: impl Fn(&Parts) -> Option<T>,
) -> Vec<Named<T>> {
    plugins
        .filter_map(|(plugin, parts, _)| {
            Some(Named {
                plugin,
                part: part(parts)?,
            })
        })
        .collect()
}

fn weighted((plugin, parts, enabled): AtPoint<'_>) -> Option<Weighted> {
    let weight = if enabled.weight == 0 {
        1
    } else {
        enabled.weight
    };
    Some(Weighted {
        plugin,
        weight,
        part: parts.score.clone()?,
    })
}

fn has(parts: &Parts, point: Point) -> bool {
    match point {
        Point::PreEnqueue => parts.pre_enqueue.is_some(),
        Point::QueueSort => parts.queue_sort.is_some(),
        Point::PreFilter | Point::Filter => parts.filter.is_some(),
        Point::PostFilter => parts.post_filter.is_some(),
        Point::PreScore | Point::Score => parts.score.is_some(),
        Point::Reserve => parts.reserve.is_some(),
        Point::Permit => parts.permit.is_some(),
        Point::PreBind => parts.pre_bind.is_some(),
        Point::Bind => parts.bind.is_some(),
        Point::PostBind => parts.post_bind.is_some(),
    }
}

/// Plugins that a configuration may name and that take part in nothing yet. Pods with claims, which
/// all but the last are about, are held back by `VolumeBinding`.
const NOT_BUILT: [&str; 4] = [
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeZone",
    "NodeDeclaredFeatures",
];
