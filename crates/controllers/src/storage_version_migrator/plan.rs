//! What a StorageVersionMigration needs next. Pure.
//!
//! Of the migrations of a resource one runs at a time, the oldest first. A running one first notes
//! how new the objects may be that it has to rewrite, then rewrites them, and then ends.

use coracle_api::time::Timestamp;
use coracle_api::{Text, Value};

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing: it has ended, or another one of the resource comes first.
    Keep,
    /// Mark it as running.
    Start,
    /// Note the resource version of the newest objects.
    Locate,
    /// Rewrite all objects that are not newer than this.
    Migrate {
        /// The resource version.
        revision: u64,
    },
    /// Mark it as no longer running.
    End,
}

/// A migration, as far as others of the same resource have to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The older one comes first, then the one whose name is smaller.
    pub created: Option<Timestamp>,
    /// Its name.
    pub name: Text,
    /// Whether it runs.
    pub is_running: bool,
    /// Whether it has succeeded or failed.
    pub has_ended: bool,
}

impl Rank {
    /// Of a migration.
    pub fn of(migration: &Value) -> Rank {
        Rank {
            created: migration.meta().creation_timestamp(),
            name: Text::new(migration.meta().name()),
            is_running: is_true(migration, "Running"),
            has_ended: is_true(migration, "Succeeded") || is_true(migration, "Failed"),
        }
    }

    fn comes_before(&self, other: &Rank) -> bool {
        (self.created, &self.name) < (other.created, &other.name)
    }
}

/// Decides what a migration needs; `others` are those of the same resource.
pub fn plan(migration: &Value, others: &[Rank]) -> Plan {
    let own = Rank::of(migration);
    match (own.is_running, own.has_ended) {
        (true, true) => return Plan::End,
        (false, true) => return Plan::Keep,
        (true, false) => {}
        (false, false) => {
            let mut open = others.iter().filter(|other| !other.has_ended);
            let waits = open.any(|other| other.is_running || other.comes_before(&own));
            return if waits { Plan::Keep } else { Plan::Start };
        }
    }

    let version = migration.at(&["status", "resourceVersion"]);
    let version = version.and_then(Value::as_str).unwrap_or_default();
    match version.parse() {
        Ok(revision) => Plan::Migrate { revision },
        Err(_) => Plan::Locate,
    }
}

/// Whether a condition of the migration is true.
pub fn is_true(migration: &Value, kind: &str) -> bool {
    let part = |condition: &Value, name: &str, text: &str| {
        condition.get(name).and_then(Value::as_str) == Some(text)
    };
    let conditions = migration.at(&["status", "conditions"]);
    let mut conditions = conditions
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter();
    conditions.any(|condition| part(condition, "type", kind) && part(condition, "status", "True"))
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn migration(name: &str, second: u32, conditions: &str, version: &str) -> Value {
        let text = format!(
            "{{metadata: {{name: {name}, creationTimestamp: '2026-01-01T00:00:{second:02}Z'}}, \
              status: {{conditions: [{conditions}], resourceVersion: '{version}'}}}}"
        );
        yaml::decode(text.as_bytes()).unwrap()
    }

    const RUNNING: &str = "{type: Running, status: 'True'}";
    const SUCCEEDED: &str = "{type: Succeeded, status: 'True'}";
    const FAILED: &str = "{type: Failed, status: 'True'}";

    #[test]
    fn a_migration_starts_locates_migrates_and_ends() {
        let check = |conditions: &[&str], version: &str, expected| {
            let one = migration("a", 1, &conditions.join(","), version);
            assert_eq!(plan(&one, &[]), expected, "{conditions:?} {version}");
        };

        check(&[], "", Plan::Start);
        check(&[RUNNING], "", Plan::Locate);
        check(&[RUNNING], "7", Plan::Migrate { revision: 7 });
        check(&[RUNNING, SUCCEEDED], "7", Plan::End);
        check(&[RUNNING, FAILED], "", Plan::End);
        check(&[SUCCEEDED], "7", Plan::Keep);
        check(
            &["{type: Running, status: 'False'}", FAILED],
            "",
            Plan::Keep,
        );
    }

    #[test]
    fn one_of_a_resource_runs_at_a_time_and_the_oldest_first() {
        let check = |other: Value, expected| {
            let one = migration("b", 5, "", "");
            assert_eq!(plan(&one, &[Rank::of(&other)]), expected);
        };

        check(migration("a", 1, "", ""), Plan::Keep);
        check(migration("a", 5, "", ""), Plan::Keep);
        check(migration("c", 5, "", ""), Plan::Start);
        check(migration("a", 9, "", ""), Plan::Start);
        check(migration("a", 9, RUNNING, ""), Plan::Keep);
        check(migration("a", 1, SUCCEEDED, ""), Plan::Start);
        check(
            migration("a", 1, &[RUNNING, FAILED].join(","), ""),
            Plan::Start,
        );
    }
}
