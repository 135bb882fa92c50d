//! The scheduler against a real server, under its upstream identity and with its upstream role.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::collections::BTreeSet;
use std::sync::Mutex;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::{Access, Client, DeleteOptions, Journal, ListOptions, Patch, Resource, Tasks};
use coracle_scheduler::config::Config;
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, Outcome, eventually, intercept};
use tokio::sync::watch;

/// A cluster with a scheduler, which stops with it.
struct Scheduled {
    cluster: Cluster,
    journal: Journal,
    tasks: Tasks,
    _stop: watch::Sender<bool>,
}

impl Scheduled {
    async fn start() -> Scheduled {
        Scheduled::start_with(|cluster| cluster.client_as("system:kube-scheduler", &[])).await
    }

    async fn start_with(client: impl FnOnce(&Cluster) -> Client) -> Scheduled {
        let cluster = Cluster::start().await;
        let (client, journal, tasks) = (client(&cluster), Journal::new(), Tasks::new());
        let (stop, stopped) = watch::channel(false);

        let recorded = journal.clone();
        tasks.spawn(async move {
            coracle_scheduler::run(
                &Config::default(),
                &client,
                "host",
                recorded,
                stopped,
                || {},
            )
            .await
            .unwrap()
        });

        Scheduled {
            cluster,
            journal,
            tasks,
            _stop: stop,
        }
    }

    fn of(&self, group: &str, plural: &str) -> Access {
        self.cluster
            .client()
            .resource(&Resource::builtin(group, "v1", plural))
            .namespace("default")
    }

    async fn node(&self, name: &str, cpu: &str) {
        let node = object(&format!(
            "{{apiVersion: v1, kind: Node, metadata: {{name: {name}}}}}"
        ));
        self.of("", "nodes").create(&node).await.unwrap();

        let status = format!(
            r#"{{"status":{{"allocatable":{{"cpu":"{cpu}","memory":"8Gi","pods":"110"}},"capacity":{{"cpu":"{cpu}","memory":"8Gi","pods":"110"}}}}}}"#
        );
        self.of("", "nodes")
            .subresource("status")
            .patch(name, &merge(&status))
            .await
            .unwrap();

        // A new node is tainted not-ready, and no controller here removes the taint.
        self.of("", "nodes")
            .patch(name, &merge(r#"{"spec":{"taints":null}}"#))
            .await
            .unwrap();
    }

    async fn priority_class(&self, name: &str, policy: &str) {
        let class = object(&format!(
            "{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: {name}}}, value: 1000, \
             preemptionPolicy: {policy}}}"
        ));
        self.of("scheduling.k8s.io", "priorityclasses")
            .create(&class)
            .await
            .unwrap();
    }

    async fn pod(&self, name: &str, spec: &str) -> Value {
        let pod = format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, namespace: default, labels: {{app: {name}}}}}\nspec:\n  \
             terminationGracePeriodSeconds: 0\n  containers: [{{name: c, image: i, resources: {{requests: {{cpu: '1'}}}}}}]\n{spec}"
        );
        self.of("", "pods").create(&object(&pod)).await.unwrap()
    }

    /// The node of a pod, once it has one.
    async fn node_of(&self, name: &str) -> String {
        eventually(&format!("{name} has a node"), async || {
            let pod = self.of("", "pods").get(name).await.unwrap();
            pod.at(&["spec", "nodeName"])
                .and_then(Value::as_str)
                .map(str::to_owned)
        })
        .await
    }

    /// The message of the condition `PodScheduled`, once it is false.
    async fn why(&self, name: &str, begins: &str) -> String {
        eventually(&format!("{name} says {begins}"), async || {
            let pod = self.of("", "pods").get(name).await.unwrap();
            let condition = scheduled(&pod)?;
            let message = condition.get("message")?.as_str()?.to_owned();
            assert_eq!(condition.get("status").unwrap().as_str(), Some("False"));
            message.starts_with(begins).then_some(message)
        })
        .await
    }

    async fn event(&self, name: &str, reason: &str) -> Value {
        eventually(&format!("an event {reason} of {name}"), async || {
            let events = self
                .of("", "events")
                .list_all(&ListOptions::default())
                .await
                .unwrap()
                .items;

            events.into_iter().find(|event| {
                event
                    .at(&["involvedObject", "name"])
                    .and_then(Value::as_str)
                    == Some(name)
                    && event.get("reason").and_then(Value::as_str) == Some(reason)
            })
        })
        .await
    }

    async fn stop(self) {
        self.tasks.stop().await;
        self.cluster.stop().await;
    }
}

fn scheduled(pod: &Value) -> Option<&Value> {
    let mut conditions = pod.at(&["status", "conditions"])?.as_array()?.iter();
    conditions
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some("PodScheduled"))
}

fn merge(text: &str) -> Patch {
    Patch::Merge(json::parse(text.as_bytes()).unwrap())
}

fn text(value: &Value, path: &[&str]) -> String {
    value
        .at(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test]
async fn pods_spread_over_nodes_and_are_reported() {
    let cluster = Scheduled::start().await;
    for node in ["n1", "n2", "n3"] {
        cluster.node(node, "4").await;
    }

    let mut used = std::collections::BTreeMap::new();
    for index in 0..6 {
        let pod = cluster.pod(&format!("web-{index}"), "").await;
        let node = cluster.node_of(pod.meta().name()).await;
        *used.entry(node).or_insert(0) += 1;
    }

    assert_eq!(used.values().copied().collect::<Vec<_>>(), [2, 2, 2]);

    let event = cluster.event("web-0", "Scheduled").await;
    let node = cluster.node_of("web-0").await;
    assert_eq!(
        text(&event, &["message"]),
        format!("Successfully assigned default/web-0 to {node}")
    );

    // An event of `events.k8s.io`, as the core group shows it.
    assert_eq!(text(&event, &["reportingComponent"]), "default-scheduler");
    assert_eq!(
        text(&event, &["reportingInstance"]),
        "default-scheduler-host"
    );

    assert_eq!(text(&event, &["action"]), "Binding");
    assert_eq!(
        (event.at(&["source", "component"]), event.get("count")),
        (None, None)
    );

    assert!(
        event.get("eventTime").is_some_and(|time| !time.is_null()),
        "{event:?}"
    );

    let pod = cluster.of("", "pods").get("web-0").await.unwrap();
    assert_eq!(
        scheduled(&pod).unwrap().get("status").unwrap().as_str(),
        Some("True")
    );

    let stages: Vec<_> = cluster
        .journal
        .of(pod.meta().uid())
        .iter()
        .map(|stage| stage.what)
        .collect();
    assert_eq!(stages, ["schedule", "bind"]);

    cluster.stop().await;
}

#[tokio::test]
async fn a_pending_pod_reports_why_and_is_scheduled_when_that_changes() {
    let cluster = Scheduled::start().await;
    cluster.pod("early", "").await;
    assert_eq!(
        cluster.why("early", "no nodes").await,
        "no nodes available to schedule pods"
    );

    cluster.node("n1", "4").await;
    assert_eq!(cluster.node_of("early").await, "n1");

    cluster
        .of("", "nodes")
        .patch("n1", &merge(r#"{"spec":{"unschedulable":true}}"#))
        .await
        .unwrap();

    // The scheduler observes the cordon after the API; a pod that cannot be scheduled shows when.
    cluster.pod("big", "  nodeSelector: {no: where}\n").await;
    cluster
        .why(
            "big",
            "0/1 nodes are available: 1 node(s) were unschedulable.",
        )
        .await;

    cluster.pod("waits", "").await;
    let why = cluster.why("waits", "0/1").await;
    assert_eq!(
        why,
        "0/1 nodes are available: 1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/1 nodes are available: \
         1 Preemption is not helpful for scheduling."
    );

    let event = cluster.event("waits", "FailedScheduling").await;
    assert_eq!(
        (text(&event, &["type"]), text(&event, &["message"])),
        (String::from("Warning"), why)
    );

    cluster
        .of("", "nodes")
        .patch("n1", &merge(r#"{"spec":{"unschedulable":null}}"#))
        .await
        .unwrap();

    assert_eq!(cluster.node_of("waits").await, "n1");

    cluster.stop().await;
}

#[tokio::test]
async fn pods_that_are_not_to_be_scheduled_are_left_alone() {
    let cluster = Scheduled::start().await;
    cluster.node("n1", "8").await;
    cluster.pod("foreign", "  schedulerName: foo\n").await;

    cluster
        .pod("gated", "  schedulingGates: [{name: example.com/wait}]\n")
        .await;
    cluster
        .pod(
            "claims",
            "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n",
        )
        .await;

    cluster
        .why(
            "claims",
            "0/1 nodes are available: pod has persistentvolumeclaims (data)",
        )
        .await;

    for name in ["foreign", "gated"] {
        let pod = cluster.of("", "pods").get(name).await.unwrap();
        assert_eq!(pod.at(&["spec", "nodeName"]), None, "{name}");
    }

    cluster
        .of("", "pods")
        .patch("gated", &merge(r#"{"spec":{"schedulingGates":null}}"#))
        .await
        .unwrap();

    assert_eq!(cluster.node_of("gated").await, "n1");

    cluster.stop().await;
}

#[tokio::test]
async fn an_important_pod_takes_the_place_of_a_lesser_one() {
    let cluster = Scheduled::start().await;
    cluster.priority_class("high", "PreemptLowerPriority").await;
    cluster.node("n1", "1").await;
    let victim = cluster.pod("lesser", "").await;
    cluster.node_of("lesser").await;

    cluster.priority_class("polite", "Never").await;
    cluster.pod("polite", "  priorityClassName: polite\n").await;
    cluster.why("polite", "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: not eligible").await;
    cluster
        .of("", "pods")
        .delete("polite", &DeleteOptions::default())
        .await
        .unwrap();

    cluster
        .pod("important", "  priorityClassName: high\n")
        .await;
    assert_eq!(cluster.node_of("important").await, "n1");

    let event = cluster.event("lesser", "Preempted").await;
    assert!(
        text(&event, &["message"]).starts_with("Preempted by pod "),
        "{event:?}"
    );

    assert_eq!(
        text(&event, &["involvedObject", "uid"]),
        victim.meta().uid()
    );

    assert_eq!(
        (
            text(&event, &["action"]),
            text(&event, &["related", "name"])
        ),
        ("Preempting".into(), "important".into())
    );

    assert!(
        cluster
            .of("", "pods")
            .find("lesser")
            .await
            .unwrap()
            .is_none()
    );

    cluster.stop().await;
}

#[tokio::test]
async fn free_resources_go_to_the_highest_priority() {
    let cluster = Scheduled::start().await;
    cluster.priority_class("high", "PreemptLowerPriority").await;

    for index in 0..20 {
        cluster.pod(&format!("low-{index}"), "").await;
        cluster
            .pod(&format!("high-{index}"), "  priorityClassName: high\n")
            .await;
    }

    for index in 0..20 {
        cluster.why(&format!("low-{index}"), "no nodes").await;
        cluster.why(&format!("high-{index}"), "no nodes").await;
    }

    cluster.node("n1", "20").await;

    for index in 0..20 {
        assert_eq!(cluster.node_of(&format!("high-{index}")).await, "n1");
    }

    // Lesser pods may have been bound first, and evicted again.
    let pods = cluster
        .of("", "pods")
        .list_all(&ListOptions::default())
        .await
        .unwrap()
        .items;

    let placed = pods
        .iter()
        .filter(|pod| pod.at(&["spec", "nodeName"]).is_some());
    assert!(
        placed
            .clone()
            .all(|pod| pod.meta().name().starts_with("high-"))
    );

    assert_eq!(placed.count(), 20);

    cluster.stop().await;
}

#[tokio::test]
async fn ended_pods_use_no_resources_and_terminating_ones_do() {
    let cluster = Scheduled::start().await;
    cluster.node("n1", "1").await;
    cluster.pod("first", "").await;
    cluster.node_of("first").await;
    cluster.pod("second", "").await;
    cluster
        .why("second", "0/1 nodes are available: 1 Insufficient cpu.")
        .await;

    // A terminating pod still uses its resources.
    let held = merge(r#"{"metadata":{"finalizers":["example.com/hold"]}}"#);
    cluster.of("", "pods").patch("first", &held).await.unwrap();
    cluster
        .of("", "pods")
        .delete("first", &DeleteOptions::default())
        .await
        .unwrap();

    cluster.pod("third", "").await;
    cluster
        .why("third", "0/1 nodes are available: 1 Insufficient cpu.")
        .await;

    let ended = merge(r#"{"status":{"phase":"Succeeded"}}"#);
    cluster
        .of("", "pods")
        .subresource("status")
        .patch("first", &ended)
        .await
        .unwrap();

    assert_eq!(cluster.node_of("second").await, "n1");
    assert!(
        cluster
            .of("", "pods")
            .find("first")
            .await
            .unwrap()
            .is_some(),
        "it is still there"
    );

    cluster.stop().await;
}

#[tokio::test]
async fn a_victim_keeps_its_grace_period_while_the_pod_is_nominated() {
    let cluster = Scheduled::start().await;
    cluster.priority_class("high", "PreemptLowerPriority").await;
    cluster.node("n1", "1").await;
    cluster.pod("victim", "").await;
    cluster.node_of("victim").await;

    let grace = merge(r#"{"metadata":{"finalizers":["example.com/hold"]}}"#);
    cluster
        .of("", "pods")
        .patch("victim", &grace)
        .await
        .unwrap();

    cluster
        .pod("important", "  priorityClassName: high\n")
        .await;
    let promised = eventually("a node is promised", async || {
        let pod = cluster.of("", "pods").get("important").await.unwrap();
        pod.at(&["status", "nominatedNodeName"])
            .and_then(Value::as_str)
            .map(str::to_owned)
    });
    assert_eq!(promised.await, "n1");

    let victim = eventually("the victim is being deleted", async || {
        let pod = cluster.of("", "pods").get("victim").await.unwrap();
        pod.meta().is_being_deleted().then_some(pod)
    })
    .await;

    let conditions = victim
        .at(&["status", "conditions"])
        .and_then(Value::as_array)
        .unwrap();

    let target = conditions
        .iter()
        .find(|one| text(one, &["type"]) == "DisruptionTarget")
        .unwrap();

    assert_eq!(
        (text(target, &["status"]), text(target, &["reason"])),
        ("True".into(), "PreemptionByScheduler".into())
    );

    // As long as it exists, no pod gets its resources.
    let waiting = cluster.of("", "pods").get("important").await.unwrap();
    assert_eq!(waiting.at(&["spec", "nodeName"]), None);

    let gone = merge(r#"{"metadata":{"finalizers":null}}"#);
    cluster.of("", "pods").patch("victim", &gone).await.unwrap();
    assert_eq!(cluster.node_of("important").await, "n1");

    cluster.stop().await;
}

#[tokio::test]
async fn a_binding_whose_answer_is_lost_holds_and_is_counted_once() {
    // The response to the first binding of each pod is lost.
    let losing = |cluster: &Cluster| {
        let seen = Mutex::new(BTreeSet::new());
        let way = intercept(cluster.transport(), move |request| {
            let path = request.uri().path().to_owned();
            let is_first = path.ends_with("/binding") && seen.lock().unwrap().insert(path);
            if is_first {
                Outcome::LoseResponse
            } else {
                Outcome::Pass
            }
        });

        Client::new(way, cluster.world)
    };
    let cluster = Scheduled::start_with(losing).await;
    cluster.node("n1", "2").await;

    for name in ["a", "b"] {
        cluster.pod(name, "").await;
        assert_eq!(cluster.node_of(name).await, "n1");
    }

    // Exactly two CPUs are used.
    cluster.pod("c", "").await;
    cluster
        .why("c", "0/1 nodes are available: 1 Insufficient cpu.")
        .await;
    cluster
        .of("", "pods")
        .delete("a", &DeleteOptions::default())
        .await
        .unwrap();

    assert_eq!(cluster.node_of("c").await, "n1");

    cluster.stop().await;
}
