//! Limits the number of updaters.
//!
//! Appliers are always kept; of the updaters, the oldest are merged into one entry for each
//! version.

use std::collections::{BTreeMap, HashMap};

use super::{Manager, Operation, Owner, Owners};
use crate::Text;
use crate::apply::set::Set;
use crate::time::Timestamp;

/// The number of updaters that keep entries of their own.
const MAX_UPDATE_MANAGERS: usize = 10;

/// The manager of merged entries.
const ANCIENT: &str = "ancient-changes";

impl Owners {
    /// Merges the oldest updaters of each version until there are few enough. An object may have as
    /// many as its size allows, so each is visited once, and their sets are united at the end.
    pub(in crate::apply) fn cap_updaters(&mut self) {
        let is_update = |owner: &&Owner| owner.manager.operation == Operation::Update;
        let mut count = self.0.iter().filter(is_update).count();
        if count <= MAX_UPDATE_MANAGERS {
            return;
        }

        let (updaters, others) = std::mem::take(&mut self.0)
            .into_iter()
            .partition(|owner| is_update(&owner));
        self.0 = others;
        let mut updaters = Updaters::new(updaters);

        let mut first_of: HashMap<Text, Manager> = HashMap::new();
        for manager in updaters.oldest_first() {
            if count <= MAX_UPDATE_MANAGERS {
                break;
            }

            match first_of.get(&manager.api_version) {
                None => drop(first_of.insert(manager.api_version.clone(), manager)),
                Some(first) => {
                    updaters.join_ancient(first, &manager);
                    count -= 1;
                }
            }
        }

        self.0.extend(updaters.finish());
    }
}

/// Updaters while some of them are being merged.
struct Updaters {
    of: BTreeMap<Manager, Owner>,
    /// The sets that the merged entry of a version receives.
    inherited: HashMap<Text, Vec<Set>>,
}

impl Updaters {
    fn new(owners: Vec<Owner>) -> Updaters {
        let of = owners
            .into_iter()
            .map(|owner| (owner.manager.clone(), owner))
            .collect();
        Updaters {
            of,
            inherited: HashMap::new(),
        }
    }

    fn oldest_first(&self) -> Vec<Manager> {
        let mut managers: Vec<&Owner> = self.of.values().collect();
        managers.sort_by_cached_key(|owner| {
            (
                owner.time.map_or(0, Timestamp::unix_seconds),
                owner.manager.identifier(),
            )
        });
        managers
            .into_iter()
            .map(|owner| owner.manager.clone())
            .collect()
    }

    /// Moves what `manager` owns into the merged entry, and what `first` owns too if there is none
    /// yet.
    fn join_ancient(&mut self, first: &Manager, manager: &Manager) {
        let ancient = ancient(&manager.api_version);
        if !self.of.contains_key(&ancient)
            && let Some(mut owner) = self.of.remove(first)
        {
            owner.manager = ancient.clone();
            self.of.insert(ancient.clone(), owner);
        }

        let Some(joining) = self.of.remove(manager) else {
            return;
        };
        if *manager == ancient {
            // A merged entry that comes after an older updater is merged the same way, as upstream
            // does.
            self.inherited.remove(&manager.api_version);
        } else if let Some(owner) = self.of.get_mut(&ancient) {
            owner.time = joining.time;
            self.inherited
                .entry(manager.api_version.clone())
                .or_default()
                .push(joining.fields);
        }
    }

    fn finish(mut self) -> impl Iterator<Item = Owner> {
        for (version, sets) in std::mem::take(&mut self.inherited) {
            if let Some(owner) = self.of.get_mut(&ancient(&version)) {
                owner.fields = union_of(sets).union(&owner.fields);
            }
        }
        self.of.into_values()
    }
}

fn ancient(api_version: &Text) -> Manager {
    Manager {
        name: Text::const_new(ANCIENT),
        operation: Operation::Update,
        api_version: api_version.clone(),
        subresource: Text::default(),
    }
}

/// The union of sets, pairwise, so that no large set is copied for every small one.
fn union_of(mut sets: Vec<Set>) -> Set {
    while sets.len() > 1 {
        sets = sets
            .chunks(2)
            .map(|pair| {
                pair.iter()
                    .skip(1)
                    .fold(pair[0].clone(), |one, other| one.union(other))
            })
            .collect();
    }
    sets.pop().unwrap_or_default()
}
