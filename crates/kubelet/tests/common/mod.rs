//! A cluster with one node: an API server in memory, a machine with a runtime, and a kubelet.

mod restarted_runtime;

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::{Value, typed};
use coracle_client::{Access, Client, DeleteOptions, Journal, ListOptions, Patch, Resource, Tasks};
use coracle_cri::Runtime;
use coracle_kubelet::{Config, Kubelet, LogRotation, Shown};
use coracle_testkit::{Cluster, Machine, eventually, objects};
use k8s_openapi::api::core::v1::{Event, Node, Pod, PodStatus};

pub(crate) use restarted_runtime::RestartedRuntime;

pub(crate) const NODE: &str = "n1";
/// Address of `/healthz`; every test has its own network namespace.
pub(crate) const HEALTHZ: &str = "127.0.0.1:10248";

pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) client: Client,
    pub(crate) machine: Machine,
    pub(crate) logs: LogRotation,
    pub(crate) max_pods: u32,
    tasks: Tasks,
}

impl World {
    pub(crate) async fn new(machine: Machine) -> World {
        let cluster = Cluster::start().await;
        let client = cluster.client();

        let logs = LogRotation::default();
        let mut world = World {
            cluster,
            client,
            machine,
            logs,
            max_pods: 110,
            tasks: Tasks::new(),
        };
        world.start_kubelet();

        world
    }

    pub(crate) fn start_kubelet(&mut self) {
        self.start_kubelet_over(self.machine.runtime.clone());
    }

    pub(crate) fn start_kubelet_over(&mut self, runtime: Arc<dyn Runtime>) {
        let config = Config {
            node_name: NODE.to_owned(),
            addresses: vec!["10.244.0.1".parse().unwrap()],
            data_dir: self.machine.folder().join("data"),
            cgroup_root: self.machine.cgroup_root.clone(),
            labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
            taints: Vec::new(),
            external_addresses: Vec::new(),
            provider_id: None,
            registers: true,
            cluster_dns: vec!["10.96.0.10".parse().unwrap()],
            cluster_domain: "cluster.local".to_owned(),
            resolv_conf: "/etc/resolv.conf".into(),
            manifests: Some(self.machine.folder().join("manifests")),
            logs: self.logs.clone(),
            max_pods: self.max_pods,
            pod_pids: None,
            unsafe_sysctls: Vec::new(),
            images: coracle_kubelet::ImageSettings::default(),
            reserved_ports: Vec::new(),
            port: 10250,
            healthz: Some(HEALTHZ.parse().unwrap()),
            version: "v1.36.0",
            shown: Shown::Flags(Vec::new()),
            journal: Journal::new(),
        };

        let client = self
            .cluster
            .client_as(&format!("system:node:{NODE}"), &["system:nodes"]);
        let kubelet = Kubelet::new(config, client, runtime, self.machine.images.clone());
        self.tasks = Tasks::new();
        self.tasks
            .spawn(async move { kubelet.run().await.unwrap() });
    }

    /// Stops the kubelet without cleanup; the machine keeps running.
    pub(crate) async fn kill_kubelet(&mut self) {
        self.tasks.stop().await;
    }

    pub(crate) async fn end(self) -> Machine {
        self.tasks.stop().await;
        self.cluster.stop().await;
        self.machine
    }

    pub(crate) fn pods(&self) -> Access {
        self.client
            .resource(&Resource::of::<Pod>())
            .namespace("default")
    }

    /// Creates a pod on the node; `spec` is added to its spec.
    pub(crate) async fn create(&self, name: &str, spec: &str) -> Pod {
        let text = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  nodeName: {NODE}\n{spec}"
        );
        typed::from_tree(&self.pods().create(&objects::object(&text)).await.unwrap()).unwrap()
    }

    pub(crate) async fn get(&self, name: &str) -> Option<Pod> {
        self.pods()
            .find(name)
            .await
            .unwrap()
            .map(|tree| typed::from_tree(&tree).unwrap())
    }

    /// Waits until a pod's status satisfies a condition.
    pub(crate) async fn until(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&PodStatus) -> bool,
    ) -> Pod {
        let last = Arc::new(std::sync::Mutex::new(None));
        let seen = last.clone();
        let found = tokio::time::timeout(std::time::Duration::from_secs(120), async {
            loop {
                let pod = self.get(name).await.unwrap();
                if pod.status.as_ref().is_some_and(&is) {
                    return pod;
                }
                *seen.lock().unwrap() = pod.status;
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        });

        match found.await {
            Ok(pod) => pod,
            Err(_) => {
                let events = self.events().await;
                panic!(
                    "{name} is not {what}: {:#?}\n{events:#?}",
                    last.lock().unwrap()
                )
            }
        }
    }

    pub(crate) async fn delete(&self, name: &str, grace: Option<i64>) {
        let options = DeleteOptions {
            grace_period_seconds: grace,
            ..DeleteOptions::default()
        };
        self.pods().delete(name, &options).await.unwrap();
    }

    pub(crate) async fn gone(&self, name: &str) {
        eventually(&format!("{name} is gone"), async || {
            self.get(name).await.is_none().then_some(())
        })
        .await;
    }

    /// `reason: message` of all events.
    pub(crate) async fn events(&self) -> Vec<String> {
        let all = self
            .client
            .resource(&Resource::of::<Event>())
            .list(&ListOptions::default())
            .await
            .unwrap();

        let text = |event: &Value, name: &str| {
            event
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or("")
                .to_owned()
        };

        all.items
            .iter()
            .map(|event| format!("{}: {}", text(event, "reason"), text(event, "message")))
            .collect()
    }

    /// Sets the node's pod CIDR, as the cluster does.
    pub(crate) async fn set_pod_cidr(&self) {
        let patch = objects::object("spec: {podCIDR: 10.244.0.0/24, podCIDRs: [10.244.0.0/24]}");
        let nodes = self.client.resource(&Resource::of::<Node>());
        nodes.patch(NODE, &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn node(&self) -> Node {
        let nodes = self.client.resource(&Resource::of::<Node>());
        eventually("the node is there", async || {
            nodes
                .find(NODE)
                .await
                .unwrap()
                .map(|tree| typed::from_tree(&tree).unwrap())
        })
        .await
    }
}

pub(crate) fn is_ready(status: &PodStatus) -> bool {
    status
        .conditions
        .iter()
        .flatten()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

pub(crate) fn restarts(status: &PodStatus) -> i32 {
    status
        .container_statuses
        .iter()
        .flatten()
        .map(|container| container.restart_count)
        .sum()
}
