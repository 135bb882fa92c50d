//! The definition of a resource that is migrated: whether a migration runs, and, in the end, that
//! only the storage version is stored.

use coracle_api::time::Time;
use coracle_api::{Map, Text, Value};
use coracle_client::{Client, Error, Patch, Resource, World};

const MANAGER: &str = "migration-runner-controller";

/// How often another write may come in between.
const ATTEMPTS: usize = 5;

/// How far a migration is.
pub(super) enum Progress {
    /// The migration of that name runs.
    Running(String),
    Ended {
        has_succeeded: bool,
    },
}

/// Writes the condition `StorageMigrating` of the definition of a resource, if it has one.
pub(super) async fn mark(
    client: &Client,
    (group, plural): &(Text, Text),
    progress: &Progress,
    world: World,
) -> Result<(), Error> {
    let definitions = Resource::builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions");
    let definitions = client.resource(&definitions);
    let name = format!("{plural}.{group}");

    for attempt in 1.. {
        let Some(definition) = definitions.find(&name).await? else {
            return Ok(());
        };
        let patch = Patch::Apply {
            object: configuration(&definition, progress, world),
            manager: MANAGER.to_owned(),
            force: true,
        };
        match definitions
            .clone()
            .subresource("status")
            .patch(&name, &patch)
            .await
        {
            Err(error) if error.is_conflict() && attempt < ATTEMPTS => {}
            done => return done.map(drop),
        }
    }
    Ok(())
}

/// The resource version is in it, as what is claimed holds for this state of the definition alone.
fn configuration(definition: &Value, progress: &Progress, world: World) -> Value {
    let generation = definition.meta().generation();
    let (status, reason, message) = match progress {
        Progress::Running(name) => (
            "True",
            "MigrationRunning",
            format!("Migration {name} is running"),
        ),
        Progress::Ended {
            has_succeeded: false,
        } => (
            "False",
            "MigrationFailed",
            "The migration has failed".to_owned(),
        ),
        Progress::Ended { .. } => (
            "False",
            "MigrationSucceeded",
            format!(
                "The migration has succeeded {}",
                match is_unchanged(definition) {
                    true => "and the stored versions have been updated",
                    false =>
                        "but the stored versions have not been updated due to a generation mismatch",
                }
            ),
        ),
    };

    let mut condition = Map::new();
    condition.insert("type", "StorageMigrating");
    condition.insert("status", status);
    condition.insert("lastTransitionTime", Time((world.now)()).text());
    condition.insert("reason", reason);
    condition.insert("message", message);
    condition.insert("observedGeneration", generation);

    let mut of_status = Map::new();
    of_status.insert("conditions", vec![Value::Object(condition)]);
    if matches!(progress, Progress::Ended { .. })
        && is_unchanged(definition)
        && let Some(version) = storage_version(definition)
    {
        of_status.insert("storedVersions", vec![Value::string(version)]);
    }

    let mut metadata = Map::new();
    metadata.insert("name", definition.meta().name());
    metadata.insert("resourceVersion", definition.meta().resource_version());
    let mut object = Map::new();
    object.insert("apiVersion", "apiextensions.k8s.io/v1");
    object.insert("kind", "CustomResourceDefinition");
    object.insert("metadata", metadata);
    object.insert("status", of_status);
    Value::Object(object)
}

/// Whether the definition is as it was when the migration began.
fn is_unchanged(definition: &Value) -> bool {
    let conditions = definition.at(&["status", "conditions"]);
    let mut conditions = conditions
        .and_then(Value::as_array)
        .unwrap_or_default()
        .iter();
    let migrating = conditions.find(|condition| {
        condition.get("type").and_then(Value::as_str) == Some("StorageMigrating")
    });
    let observed = migrating.and_then(|condition| condition.get("observedGeneration")?.as_int());
    observed == Some(definition.meta().generation())
}

fn storage_version(definition: &Value) -> Option<&str> {
    let versions = definition.at(&["spec", "versions"])?.as_array()?;
    let mut versions = versions.iter();
    let stored =
        versions.find(|version| version.get("storage").and_then(Value::as_bool) == Some(true));
    stored?.get("name")?.as_str()
}
