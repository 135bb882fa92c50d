//! Small clusters for tests: objects from JSON, a cache of them, and the default profile.

use std::sync::Arc;

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::codec::json;
use serde_json::json;

use crate::cache::Cache;
use crate::config::{Config, ConfigError, ProfileConfig};
use crate::cycle::{Placement, Search, Timing, Unschedulable, schedule};
use crate::framework::{Bind, Bound, Cycle, Nominations, Profile, Refusal};
use crate::node::Node;
use crate::plugins::{Handle, Registry};
use crate::pod::Pod;

pub(crate) fn tree(value: &serde_json::Value) -> Value {
    json::parse(value.to_string().as_bytes()).unwrap()
}

/// A pod of the namespace `default` with these fields merged in.
pub(crate) fn pod(name: &str, parts: serde_json::Value) -> Arc<Pod> {
    let mut object = json!({
        "metadata": {"name": name, "namespace": "default", "uid": format!("uid-{name}")},
        "spec": {"schedulerName": "default-scheduler", "containers": [{"name": "c", "image": "i"}]},
    });
    merge(&mut object, parts);
    Arc::new(Pod::from_object(&tree(&object)))
}

/// A node with 4 CPUs, 8 GiB and 110 pods, with these fields merged in.
pub(crate) fn node(name: &str, parts: serde_json::Value) -> Arc<Node> {
    let mut object = json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    });
    merge(&mut object, parts);
    Arc::new(Node::from_object(&tree(&object)))
}

fn merge(into: &mut serde_json::Value, parts: serde_json::Value) {
    match (into, parts) {
        (serde_json::Value::Object(into), serde_json::Value::Object(parts)) => {
            for (name, part) in parts {
                merge(into.entry(name).or_insert(serde_json::Value::Null), part);
            }
        }
        (into, part) => *into = part,
    }
}

/// One container that requests this much CPU.
pub(crate) fn cpus(cpu: &str) -> serde_json::Value {
    json!({"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]})
}

struct NoopBinder;

#[async_trait]
impl Bind for NoopBinder {
    async fn bind(&self, _pod: &Pod, _node: &str) -> Result<Bound, Refusal> {
        Ok(Bound::Skip)
    }
}

pub(crate) fn registry() -> Registry {
    let binder: Arc<dyn Bind> = Arc::new(NoopBinder);
    Registry::built_in(Handle { binder })
}

pub(crate) fn default_profile() -> Profile {
    registry().profiles(&Config::default()).unwrap().remove(0)
}

/// The configuration of a file with profiles.
pub(crate) fn configuration(file: &str) -> Result<Config, ConfigError> {
    let tree = coracle_api::codec::yaml::decode(file.as_bytes()).unwrap();
    let profiles = tree.get("profiles").expect("the file has profiles");
    Ok(Config {
        profiles: ProfileConfig::read(profiles)?,
        ..Config::default()
    })
}

/// A profile of a configuration file.
pub(crate) fn profile(file: &str) -> Profile {
    let config = configuration(file).unwrap();
    registry().profiles(&config).unwrap().remove(0)
}

/// Nodes, and pods on them by `spec.nodeName`.
pub(crate) fn cluster(
    nodes: impl IntoIterator<Item = Arc<Node>>,
    pods: impl IntoIterator<Item = Arc<Pod>>,
) -> Cache {
    let mut cache = Cache::default();
    nodes.into_iter().for_each(|node| cache.set_node(node));
    pods.into_iter().for_each(|pod| drop(cache.set_pod(pod)));
    cache.refresh();
    cache
}

pub(crate) fn placed_by(
    profile: &Profile,
    cache: &Cache,
    pod: &Arc<Pod>,
) -> Result<Placement, Unschedulable> {
    let nominations = Nominations::default();
    let cycle = Cycle {
        pod,
        cache,
        nominations: &nominations,
    };

    schedule(
        profile,
        cycle,
        &mut Search::default(),
        &mut fastrand::Rng::with_seed(1),
        &mut timing(),
    )
}

pub(crate) fn timing() -> Timing {
    Timing::new(tokio::time::Instant::now)
}

pub(crate) fn placed(cache: &Cache, pod: &Arc<Pod>) -> Result<Placement, Unschedulable> {
    placed_by(&default_profile(), cache, pod)
}

/// The node a pod gets, or why it gets none.
pub(crate) fn outcome(cache: &Cache, pod: &Arc<Pod>) -> String {
    match placed(cache, pod) {
        Ok(placement) => placement.node.to_string(),
        Err(Unschedulable::NoNodes) => String::from("no nodes available to schedule pods"),
        Err(Unschedulable::Unfit(unfit)) => unfit.diagnosis.message(),
        Err(Unschedulable::Failed(error)) => error,
    }
}

/// The nodes that fit a pod, sorted by name, with their total scores.
pub(crate) fn scores(profile: &Profile, cache: &Cache, pod: &Arc<Pod>) -> Vec<(String, i64)> {
    let nominations = Nominations::default();
    let cycle = Cycle {
        pod,
        cache,
        nominations: &nominations,
    };
    let mut scored = crate::cycle::evaluate_all(profile, cycle).unwrap();
    scored.sort();
    scored
}
