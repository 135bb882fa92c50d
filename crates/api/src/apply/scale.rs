//! Owners of the replicas field, as the `scale` subresource sees them.
//!
//! A Scale is an object of its own kind, with the owners of its parent's replicas. A request to
//! `scale` sees only those, under the Scale's path; afterwards its changes are merged into the
//! parent's entries.

use super::element::FieldPath;
use super::owners::{Owner, Owners};
use super::set::Set;
use crate::Text;

const SCALE_VERSION: &str = "autoscaling/v1";

/// Translates between the owners of a parent and those of its Scale.
#[derive(Clone, Copy, Debug)]
pub struct Scale<'a> {
    /// The version of the parent in this request.
    pub api_version: &'a str,
    /// Path of the replicas field in each of the parent's versions; `None`: there is none.
    pub replicas: &'a [(Text, Option<FieldPath>)],
}

impl Scale<'_> {
    /// The owners of the Scale of a parent with these owners.
    pub fn owners_of_scale(&self, parent: &Owners) -> Owners {
        let mut owners = Vec::new();
        for owner in parent.iter() {
            if let Some(Some(path)) = self.path_in(&owner.manager.api_version)
                && owner.fields.has(&path.0)
            {
                let mut owner = Owner {
                    fields: replicas_of_scale(),
                    ..owner.clone()
                };
                owner.manager.api_version = Text::const_new(SCALE_VERSION);
                owners.push(owner);
            }
        }

        Owners(owners)
    }

    /// The owners of the parent, after those of its Scale became `scale`. An updater of the parent
    /// is another manager in the Scale's version, so replicas move to an entry of their own,
    /// without a time.
    pub fn owners_of_parent(&self, parent: &Owners, scale: &Owners) -> Owners {
        let mut scale = scale.clone();
        let mut owners = Owners::default();
        for owner in parent.iter() {
            // Owners in versions that no longer exist are dropped.
            let Some(path) = self.path_in(&owner.manager.api_version) else {
                continue;
            };

            let mut owner = owner.clone();
            if let Some(path) = path.filter(|path| owner.fields.has(&path.0))
                && scale.take(&owner.manager).is_none()
            {
                owner.fields = owner.fields.difference(&Set::of([path.clone()]));
            }

            if !owner.fields.is_empty() {
                owners.0.push(owner);
            }
        }

        let path = self.path_in(self.api_version).flatten();
        for owner in scale
            .0
            .iter()
            .filter(|owner| owner.fields.intersection(&replicas_of_scale()).len() == 1)
        {
            // Upstream takes the time from the parent's entries, where a new entry has none.
            let time = parent.get(&owner.manager).and_then(|known| known.time);
            let mut manager = owner.manager.clone();
            manager.api_version = Text::new(self.api_version);
            owners.0.push(Owner {
                manager,
                time,
                fields: Set::of(path.cloned()),
            });
        }

        owners
    }

    fn path_in(&self, version: &str) -> Option<Option<&FieldPath>> {
        self.replicas
            .iter()
            .find(|(of, _)| of == version)
            .map(|(_, path)| path.as_ref())
    }
}

fn replicas_of_scale() -> Set {
    Set::of([FieldPath::fields(&["spec", "replicas"])])
}
