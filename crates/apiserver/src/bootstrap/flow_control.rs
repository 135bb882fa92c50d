//! The default flow schemas and priority levels, created and kept up to date.
//!
//! Mandatory ones are always restored. Suggested ones are updated unless an administrator has taken
//! them over, by the annotation or, without one, by changing the spec. Objects that earlier
//! versions created and that are no longer defaults are deleted.

use coracle_api::catalog::Resource;
use coracle_api::{Value, typed};
use coracle_kinds::Part;
use coracle_kinds::flowcontrol::defaults::{self, AUTO_UPDATE, MANDATORY};
use futures_util::future::try_join_all;
use http::StatusCode;

use super::keep;
use crate::ApiError;
use crate::flow::{flow_schemas, priority_levels};
use crate::hooks::Hook;
use crate::loopback::Loopback;

const MANAGER: &str = "api-priority-and-fairness-config-producer-v1";

pub(super) async fn run(loopback: &Loopback, hook: &Hook) {
    let tree = "a typed object has a tree";
    let levels: Vec<Value> = defaults::priority_levels()
        .iter()
        .map(|level| typed::to_tree(level).expect(tree))
        .collect();

    let schemas: Vec<Value> = defaults::flow_schemas()
        .iter()
        .map(|schema| typed::to_tree(schema).expect(tree))
        .collect();

    let notifiers = [
        &**loopback.cache(priority_levels()).notifier(),
        &**loopback.cache(flow_schemas()).notifier(),
    ];

    keep(hook, &notifiers, async || {
        for (resource, wanted) in [(priority_levels(), &levels), (flow_schemas(), &schemas)] {
            ensure(loopback, resource, wanted).await?;
            remove_others(loopback, resource, wanted).await?;
        }
        Ok(())
    })
    .await;
}

async fn ensure(
    loopback: &Loopback,
    resource: &'static Resource,
    wanted: &[Value],
) -> Result<(), ApiError> {
    // All at once: writes that wait together share a flush of the disk.
    try_join_all(
        wanted
            .iter()
            .map(|object| ensure_one(loopback, resource, object)),
    )
    .await
    .map(drop)
}

async fn ensure_one(
    loopback: &Loopback,
    resource: &'static Resource,
    wanted: &Value,
) -> Result<(), ApiError> {
    let Some(found) = loopback.get(resource, wanted.meta().name()) else {
        return loopback.ensure(resource, "", MANAGER, wanted).await;
    };

    let Some(updated) = updated(&found, wanted) else {
        return Ok(());
    };
    match loopback
        .update(resource, "", Part::Main, MANAGER, &updated)
        .await
    {
        // It was changed or deleted concurrently: there will be another round.
        Err(error) if matches!(error.code, StatusCode::CONFLICT | StatusCode::NOT_FOUND) => Ok(()),
        result => result.map(drop),
    }
}

/// The object to write over `found`; `None`: it is up to date, or an administrator has taken it
/// over.
fn updated(found: &Value, wanted: &Value) -> Option<Value> {
    let annotation = found.meta().annotation(AUTO_UPDATE);
    let mandatory = MANDATORY.contains(&wanted.meta().name());
    let ours = match annotation {
        Some("true") => true,
        Some(_) => mandatory,
        None => mandatory || found.meta().generation() == 1,
    };

    if !ours || (annotation == Some("true") && found.get("spec") == wanted.get("spec")) {
        return None;
    }

    let mut updated = found.clone();
    updated.meta_mut().set_annotation(AUTO_UPDATE, Some("true"));
    updated
        .as_object_mut()?
        .insert("spec", wanted.get("spec")?.clone());

    (updated != *found).then_some(updated)
}

async fn remove_others(
    loopback: &Loopback,
    resource: &'static Resource,
    wanted: &[Value],
) -> Result<(), ApiError> {
    let snapshot = loopback.cache(resource).snapshot();
    for entry in snapshot.entries.iter() {
        if wanted
            .iter()
            .any(|object| object.meta().name() == entry.key())
        {
            continue;
        }

        let object = entry.value(loopback.cache(resource).storage_version().of);
        if object.meta().annotation(AUTO_UPDATE) == Some("true") {
            loopback.delete(resource, "", entry.key()).await?;
        }
    }

    Ok(())
}
