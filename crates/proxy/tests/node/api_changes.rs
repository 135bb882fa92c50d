//! The whole proxy with a real API server.

use coracle_client::{Access, DeleteOptions, Resource, Tasks};
use coracle_proxy::{Config, DetectLocal};
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, eventually};
use std::time::Duration;

use crate::rig::{Rig, ask, dropped, refused};

#[test]
fn services_come_and_go_with_the_api() {
    let rig = Rig::new(2);
    let _servers = rig.servers();
    on_node(&rig, async |cluster| {
        let proxy = start(cluster).await;
        create(cluster, "", "services", SERVICE).await;
        let address = eventually("the Service has an address", async || {
            let service = of(cluster, "", "services").get("web").await.unwrap();
            service
                .at(&["spec", "clusterIP"])?
                .as_str()
                .map(|ip| format!("{ip}:80"))
        })
        .await;

        eventually("it refuses", async || {
            refused(&rig.pods[1], &address).then_some(())
        })
        .await;

        create(cluster, "discovery.k8s.io", "endpointslices", SLICE).await;
        eventually("it answers", async || ask(&rig.pods[1], &address).ok()).await;

        // Another process flushes all rules, as a firewall does on start.
        rig.node.run("nft", "flush ruleset");
        eventually("it answers again", async || {
            ask(&rig.pods[1], &address).ok()
        })
        .await;

        // Services keep working without the proxy.
        proxy.stop().await;
        assert_eq!(ask(&rig.pods[1], &address).unwrap().by, "pod0");

        let proxy = start(cluster).await;
        assert_eq!(ask(&rig.pods[1], &address).unwrap().by, "pod0");

        let health = eventually("the health port responds", async || {
            Some(rig.node.inside(|| http("127.0.0.1:10256", "/healthz")))
                .filter(|said| !said.is_empty())
        })
        .await;

        assert!(
            health.starts_with("HTTP/1.1 503"),
            "there is no Node: {health}"
        );

        assert!(
            health.contains(r#""nodeEligible":false,"healthy":true"#),
            "{health}"
        );

        let live = rig.node.inside(|| http("127.0.0.1:10256", "/livez"));
        assert!(live.starts_with("HTTP/1.1 200"), "{live}");

        of(cluster, "", "services")
            .delete("web", &DeleteOptions::default())
            .await
            .unwrap();

        eventually("it is gone", async || {
            dropped(&rig.pods[1], &address).then_some(())
        })
        .await;

        proxy.stop().await;
        rig.node
            .inside(|| coracle_proxy::clean("coracle-follows"))
            .unwrap();
        assert!(
            !rig.node
                .run("nft", "list ruleset")
                .contains("coracle-follows")
        );
    });
}

#[test]
fn load_balancers_may_ask_for_endpoints() {
    let rig = Rig::new(1);
    on_node(&rig, async |cluster| {
        create(cluster, "", "nodes", NODE).await;
        let status = r#"{"status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}}"#;

        let status = coracle_client::Patch::Merge(
            coracle_api::codec::json::parse(status.as_bytes()).unwrap(),
        );
        of(cluster, "", "nodes")
            .subresource("status")
            .patch("here", &status)
            .await
            .unwrap();

        let _proxy = start(cluster).await;
        create(cluster, "", "services", BALANCED).await;
        let asked = async |expected: &'static str| {
            eventually(expected, async || {
                let answer = rig.outside.inside(|| http("192.0.2.1:32000", "/"));
                answer.contains(expected).then_some(answer)
            })
            .await
        };

        assert!(
            asked("\"localEndpoints\": 0")
                .await
                .starts_with("HTTP/1.1 503")
        );

        create(cluster, "discovery.k8s.io", "endpointslices", SLICE).await;
        let answer = asked("\"localEndpoints\": 1").await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(
            answer.contains("x-load-balancing-endpoint-weight: 1"),
            "{answer}"
        );

        let health = rig.node.inside(|| http("127.0.0.1:10256", "/healthz"));
        assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    });
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\n\
    spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}\n";
const BALANCED: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: default}\n\
    spec: {type: LoadBalancer, externalTrafficPolicy: Local, healthCheckNodePort: 32000, ports: [{port: 80, targetPort: 8080}]}\n";
const SLICE: &str = "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\n\
    metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\n\
    ports: [{name: '', port: 8080, protocol: TCP}]\n\
    endpoints: [{addresses: [10.70.0.2], nodeName: here, conditions: {ready: true}}]\n";
const NODE: &str = "{apiVersion: v1, kind: Node, metadata: {name: here}}";

/// Starts a proxy with upstream's permissions, and waits for its first sync.
async fn start(cluster: &Cluster) -> Tasks {
    let config = Config {
        node: "here".to_owned(),
        table: "coracle-follows".to_owned(),
        detect_local: DetectLocal::ClusterRanges(vec!["10.70.0.0/16".parse().unwrap()]),
        min_sync_period: Duration::from_millis(50),
        ..Config::default()
    };

    let client = cluster.client_as("system:kube-proxy", &["system:authenticated"]);
    let (ready, synced) = tokio::sync::oneshot::channel();
    let tasks = Tasks::new();
    tasks.spawn(async move {
        coracle_proxy::run(config, client, || ready.send(()).unwrap())
            .await
            .unwrap();
    });

    synced.await.unwrap();

    tasks
}

fn of(cluster: &Cluster, group: &str, plural: &str) -> Access {
    cluster
        .client()
        .resource(&Resource::builtin(group, "v1", plural))
        .namespace("default")
}

async fn create(cluster: &Cluster, group: &str, plural: &str, text: &str) {
    of(cluster, group, plural)
        .create(&object(text))
        .await
        .unwrap();
}

/// Runs in the node's namespace, with an API server.
fn on_node(rig: &Rig, body: impl AsyncFnOnce(&Cluster) + Send) {
    rig.node.inside(|| {
        // Several threads: the tests block on responses of servers in this runtime.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();

        runtime.block_on(async {
            let cluster = Cluster::start().await;
            body(&cluster).await;
            cluster.stop().await;
        });
    });
}

/// A plain HTTP request: the whole response, or empty.
fn http(at: &str, path: &str) -> String {
    use std::io::{Read, Write};

    let timeout = Duration::from_secs(30);
    let Ok(mut stream) = std::net::TcpStream::connect_timeout(&at.parse().unwrap(), timeout) else {
        return String::new();
    };
    stream.set_read_timeout(Some(timeout)).unwrap();

    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    )
    .unwrap();

    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();

    answer
}
