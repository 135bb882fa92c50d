//! Admission webhooks that fail, are replaced, or call back while requests come.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use coracle_api::Value;
use coracle_client::Resource;
use coracle_testkit::objects::{config_map, object};
use coracle_testkit::{Cluster, Reply, WEBHOOK_SERVICE, Webhook};

use super::admission::{
    CONFIG_MAPS, Configured, allow, configurations, configure, maps, patch, refused, text,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn failure_policies_hold_while_a_webhook_comes_and_goes() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let webhook = Webhook::start(|_, review| match CALLS.fetch_add(1, Ordering::SeqCst) % 3 {
        0 => Reply::HangUp,
        _ => patch(
            review,
            r#"[{"op":"add","path":"/data/seen","value":"yes"}]"#,
        ),
    })
    .await;
    let cluster = Cluster::start().await;
    let of = Configured {
        name: "strict",
        webhook: &webhook,
        path: "/",
        settings: "failurePolicy: Fail, timeoutSeconds: 10",
    };
    configure(&cluster, "Mutating", &of).await;

    let create = |number: usize| {
        let (maps, map) = (maps(&cluster), config_map(&format!("m{number}"), "1"));
        async move { maps.create(&map).await }
    };
    let made = futures_util::future::join_all((0..60).map(create)).await;
    let (mut created, mut failed) = (0, 0);
    for made in made {
        match made {
            Ok(object) => {
                assert_eq!(text(&object, &["data", "seen"]), "yes");
                created += 1;
            }
            Err(error) => {
                assert_eq!(refused(&error).0, 500);
                failed += 1;
            }
        }
    }
    assert!(
        created > 0 && failed > 0,
        "{created} created, {failed} refused"
    );
    assert_eq!(created + failed, 60);
}

/// Creates ConfigMaps while the webhook of a Service is killed and replaced, each time by one that
/// marks them; how many were marked, were not, and were refused.
async fn under_replacement(policy: &str) -> (usize, usize, usize) {
    let marks = |_: &str, review: &Value| {
        patch(
            review,
            r#"[{"op":"add","path":"/data/seen","value":"yes"}]"#,
        )
    };
    let mut webhook = Webhook::start(marks).await;
    let cluster = Cluster::start().await;
    let (port, ca) = (webhook.port(), webhook.ca_bundle());
    let services = Resource::builtin("", "v1", "services");
    let service = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: {WEBHOOK_SERVICE}}}\n\
         spec: {{type: ExternalName, externalName: localhost}}\n"
    );
    let in_default = cluster.client().resource(&services).namespace("default");
    in_default.create(&object(&service)).await.unwrap();
    let configuration = format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {{name: replaced}}
webhooks:
- {{name: replaced.example.com, admissionReviewVersions: [v1], sideEffects: None, {CONFIG_MAPS},
    failurePolicy: {policy}, timeoutSeconds: 10,
    clientConfig: {{caBundle: {ca}, service: {{namespace: default, name: {WEBHOOK_SERVICE}, port: {port}}}}}}}
"
    );
    let configured = configurations(&cluster, "Mutating");
    configured.create(&object(&configuration)).await.unwrap();

    let writers = (0..8).map(|writer| {
        let maps = maps(&cluster);
        async move {
            let mut counts = (0, 0, 0);
            for number in 0..40 {
                let map = config_map(&format!("m{writer}-{number}"), "1");
                match maps.create(&map).await {
                    Ok(made) if text(&made, &["data", "seen"]) == "yes" => counts.0 += 1,
                    Ok(_) => counts.1 += 1,
                    Err(error) => {
                        let (code, message) = refused(&error);
                        assert!(
                            code == 500 && message.contains("failed calling webhook \"replaced."),
                            "{code} {message}"
                        );
                        counts.2 += 1;
                    }
                }
            }
            counts
        }
    });

    let writing = futures_util::future::join_all(writers);
    tokio::pin!(writing);
    loop {
        tokio::select! {
            all = &mut writing => {
                return all.into_iter().fold((0, 0, 0), |sum, one| {
                    (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2)
                });
            }
            () = async {
                webhook.replace(marks).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            } => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn failure_policies_hold_while_the_webhook_of_a_service_is_replaced() {
    let (marked, unmarked, failed) = under_replacement("Fail").await;
    assert!(marked > 0 && unmarked == 0, "{marked} {unmarked} {failed}");

    let (marked, unmarked, failed) = under_replacement("Ignore").await;
    assert!(marked > 0 && failed == 0, "{marked} {unmarked} {failed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_webhook_that_calls_the_server_in_a_loop_ends_at_its_timeout() {
    static LEVELS: AtomicUsize = AtomicUsize::new(0);
    const DEEPEST: usize = 60;

    let cluster = Cluster::start().await;
    let (inner, handle) = (maps(&cluster), tokio::runtime::Handle::current());
    let webhook = Webhook::start(move |_, review| {
        let level = LEVELS.fetch_add(1, Ordering::SeqCst);
        let create = async {
            match level < DEEPEST {
                true => drop(
                    inner
                        .create(&config_map(&format!("level-{level}"), "1"))
                        .await,
                ),
                false => std::future::pending().await,
            }
        };
        let patience = Duration::from_secs(10);
        let ended = tokio::task::block_in_place(|| {
            handle.block_on(async { tokio::time::timeout(patience, create).await })
        });
        drop(ended);
        allow(review)
    })
    .await;
    let of = Configured {
        name: "loops",
        webhook: &webhook,
        path: "/",
        settings: "failurePolicy: Fail, timeoutSeconds: 3",
    };
    configure(&cluster, "Mutating", &of).await;

    let maps = maps(&cluster);
    let first = config_map("outer", "1");
    let outer = maps.create(&first);
    let reads = async {
        while LEVELS.load(Ordering::SeqCst) <= DEEPEST {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The server goes on while all levels wait.
        let read = maps.get("kube-root-ca.crt");
        drop(
            tokio::time::timeout(Duration::from_secs(2), read)
                .await
                .expect("an answer"),
        );
    };
    let (outer, ()) = tokio::join!(outer, reads);

    let (code, message) = refused(&outer.unwrap_err());
    assert!(
        code == 500 && message.ends_with("context deadline exceeded"),
        "{code} {message}"
    );
}
