//! The Endpoints and EndpointSlice controllers against a real server, under their upstream
//! identities.

use crate::common;

use std::time::Duration;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_api::time::Timestamp;
use coracle_client::{DeleteOptions, ListOptions, ObjectKey, Resource, Tasks, WorkQueue};
use coracle_controllers::endpoints::Endpoints;
use coracle_controllers::{Context, Controller, Feeds, Observation};
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, Setup, eventually, simulated};

const SERVICE: &str = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: default, labels: {tier: front}}, \
     spec: {selector: {app: web}, ports: [{name: w, port: 80, targetPort: http}]}}";
const POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: default, labels: {app: web}}, \
     spec: {nodeName: n1, containers: [{name: c, image: i, ports: [{name: http, containerPort: 8080}]}]}}";
const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: n1, labels: {topology.kubernetes.io/zone: z}}, \
     status: {conditions: [{type: Ready, status: 'True'}]}}";

async fn slices(cluster: &Controlled) -> Vec<Value> {
    let web = ListOptions::labels("kubernetes.io/service-name=web");
    cluster
        .of("discovery.k8s.io", "endpointslices")
        .list_all(&web)
        .await
        .unwrap()
        .items
}

fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    object.at(path).and_then(Value::as_str).unwrap_or_default()
}

#[tokio::test]
async fn a_pod_behind_a_service_is_an_endpoint_as_long_as_it_is_there() {
    let cluster = Controlled::start().await;
    cluster.of("", "nodes").create(&object(NODE)).await.unwrap();
    cluster
        .of("", "services")
        .create(&object(SERVICE))
        .await
        .unwrap();

    let empty = eventually("a slice that says that there is nothing", async || {
        slices(&cluster).await.pop()
    })
    .await;

    assert!(
        empty
            .get("endpoints")
            .and_then(Value::as_array)
            .unwrap_or_default()
            .is_empty()
    );

    assert_eq!(empty.meta().label("tier"), Some("front"));
    assert_eq!(
        empty.meta().owner_references().next().unwrap().kind,
        "Service"
    );

    let mut pod = cluster.of("", "pods").create(&object(POD)).await.unwrap();

    let status = object(
        "{phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}], conditions: [{type: Ready, status: 'True', \
         lastTransitionTime: '2026-03-01T11:00:00Z'}]}",
    );
    pod.as_object_mut().unwrap().insert("status", status);

    cluster
        .of("", "pods")
        .subresource("status")
        .update(&pod)
        .await
        .unwrap();

    let filled = eventually("its address", async || {
        let slice = slices(&cluster).await.pop()?;
        let endpoint = slice.get("endpoints")?.as_array()?.first()?.clone();
        (endpoint.at(&["conditions", "ready"])?.as_bool() == Some(true))
            .then_some((slice, endpoint))
    })
    .await;

    assert_eq!(
        (text(&filled.1, &["nodeName"]), text(&filled.1, &["zone"])),
        ("n1", "z")
    );

    assert_eq!(
        filled.0.meta().name(),
        empty.meta().name(),
        "the slice that was there is used"
    );

    let ports = filled.0.get("ports").unwrap().as_array().unwrap();
    assert_eq!(number(&ports[0], &["port"]), 8080);

    eventually("the same in the old form", async || {
        let endpoints = cluster.of("", "endpoints").find("web").await.unwrap()?;
        let subset = endpoints.get("subsets")?.as_array()?.first()?.clone();
        (text(&subset.get("addresses")?.as_array()?[0], &["ip"]) == "10.0.0.1").then_some(())
    })
    .await;

    assert_eq!(
        slices(&cluster).await.len(),
        1,
        "what a controller writes is not mirrored"
    );

    cluster
        .of("", "pods")
        .delete("a", &DeleteOptions::default())
        .await
        .unwrap();

    eventually("it is going", async || {
        let endpoint = slices(&cluster)
            .await
            .pop()?
            .get("endpoints")?
            .as_array()?
            .first()?
            .clone();
        (endpoint.at(&["conditions", "terminating"])?.as_bool() == Some(true)).then_some(())
    })
    .await;

    cluster
        .of("", "services")
        .delete("web", &DeleteOptions::default())
        .await
        .unwrap();

    eventually("the Endpoints are deleted with the Service", async || {
        let left = cluster.list("endpoints").await;
        left.iter()
            .all(|endpoints| endpoints.meta().name() != "web")
            .then_some(())
    })
    .await;

    cluster.stop().await;
}

#[tokio::test]
async fn manually_written_endpoints_are_mirrored() {
    let cluster = Controlled::start().await;
    let service = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: default}, spec: {ports: [{port: 80}]}}";
    cluster
        .of("", "services")
        .create(&object(service))
        .await
        .unwrap();

    let endpoints = "{apiVersion: v1, kind: Endpoints, metadata: {name: web, namespace: default}, \
         subsets: [{addresses: [{ip: 192.0.2.1}, {ip: 192.0.2.2}], ports: [{port: 8080}]}]}";
    cluster
        .of("", "endpoints")
        .create(&object(endpoints))
        .await
        .unwrap();

    let slice = eventually("a slice", async || slices(&cluster).await.pop()).await;
    assert_eq!(slice.get("endpoints").unwrap().as_array().unwrap().len(), 2);

    let manager = slice.meta().label("endpointslice.kubernetes.io/managed-by");
    assert_eq!(manager, Some("endpointslicemirroring-controller.k8s.io"));

    cluster
        .of("", "endpoints")
        .delete("web", &DeleteOptions::default())
        .await
        .unwrap();

    eventually("it goes with them", async || {
        slices(&cluster).await.is_empty().then_some(())
    })
    .await;

    cluster.stop().await;
}

#[tokio::test]
async fn what_was_just_written_is_not_written_again_by_an_older_view() {
    let cluster = Cluster::start().await;
    let client = cluster.client();
    let manager = cluster.client_as("system:kube-controller-manager", &[]);
    let context = Context::new(&manager, cluster.accounts(), Tasks::new());

    let mut feeds = Feeds::new();
    let controller = Endpoints::new(
        &context,
        Duration::ZERO,
        &WorkQueue::new("endpoint"),
        &mut feeds,
    );

    let services = client
        .resource(&Resource::builtin("", "v1", "services"))
        .namespace("default");
    let mut behind = 0;

    for number in 0..20 {
        let name = format!("web-{number}");
        services
            .create(&object(
                &SERVICE.replace("name: web,", &format!("name: {name},")),
            ))
            .await
            .unwrap();

        let key = ObjectKey::new("default", &name);
        let seen = |observation: Observation<_>| match observation {
            Observation::Present { observed, .. } => Some(observed),
            Observation::Absent | Observation::Behind => None,
        };

        let observed = eventually("the Service is seen", async || {
            seen(controller.observe(&key))
        })
        .await;
        let plan = Endpoints::plan(&observed, Timestamp::from_unix(0, 0));
        controller.act(&key, observed, plan).await.unwrap();

        // As when a pod changes now: the cache may not show the last write yet.
        match seen(controller.observe(&key)) {
            None => behind += 1,
            Some(observed) => {
                let plan = Endpoints::plan(&observed, Timestamp::from_unix(0, 0));
                controller.act(&key, observed, plan).await.unwrap();
            }
        }
    }

    println!("{behind} views were too old");
    context.tasks.stop().await;
    cluster.stop().await;
}

/// A server that was killed between an address and its Service leaves the address behind.
#[tokio::test(start_paused = true)]
async fn an_address_that_was_left_behind_is_its_services_again_after_a_minute() {
    let cluster = Cluster::with(Setup {
        world: simulated(1),
        ..Setup::default()
    })
    .await;
    let client = cluster.client();
    let addresses = client.resource(&Resource::builtin("networking.k8s.io", "v1", "ipaddresses"));

    let services = client
        .resource(&Resource::builtin("", "v1", "services"))
        .namespace("default");

    let address = "{apiVersion: networking.k8s.io/v1, kind: IPAddress, metadata: {name: 10.96.0.77}, \
         spec: {parentRef: {resource: services, namespace: default, name: web}}}";
    addresses.create(&object(address)).await.unwrap();
    let service = |name: &str| {
        object(&format!(
            "{{apiVersion: v1, kind: Service, metadata: {{name: {name}, namespace: default}}, \
             spec: {{clusterIP: 10.96.0.77, ports: [{{port: 80}}]}}}}"
        ))
    };

    let refusal = async |name: &str| {
        services
            .create(&service(name))
            .await
            .err()
            .map(|error| error.to_string())
    };

    // As young as this, a server that lives may be about to write the Service.
    tokio::time::sleep(Duration::from_secs(59)).await;
    let refused = refusal("web").await.expect("it is young");
    assert!(
        refused.contains("provided IP is already allocated"),
        "{refused}"
    );

    tokio::time::sleep(Duration::from_secs(2)).await;
    let refused = refusal("other").await.expect("it is of another Service");
    assert!(
        refused.contains("provided IP is already allocated"),
        "{refused}"
    );

    assert_eq!(refusal("web").await, None);

    cluster.stop().await;
}
