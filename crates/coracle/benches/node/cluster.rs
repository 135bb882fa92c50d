//! A client that measures a cluster over HTTPS.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::typed::TypedError;
use coracle_client::{
    Access, Client, Config, DeleteOptions, Environment, Informer, Informers, Projection, Resource,
    Selection, Subscription, Tasks,
};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use crate::machine::{Machine, PATIENCE};
use crate::traffic::{fetch, resolve};
use crate::world::WORLD;

/// Interval between attempts.
const PAUSE: Duration = Duration::from_millis(2);
/// Timeout of one attempt: packets to a server that is not up yet are lost.
const TRY: Duration = Duration::from_millis(50);

/// Times of milestones after the start of the process.
pub(crate) struct Came {
    pub(crate) api: Duration,
    pub(crate) node: Duration,
    pub(crate) answer: Duration,
    pub(crate) said: Duration,
}

pub(crate) struct Cluster<'a> {
    machine: &'a Machine,
}

impl Cluster<'_> {
    pub(crate) fn on(machine: &Machine) -> Cluster<'_> {
        Cluster { machine }
    }

    /// Starts a server, and begins to use it as soon as it answers.
    pub(crate) fn coming_up(machine: &Machine) -> Came {
        let begun = Instant::now();
        machine.begin();

        let kubeconfig = kubeconfig(machine);
        let using = machine.inside(move || {
            runtime().block_on(async {
                let client = answering(&kubeconfig).await;
                let api = begun.elapsed();

                let services = client
                    .resource(&Resource::builtin("", "v1", "services"))
                    .namespace("default");
                create(
                    &client.resource(&Resource::builtin("apps", "v1", "deployments")),
                    &deployment(),
                )
                .await;

                let address = create(&services, &service()).await;
                let first = services.get("kubernetes").await.unwrap();
                let dns = tenth(address_of(&first).unwrap());
                let asking = thread::spawn(move || answers_by_name(dns, address.unwrap(), begun));
                let node = node_is_ready(&client).await;

                (api, node.duration_since(begun), asking.join().unwrap())
            })
        });

        assert!(
            machine.is_ready_within(PATIENCE),
            "the server does not get ready"
        );

        let said = begun.elapsed();
        let (api, node, answer) = using.join().unwrap();

        Came {
            api,
            node,
            answer,
            said,
        }
    }

    /// Makes so many pods, so many times; how long each time took.
    pub(crate) fn makes_pods(&self, count: usize, times: usize) -> Vec<Duration> {
        let kubeconfig = kubeconfig(self.machine);
        let making = self.machine.inside(move || {
            runtime().block_on(async {
                let client = answering(&kubeconfig).await;
                let tasks = Tasks::new();
                let pods =
                    Selection::all(&Resource::builtin("", "v1", "pods")).namespace("default");
                let pods: Informer<StatusProjection> =
                    Informers::new(client.clone(), tasks.clone()).of(pods);
                pods.synced().await;
                let access = client
                    .resource(&Resource::builtin("", "v1", "pods"))
                    .namespace("default");

                let mut all = Vec::new();
                for _ in 0..times {
                    all.push(make_pods(&access, &pods, count).await);
                    remove_pods(&access, &pods, count).await;
                }

                drop(tasks);

                all
            })
        });

        making.join().unwrap()
    }
}

fn kubeconfig(machine: &Machine) -> PathBuf {
    machine.data_dir().join("admin.kubeconfig")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// A client of a ready server.
async fn answering(kubeconfig: &Path) -> Client {
    loop {
        if let Ok(config) = Config::load(Some(kubeconfig), None, &Environment::default()) {
            let client = Client::connect(config, WORLD)
                .await
                .unwrap()
                .named("coracle-bench");

            let request = http::Request::get("/readyz")
                .body(bytes::Bytes::new())
                .unwrap();
            if client.request(request).await.is_ok() {
                return client;
            }
        }

        tokio::time::sleep(PAUSE).await;
    }
}

/// Creates an object; returns its address, if it is a Service.
async fn create(access: &Access, object: &serde_json::Value) -> Option<IpAddr> {
    let object = json::parse(object.to_string().as_bytes()).unwrap();
    let made = access
        .clone()
        .namespace("default")
        .create(&object)
        .await
        .unwrap();
    address_of(&made)
}

fn address_of(service: &Value) -> Option<IpAddr> {
    service
        .at(&["spec", "clusterIP"])
        .and_then(Value::as_str)
        .map(|address| address.parse().unwrap())
}

/// The DNS Service has the tenth address of the range, the API server the first.
fn tenth(first: IpAddr) -> IpAddr {
    let IpAddr::V4(first) = first else {
        panic!("{first} is not of IPv4")
    };
    IpAddr::from((first.to_bits() + 9).to_be_bytes())
}

fn deployment() -> serde_json::Value {
    let labels = json!({"app": "echo"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "echo"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container()]}},
        },
    })
}

fn service() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "echo"},
        "spec": {"selector": {"app": "echo"}, "ports": [{"port": 80, "targetPort": 8080}]},
    })
}

fn container() -> serde_json::Value {
    json!({"name": "c", "image": "coracle.local/echo", "imagePullPolicy": "IfNotPresent"})
}

/// Resolves the Service in the cluster DNS and requests it, until both succeed.
fn answers_by_name(dns: IpAddr, service: IpAddr, begun: Instant) -> Duration {
    for number in 0.. {
        if resolve(dns, service, number, TRY)
            .and_then(|()| fetch(service, TRY))
            .is_ok()
        {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "no answer");
        thread::sleep(PAUSE);
    }
    begun.elapsed()
}

async fn node_is_ready(client: &Client) -> Instant {
    let tasks = Tasks::new();
    let nodes = Selection::all(&Resource::builtin("", "v1", "nodes"));
    let nodes: Informer<StatusProjection> = Informers::new(client.clone(), tasks.clone()).of(nodes);
    until(&mut nodes.subscribe(), || {
        nodes.list().iter().any(|node| node.object.is_ready)
    })
    .await;
    Instant::now()
}

/// The cached part of a pod or a node.
struct StatusProjection {
    is_ready: bool,
    is_running: bool,
}

impl Projection for StatusProjection {
    fn project(object: &Arc<Value>) -> Result<StatusProjection, TypedError> {
        let conditions = object
            .at(&["status", "conditions"])
            .and_then(Value::as_array)
            .unwrap_or_default();

        let says = |object: &Value, name: &str, what: &str| {
            object
                .get(name)
                .and_then(Value::as_str)
                .is_some_and(|text| text == what)
        };

        let is_ready = |condition: &Value| {
            says(condition, "type", "Ready") && says(condition, "status", "True")
        };
        let is_running = object
            .get("status")
            .is_some_and(|status| says(status, "phase", "Running"));

        Ok(StatusProjection {
            is_ready: conditions.iter().any(is_ready),
            is_running,
        })
    }
}

/// Waits for a condition, checked after every change.
async fn until<T: Projection>(changes: &mut Subscription<T>, is_so: impl Fn() -> bool) {
    while !is_so() {
        changes.next().await;
    }
}

async fn make_pods(access: &Access, pods: &Informer<StatusProjection>, count: usize) -> Duration {
    let mut changes = pods.subscribe();
    let objects: Vec<_> = (0..count).map(pod).collect();
    let begun = Instant::now();

    let creating = objects.iter().map(|pod| access.create(pod));
    for made in futures_util::future::join_all(creating).await {
        made.unwrap();
    }

    let all_run = || {
        pods.list()
            .iter()
            .filter(|pod| pod.object.is_running)
            .count()
            == count
    };
    until(&mut changes, all_run).await;

    begun.elapsed()
}

async fn remove_pods(access: &Access, pods: &Informer<StatusProjection>, count: usize) {
    let mut changes = pods.subscribe();
    let removing = (0..count).map(|number| {
        let options = DeleteOptions {
            grace_period_seconds: Some(1),
            ..DeleteOptions::default()
        };
        async move { access.delete(&name(number), &options).await }
    });

    for gone in futures_util::future::join_all(removing).await {
        gone.unwrap();
    }

    until(&mut changes, || pods.is_empty()).await;
}

fn name(number: usize) -> String {
    format!("bench-{number}")
}

fn pod(number: usize) -> Value {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name(number)},
        "spec": {"containers": [container()]},
    });
    json::parse(pod.to_string().as_bytes()).unwrap()
}
