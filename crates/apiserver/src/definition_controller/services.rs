//! An APIService for every group and version that definitions serve, deleted with the last of them.

use std::collections::BTreeSet;

use coracle_api::Value;
use tracing::warn;

use super::{MANAGER, RETRY};
use crate::ApiError;
use crate::bootstrap::api_services::{AUTOMANAGED, OF_DEFINITIONS, api_service, api_services};
use crate::cache::any_notified;
use crate::discovery::ServedGroups;
use crate::hooks::Hook;
use crate::loopback::Loopback;

/// Objects with this label are created and deleted with their definitions.
const ALWAYS: &str = "true";

/// Never returns.
pub(super) async fn run(loopback: &Loopback, hooks: &[&Hook]) {
    loop {
        let notifiers =
            [super::definitions(), api_services()].map(|of| loopback.cache(of).notifier().clone());
        let notified = any_notified(&notifiers);
        match keep(loopback).await {
            Ok(()) => {
                hooks.iter().for_each(|hook| hook.done());
                notified.await;
            }
            Err(error) => {
                warn!(
                    error = error.message,
                    "cannot sync APIServices of CustomResourceDefinitions; retrying"
                );
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

async fn keep(loopback: &Loopback) -> Result<(), ApiError> {
    let wanted = wanted(loopback);
    let found = loopback.registry.lookup_all(api_services(), "");
    for (group, version) in &wanted {
        let name = format!("{version}.{group}");
        if !found.iter().any(|object| object.meta().name() == name) {
            let object = api_service(group, version, OF_DEFINITIONS, ALWAYS);
            loopback
                .ensure(api_services(), "", MANAGER, &object)
                .await?;
        }
    }

    let is_ours = |object: &Value| object.meta().label(AUTOMANAGED) == Some(ALWAYS);
    for object in found.iter().filter(|object| is_ours(object)) {
        let spec = |name: &str| {
            object
                .at(&["spec", name])
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };

        if !wanted.contains(&(spec("group"), spec("version"))) {
            loopback
                .delete(api_services(), "", object.meta().name())
                .await?;
        }
    }

    Ok(())
}

/// Groups and versions that only definitions serve.
fn wanted(loopback: &Loopback) -> BTreeSet<(String, String)> {
    let definitions = loopback.registry.caches.definitions();
    let served_groups = ServedGroups::new(&definitions);
    let own = definitions.served();

    let all = served_groups.groups().iter().flat_map(|group| {
        group
            .versions
            .iter()
            .map(|version| (group.name.to_string(), version.to_string()))
    });

    all.filter(|(group, version)| !own.has_version(group, version))
        .collect()
}
