//! Which version of each resource this server stores and understands, for migrations: the
//! StorageVersions, while their feature is on.

use std::collections::BTreeMap;

use coracle_api::catalog::{BUILTIN, Resource, ServedApis, api_version};
use coracle_api::gates::is_on;
use coracle_api::time::Time;
use coracle_api::{Map, Text, Value};
use coracle_kinds::Part;

use super::MANAGER;
use crate::ApiError;
use crate::loopback::{Loopback, resource};

/// Whether the feature is on.
pub(super) fn is_needed() -> bool {
    is_on("StorageVersionAPI") && is_on("APIServerIdentity")
}

/// Writes what this server stores; `server` is its identity.
pub(super) async fn write(loopback: &Loopback, server: &str) -> Result<(), ApiError> {
    let versions = resource("internal.apiserver.k8s.io", "v1alpha1", "storageversions");
    let definitions = loopback.registry.caches.definitions();
    let served = definitions.served().clone();
    drop(definitions);
    if !is_needed() || !served.serves(versions) {
        return Ok(());
    }

    for (name, own) in of_server(&served, server) {
        if loopback.get(versions, &name).is_none() {
            loopback
                .ensure(versions, "", MANAGER, &empty(&name))
                .await?;
        }
        let Some(mut object) = loopback.get(versions, &name) else {
            continue;
        };
        if !put(&mut object, server, own, Time((loopback.registry.now)())) {
            continue;
        }
        loopback
            .update(versions, "", Part::Status, MANAGER, &object)
            .await?;
    }
    Ok(())
}

/// By name: what this server does with each resource that is stored.
fn of_server(served: &ServedApis, server: &str) -> BTreeMap<String, Map> {
    let mut all = BTreeMap::new();
    for resource in served.resources() {
        let Some(storage) = &resource.storage else {
            continue;
        };
        // Resources of two groups that show the same objects are one.
        let group = match storage.group.as_str() {
            "" => "core",
            group => group,
        };
        let versions = |all: &mut dyn Iterator<Item = &'static Resource>| -> Vec<Value> {
            let same = all.filter(|other| {
                other.group == storage.group
                    && other
                        .storage
                        .as_ref()
                        .is_some_and(|other| other.prefix == storage.prefix)
            });
            same.map(|other| Value::String(api_version(&other.group, &other.version)))
                .collect()
        };

        let encoding = api_version(&storage.group, &storage.version);
        let mut decodable = versions(&mut BUILTIN.resources().iter());
        if !decodable.contains(&Value::String(encoding.clone())) {
            decodable.push(Value::String(encoding.clone()));
        }
        let mut own = Map::new();
        own.insert("apiServerID", server);
        own.insert("encodingVersion", encoding);
        own.insert("decodableVersions", decodable);
        own.insert("servedVersions", versions(&mut served.resources()));
        all.insert(format!("{group}.{}", resource.plural), own);
    }
    all
}

/// Puts what one server does into the object. Whether anything changed.
fn put(object: &mut Value, server: &str, own: Map, now: Time) -> bool {
    let generation = object.meta().generation();
    let Some(object) = object.as_object_mut() else {
        return false;
    };
    let status = object.object_mut("status");
    let mut servers = status.items("storageVersions").to_vec();
    let own = Value::Object(own);
    if servers.contains(&own) {
        return false;
    }
    servers.retain(|other| other.get("apiServerID").and_then(Value::as_str) != Some(server));
    servers.push(own);

    let encoding = |of: &Value| {
        let found = of.get("encodingVersion").and_then(Value::as_str);
        Text::new(found.unwrap_or_default())
    };
    let common = encoding(&servers[0]);
    let is_common = servers.iter().all(|other| encoding(other) == common);
    status.insert("storageVersions", servers);

    let (state, reason, message) = match is_common {
        true => (
            "True",
            "CommonEncodingVersionSet",
            "Common encoding version set",
        ),
        false => (
            "False",
            "CommonEncodingVersionUnset",
            "Common encoding version unset",
        ),
    };
    match is_common {
        true => drop(status.insert("commonEncodingVersion", common)),
        false => drop(status.remove("commonEncodingVersion")),
    }

    let mut condition = Map::new();
    condition.insert("type", "AllEncodingVersionsEqual");
    condition.insert("status", state);
    condition.insert("lastTransitionTime", now.text());
    condition.insert("reason", reason);
    condition.insert("message", message);
    if generation > 0 {
        condition.insert("observedGeneration", generation);
    }
    status.insert("conditions", vec![Value::Object(condition)]);
    true
}

fn empty(name: &str) -> Value {
    let mut metadata = Map::new();
    metadata.insert("name", name);
    let mut object = Map::new();
    object.insert("apiVersion", "internal.apiserver.k8s.io/v1alpha1");
    object.insert("kind", "StorageVersion");
    object.insert("metadata", metadata);
    object.insert("spec", Map::new());
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_resource_has_one_and_servers_that_differ_have_no_common_version() {
        let all = of_server(&ServedApis::default(), "a");
        let text = |name: &str, field: &str| all[name].get(field).unwrap().clone();
        assert_eq!(
            text("autoscaling.horizontalpodautoscalers", "encodingVersion"),
            Value::string("autoscaling/v2")
        );
        assert!(all.contains_key("core.events") && !all.contains_key("events.k8s.io.events"));
        assert_eq!(
            text("core.pods", "decodableVersions"),
            Value::from(vec![Value::string("v1")])
        );

        let mut object = empty("core.pods");
        let now = Time(coracle_api::time::Timestamp::from_unix(0, 0));
        let own = all["core.pods"].clone();
        assert!(put(&mut object, "a", own.clone(), now));
        assert!(!put(&mut object, "a", own.clone(), now));
        let common = |object: &Value| object.at(&["status", "commonEncodingVersion"]).cloned();
        assert_eq!(common(&object), Some(Value::string("v1")));

        let mut other = own;
        other.insert("apiServerID", "b");
        other.insert("encodingVersion", "v2");
        assert!(put(&mut object, "b", other, now));
        assert_eq!(common(&object), None);
    }
}
