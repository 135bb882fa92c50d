//! The three-way patch of `kubectl apply`, which remembers the last configuration.

use super::conflicts::have_conflicts;
use super::diff::Diff;
use super::merge::Merge;
use super::schema::Schema;
use super::{Error, check};
use crate::catalog::Struct;
use crate::codec::yaml;
use crate::patch::Precondition;
use crate::{Map, Value};

/// What to do with fields that others changed as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// The patch prevails.
    Yes,
    /// There is no patch, but [`Error::Conflict`].
    No,
}

/// The patch that changes `current` to `modified` where it differs, and removes what `original` had
/// and `modified` no longer has. What others added to `current` stays.
pub fn three_way(
    original: &Map,
    modified: &Map,
    current: &Map,
    of: Struct<'_>,
    overwrite: Overwrite,
    preconditions: &[Precondition<'_>],
) -> Result<Map, Error> {
    let schema = Schema::of(of.node());
    let changes = Diff {
        element_order: true,
        changes: true,
        removals: false,
        retain_keys: false,
    };

    let removals = Diff {
        element_order: true,
        changes: false,
        removals: true,
        retain_keys: false,
    };

    let changes = changes.objects(current, modified, schema)?;
    let removals = removals.objects(original, modified, schema)?;
    let patch = check(
        Merge::Patches.objects(removals, changes, schema)?,
        preconditions,
    )?;

    if overwrite == Overwrite::Yes {
        return Ok(patch);
    }

    let all = Diff {
        element_order: false,
        changes: true,
        removals: true,
        retain_keys: false,
    };

    let theirs = all.objects(original, current, schema)?;
    if have_conflicts(&patch, &theirs, schema)? {
        return Err(Error::Conflict {
            patch: yaml_of(patch),
            changes: yaml_of(theirs),
        });
    }

    Ok(patch)
}

fn yaml_of(map: Map) -> String {
    yaml::print(&Value::Object(map))
}
