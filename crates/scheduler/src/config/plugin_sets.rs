//! Which plugins run at which extension point: the default set, and the changes of a profile.

use std::collections::BTreeMap;

use crate::plugins::PLUGINS;

/// An extension point, by its name in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    PreEnqueue,
    QueueSort,
    PreFilter,
    Filter,
    PostFilter,
    PreScore,
    Score,
    Reserve,
    Permit,
    PreBind,
    Bind,
    PostBind,
}

/// An enabled plugin; the weight is that of its score, 0 if not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enabled {
    pub name: String,
    pub weight: i64,
}

/// Enabled and disabled plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PluginSet {
    pub(super) enabled: Vec<Enabled>,
    pub(super) disabled: Vec<String>,
}

/// The plugins of a profile: those for all points, and changes for single points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginSets {
    multi_point: Vec<Enabled>,
    points: BTreeMap<Point, PluginSet>,
}

impl Default for PluginSets {
    fn default() -> PluginSets {
        let enabled = PLUGINS.iter().map(|(name, weight, _)| Enabled {
            name: String::from(*name),
            weight: *weight,
        });
        PluginSets {
            multi_point: enabled.collect(),
            points: BTreeMap::new(),
        }
    }
}

impl PluginSets {
    /// The default plugins with changes: a default plugin that is enabled again keeps its position,
    /// new ones come last.
    pub(super) fn changed(
        multi_point: &PluginSet,
        points: BTreeMap<Point, PluginSet>,
    ) -> PluginSets {
        let mut all = Vec::new();
        let mut added = multi_point.enabled.clone();
        if !multi_point.disabled.iter().any(|name| name == "*") {
            for default in PluginSets::default().multi_point {
                if multi_point.disabled.contains(&default.name) {
                    continue;
                }
                match added.iter().position(|own| own.name == default.name) {
                    Some(index) => all.push(added.remove(index)),
                    None => all.push(default),
                }
            }
        }

        all.append(&mut added);

        PluginSets {
            multi_point: all,
            points,
        }
    }

    /// All plugins that are named anywhere.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let single = self.points.values().flat_map(|set| &set.enabled);
        self.multi_point
            .iter()
            .chain(single)
            .map(|plugin| plugin.name.as_str())
    }

    /// The plugins of one point, in order. `takes_part`: whether a plugin implements the point.
    pub fn at(&self, point: Point, takes_part: impl Fn(&str) -> bool) -> Vec<Enabled> {
        let none = PluginSet::default();
        let set = self.points.get(&point).unwrap_or(&none);
        if set.disabled.iter().any(|name| name == "*") {
            return set.enabled.clone();
        }

        let of_all = self.multi_point.iter();
        let of_all = of_all
            .filter(|plugin| takes_part(&plugin.name) && !set.disabled.contains(&plugin.name));
        let is_own = |plugin: &Enabled| set.enabled.iter().any(|own| own.name == plugin.name);
        let (again, inherited): (Vec<_>, Vec<_>) = of_all.cloned().partition(is_own);

        // Plugins that the point enables again come first, those that only the point enables come
        // last.
        let is_again = |own: &&Enabled| again.iter().any(|plugin| plugin.name == own.name);
        let mut all: Vec<Enabled> = set.enabled.iter().filter(is_again).cloned().collect();
        for own in &mut all {
            if own.weight == 0 {
                own.weight = again
                    .iter()
                    .find(|plugin| plugin.name == own.name)
                    .map_or(0, |plugin| plugin.weight);
            }
        }

        all.extend(inherited);
        all.extend(set.enabled.iter().filter(|own| !is_again(own)).cloned());

        all
    }
}
