//! Pure scheduling cycles per second: a pod of a Deployment finds its node and is assumed there, on
//! clusters of 100, 1,000 and 5,000 nodes that carry ten pods each. `cargo bench -p
//! coracle-scheduler`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "what fails here is the benchmark, and it prints"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_scheduler::cache::Cache;
use coracle_scheduler::config::Config;
use coracle_scheduler::cycle::{Search, Timing, schedule};
use coracle_scheduler::framework::{Bind, Bound, Cycle, Nominations, Refusal};
use coracle_scheduler::node::Node;
use coracle_scheduler::plugins::{Handle, Registry};
use coracle_scheduler::pod::Pod;
use coracle_scheduler::related::Group;
use serde_json::json;

struct NoopBinder;

#[async_trait]
impl Bind for NoopBinder {
    async fn bind(&self, _pod: &Pod, _node: &str) -> Result<Bound, Refusal> {
        Ok(Bound::Skip)
    }
}

fn tree(value: &serde_json::Value) -> Value {
    json::parse(value.to_string().as_bytes()).unwrap()
}

fn pod(index: usize, node: &str, extra: &serde_json::Value) -> Arc<Pod> {
    let owner = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true}]);
    let mut spec = json!({
        "schedulerName": "default-scheduler", "nodeName": node,
        "containers": [{"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}],
    });

    for (name, value) in extra.as_object().unwrap() {
        spec[name] = value.clone();
    }

    let meta = json!({"name": format!("web-{index}"), "namespace": "default", "uid": format!("u{index}"), "labels": {"app": "web"}, "ownerReferences": owner});
    Arc::new(Pod::from_object(&tree(
        &json!({"metadata": meta, "spec": spec}),
    )))
}

fn cluster(nodes: usize) -> Cache {
    let mut cache = Cache::default();
    for index in 0..nodes {
        let name = format!("node-{index}");
        let labels = json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("z{}", index % 3)});
        let allocatable = json!({"cpu": "32", "memory": "64Gi", "pods": "1000"});
        let node = json!({"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}});
        cache.set_node(Arc::new(Node::from_object(&tree(&node))));
        for turn in 0..10 {
            cache.set_pod(pod(1_000_000 + index * 10 + turn, &name, &json!({})));
        }
    }

    let set = tree(&json!({"spec": {"selector": {"matchLabels": {"app": "web"}}}}));
    cache.change_related(|around| {
        around.set_group(Group::ReplicaSet, "default", "web", Some(&set));
        false
    });

    cache.refresh();

    cache
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn measure(name: &str, nodes: usize, extra: &serde_json::Value) {
    let binder: Arc<dyn Bind> = Arc::new(NoopBinder);
    let profile = Registry::built_in(Handle { binder })
        .profiles(&Config::default())
        .unwrap()
        .remove(0);

    let mut cache = cluster(nodes);
    let (nominations, mut search, mut rng) = (
        Nominations::default(),
        Search::default(),
        fastrand::Rng::with_seed(1),
    );

    let (start, mut cycles) = (Instant::now(), 0);
    while start.elapsed() < Duration::from_secs(2) {
        let pod = pod(cycles, "", extra);
        let cycle = Cycle {
            pod: &pod,
            cache: &cache,
            nominations: &nominations,
        };
        let mut timing = Timing::new(tokio::time::Instant::now);
        let placement = schedule(&profile, cycle, &mut search, &mut rng, &mut timing)
            .expect("there is preemption");
        cache.assume(Arc::new(pod.on(&placement.node)));
        cycles += 1;
    }

    let rate = f64::from(u32::try_from(cycles).unwrap()) / start.elapsed().as_secs_f64();
    println!("{name:<16} {nodes:>5} nodes {rate:>9.0} cycles/s");
}

fn main() {
    let hard = json!({"topologySpreadConstraints": [{
        "maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}}]});
    let anti_affinity = json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{
        "weight": 10, "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}}]}}});
    for nodes in [100, 1000, 5000] {
        measure("plain", nodes, &json!({}));
        measure("spread", nodes, &hard);
        measure("anti-affinity", nodes, &anti_affinity);
    }
}
