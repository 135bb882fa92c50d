//! The system namespaces. One that is deleted is recreated.

use coracle_api::{Map, Value};

use super::{MANAGER, keep};
use crate::ApiError;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};

const NAMES: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "default"];

pub(super) async fn run(loopback: &Loopback, hook: &Hook) {
    let namespaces = loopback.cache(resource("", "v1", "namespaces"));
    keep(hook, &[namespaces.notifier()], async || {
        ensure(loopback).await
    })
    .await;
}

async fn ensure(loopback: &Loopback) -> Result<(), ApiError> {
    let namespaces = resource("", "v1", "namespaces");
    for name in NAMES {
        if loopback.cache(namespaces).get(name).is_none() {
            loopback
                .ensure(namespaces, "", MANAGER, &namespace(name))
                .await?;
        }
    }
    Ok(())
}

fn namespace(name: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name", name);
    let mut object = Map::new();
    object.insert("apiVersion", "v1");
    object.insert("kind", "Namespace");
    object.insert("metadata", metadata);
    Value::Object(object)
}
