//! Flow control: which flow schema a request matches, and so which priority level.
//!
//! The schemas are objects like all others. [`run`] follows them and the priority levels in the
//! caches, compiles them at every change ([`rules`]), and reports in the status of each schema
//! whether its level exists ([`status`]). A request is compared with the compiled rules only.
//! Queues and seats are not implemented yet: whatever the level, a request is executed at once.

mod matching;
mod rules;
mod status;

use std::sync::Arc;

use arc_swap::ArcSwap;
use coracle_api::catalog::Resource;
use coracle_api::typed;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use serde::de::DeserializeOwned;
use tracing::error;

use crate::authn::User;
use crate::cache::Cache;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};
use crate::request::RequestInfo;

pub use rules::{Class, Rules};

/// The current classification of requests.
#[derive(Default)]
pub struct Flow {
    rules: ArcSwap<Rules>,
}

impl Flow {
    pub fn classify(&self, user: &User, request: &RequestInfo) -> Arc<Class> {
        self.rules.load().classify(user, request)
    }
}

/// Follows schemas and levels forever; `ready` is notified once the first rules are in force.
pub async fn run(flow: &Flow, loopback: &Loopback, ready: &Hook) {
    let (schemas, levels) = (
        loopback.cache(flow_schemas()),
        loopback.cache(priority_levels()),
    );

    loop {
        // Subscribed before anything is read, so that no change in between is missed.
        let (schema_notifier, level_notifier) = (schemas.notifier(), levels.notifier());
        let (schema_changed, level_changed) =
            (schema_notifier.notified(), level_notifier.notified());
        tokio::pin!(schema_changed, level_changed);
        schema_changed.as_mut().enable();
        level_changed.as_mut().enable();

        let objects: Vec<FlowSchema> = read(schemas);
        let levels: Vec<PriorityLevelConfiguration> = read(levels);
        flow.rules
            .store(Arc::new(Rules::compile(&objects, &levels)));
        status::write(loopback, &objects, &levels).await;
        ready.done();

        tokio::select! {
            biased;
            () = schema_changed => {}
            () = level_changed => {}
        }
    }
}

pub(crate) fn flow_schemas() -> &'static Resource {
    resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas")
}

pub(crate) fn priority_levels() -> &'static Resource {
    resource(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        "prioritylevelconfigurations",
    )
}

fn read<T: DeserializeOwned>(cache: &Cache) -> Vec<T> {
    let snapshot = cache.snapshot();
    let objects = snapshot.entries.iter().filter_map(|entry| {
        typed::from_tree(&entry.value(cache.storage_version().of))
            .inspect_err(
                |error| error!(key = %entry.key(), %error, "cannot decode flow control object"),
            )
            .ok()
    });
    objects.collect()
}
