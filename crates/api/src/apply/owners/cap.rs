//! Bounds on the number of updaters.
//!
//! Whoever applies wants to be remembered; of those who only update, the ones that have not done so for the longest time
//! are put together, one entry for each version.

use std::collections::HashMap;

use super::{Manager, Operation, Owners};
use crate::Text;
use crate::time::Timestamp;

/// As many updaters are kept apart.
const MAX_UPDATE_MANAGERS: usize = 10;

/// The manager that inherits what others updated long ago.
const ANCIENT: &str = "ancient-changes";

impl Owners {
    /// Puts the oldest updaters of one version together until there are few enough.
    pub(in crate::apply) fn cap_updaters(&mut self) {
        let updaters = self.0.iter().filter(|owner| owner.manager.operation == Operation::Update);
        let mut updaters: Vec<Manager> = updaters.map(|owner| owner.manager.clone()).collect();
        let mut count = updaters.len();
        if count <= MAX_UPDATE_MANAGERS {
            return;
        }
        updaters.sort_by_cached_key(|manager| {
            let time = self.get(manager).and_then(|owner| owner.time);
            (time.map_or(0, Timestamp::unix_seconds), manager.identifier())
        });
        let mut first_of: HashMap<Text, Manager> = HashMap::new();
        for manager in updaters {
            if count <= MAX_UPDATE_MANAGERS {
                return;
            }
            match first_of.get(&manager.api_version) {
                None => drop(first_of.insert(manager.api_version.clone(), manager)),
                Some(first) => {
                    self.join_ancient(first, &manager);
                    count -= 1;
                }
            }
        }
    }

    /// What `manager` updated becomes ancient, and so does what `first` did, if nothing is yet.
    fn join_ancient(&mut self, first: &Manager, manager: &Manager) {
        let ancient = Manager {
            name: Text::const_new(ANCIENT),
            operation: Operation::Update,
            api_version: manager.api_version.clone(),
            subresource: Text::default(),
        };
        let Some(joining) = self.get(manager).cloned() else { return };
        if self.get(&ancient).is_none()
            && let Some(mut owner) = self.take(first)
        {
            owner.manager = ancient.clone();
            self.set(owner);
        }
        if let Some(mut owner) = self.take(&ancient) {
            owner.fields = joining.fields.union(&owner.fields);
            owner.time = joining.time;
            self.set(owner);
        }
        // The ancient entry itself, where an older one came before it, goes the same way: so it is upstream.
        self.take(manager);
    }
}
