//! Admission webhooks.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_client::{Access, DeleteOptions, Error, Patch, Resource};
use coracle_testkit::objects::{config_map, object};
use coracle_testkit::{Cluster, Reply, Webhook};

/// What a test says of a webhook beside its address.
pub(super) struct Configured<'a> {
    pub(super) name: &'a str,
    pub(super) webhook: &'a Webhook,
    pub(super) path: &'a str,
    /// Members of the webhook, in YAML's flow style.
    pub(super) settings: &'a str,
}

pub(super) const CONFIG_MAPS: &str =
    "rules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]";

pub(super) fn configurations(cluster: &Cluster, kind: &str) -> Access {
    let resource = Resource::builtin(
        "admissionregistration.k8s.io",
        "v1",
        &format!("{}webhookconfigurations", kind.to_lowercase()),
    );
    cluster.client().resource(&resource)
}

/// Creates a configuration with one webhook; `kind` is `Mutating` or `Validating`.
pub(super) async fn configure(cluster: &Cluster, kind: &str, of: &Configured<'_>) {
    let Configured {
        name,
        webhook,
        path,
        settings,
    } = of;
    let (url, ca) = (webhook.url(path), webhook.ca_bundle());

    let mut rules = CONFIG_MAPS;
    if settings.contains("rules:") {
        rules = "sideEffects: None";
    }
    let side_effects = match settings.contains("sideEffects:") || rules.contains("sideEffects:") {
        true => "",
        false => "sideEffects: None,",
    };
    let configuration = object(&format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: {kind}WebhookConfiguration
metadata: {{name: {name}}}
webhooks:
- {{name: {name}.example.com, admissionReviewVersions: [v1], {side_effects}
    clientConfig: {{url: '{url}', caBundle: {ca}}}, {rules}, {settings}}}
"
    ));
    let made = configurations(cluster, kind).create(&configuration).await;
    made.unwrap();
}

pub(super) fn text<'v>(tree: &'v Value, path: &[&str]) -> &'v str {
    tree.at(path).and_then(Value::as_str).unwrap_or_default()
}

/// The answer to a review with these members of its response.
fn respond(review: &Value, response: &str) -> Value {
    let mut members = match json::parse(response.as_bytes()).unwrap() {
        Value::Object(members) => members,
        other => panic!("{other:?}"),
    };
    if !members.contains_key("uid") {
        members.insert("uid", text(review, &["request", "uid"]));
    }
    let mut answer = Map::new();
    answer.insert("apiVersion", "admission.k8s.io/v1");
    answer.insert("kind", "AdmissionReview");
    answer.insert("response", Value::Object(members));
    Value::Object(answer)
}

pub(super) fn allow(review: &Value) -> Reply {
    Reply::Json(respond(review, r#"{"allowed":true}"#))
}

pub(super) fn patch(review: &Value, operations: &str) -> Reply {
    let patch = STANDARD.encode(operations);
    Reply::Json(respond(
        review,
        &format!(r#"{{"allowed":true,"patchType":"JSONPatch","patch":"{patch}"}}"#),
    ))
}

pub(super) fn maps(cluster: &Cluster) -> Access {
    let resource = Resource::builtin("", "v1", "configmaps");
    cluster.client().resource(&resource).namespace("default")
}

pub(super) fn refused(error: &Error) -> (u16, String) {
    match error {
        Error::Refused(status) => (status.code, status.message.clone()),
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutating_webhook_sees_the_request_and_changes_the_object() {
    let webhook = Webhook::start(|_, review| {
        patch(
            review,
            r#"[{"op":"add","path":"/data/added","value":"yes"}]"#,
        )
    })
    .await;
    let cluster = Cluster::start().await;
    let of = Configured {
        name: "adds",
        webhook: &webhook,
        path: "/mutate",
        settings: "timeoutSeconds: 5",
    };
    configure(&cluster, "Mutating", &of).await;

    let made = maps(&cluster).create(&config_map("a", "1")).await.unwrap();
    assert_eq!(text(&made, &["data", "added"]), "yes");
    assert_eq!(text(&made, &["data", "k"]), "1");

    let (path, review) = webhook.take_requests().swap_remove(0);
    assert_eq!(path, "/mutate?timeout=5s");
    let request = review.get("request").unwrap();
    let shown = |name: &str| json::to_string(request.get(name).unwrap());
    assert_eq!(
        shown("kind"),
        r#"{"group":"","kind":"ConfigMap","version":"v1"}"#
    );
    assert_eq!(
        shown("requestResource"),
        r#"{"group":"","resource":"configmaps","version":"v1"}"#
    );
    assert_eq!(shown("operation"), r#""CREATE""#);
    assert_eq!(
        (shown("name"), shown("namespace")),
        (r#""a""#.into(), r#""default""#.into())
    );
    assert_eq!(
        (shown("oldObject"), shown("dryRun")),
        ("null".into(), "false".into())
    );
    assert_eq!(text(request, &["options", "kind"]), "CreateOptions");
    assert_eq!(text(request, &["userInfo", "username"]), "kubernetes-admin");
    assert_eq!(text(request, &["object", "metadata", "name"]), "a");

    // It sees deletes, and dry runs, because it has no side effects.
    maps(&cluster)
        .dry_run()
        .create(&config_map("b", "1"))
        .await
        .unwrap();
    assert!(maps(&cluster).get("b").await.is_err());
    let (_, review) = webhook.take_requests().swap_remove(0);
    assert_eq!(
        review.at(&["request", "dryRun"]).unwrap().as_bool(),
        Some(true)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validating_webhooks_are_asked_together_and_any_of_them_refuses() {
    let slow = Webhook::start(|_, review| {
        std::thread::sleep(Duration::from_millis(300));
        allow(review)
    })
    .await;
    let refuses = Webhook::start(|_, review| {
        Reply::Json(respond(
            review,
            r#"{"allowed":false,"status":{"code":418,"message":"a teapot","reason":"Teapot"},"warnings":["careful"]}"#,
        ))
    })
    .await;
    let cluster = Cluster::start().await;
    for (name, webhook) in [("slow-1", &slow), ("slow-2", &slow)] {
        let of = Configured {
            name,
            webhook,
            path: "/",
            settings: "failurePolicy: Fail",
        };
        configure(&cluster, "Validating", &of).await;
    }
    maps(&cluster).create(&config_map("a", "1")).await.unwrap();
    assert_eq!(slow.calls(), 2);

    let of = Configured {
        name: "refuses",
        webhook: &refuses,
        path: "/",
        settings: "failurePolicy: Ignore",
    };
    configure(&cluster, "Validating", &of).await;
    let error = maps(&cluster)
        .create(&config_map("b", "1"))
        .await
        .unwrap_err();
    assert_eq!(
        refused(&error),
        (
            418,
            "admission webhook \"refuses.example.com\" denied the request: a teapot".to_owned()
        )
    );

    let error = maps(&cluster).delete("a", &DeleteOptions::default()).await;
    assert_eq!(refused(&error.unwrap_err()).0, 418, "deletes are seen");
    let (_, review) = refuses.take_requests().pop().unwrap();
    assert_eq!(text(&review, &["request", "operation"]), "DELETE");
    assert_eq!(
        json::to_string(review.at(&["request", "object"]).unwrap()),
        "null"
    );
    assert_eq!(
        text(&review, &["request", "oldObject", "metadata", "name"]),
        "a"
    );

    // Configurations are never seen, so that they can be deleted.
    let everything = Configured {
        name: "everything",
        webhook: &refuses,
        path: "/",
        settings: "rules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*']}]",
    };
    configure(&cluster, "Validating", &everything).await;
    let none = DeleteOptions::default();
    for name in ["everything", "refuses"] {
        configurations(&cluster, "Validating")
            .delete(name, &none)
            .await
            .unwrap();
    }
    maps(&cluster).delete("a", &none).await.unwrap();
}

/// Creates a ConfigMap through a mutating webhook that answers so; the refusal, or the object.
async fn through(
    settings: &str,
    handler: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
) -> Result<Value, String> {
    let webhook = Webhook::start(handler).await;
    let cluster = Cluster::start().await;

    let of = Configured {
        name: "bad",
        webhook: &webhook,
        path: "/x",
        settings,
    };
    configure(&cluster, "Mutating", &of).await;
    let made = maps(&cluster).create(&config_map("a", "1")).await;
    made.map_err(|error| {
        let (code, message) = refused(&error);
        format!(
            "{code} {}",
            message.replace(&webhook.url(""), "https://URL")
        )
    })
}

const FAIL: &str = "timeoutSeconds: 1, failurePolicy: Fail";
const CALLING: &str = "500 Internal error occurred: failed calling webhook \"bad.example.com\": ";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_fails_refuses_the_request_or_is_ignored() {
    let check = async |reply: fn(&str, &Value) -> Reply, expected: &str| {
        let found = through(FAIL, reply).await.unwrap_err();
        assert_eq!(found, format!("{CALLING}{expected}"));
        through("timeoutSeconds: 1, failurePolicy: Ignore", reply)
            .await
            .unwrap();
    };

    check(
        |_, _| Reply::HangUp,
        "failed to call webhook: Post \"https://URL/x?timeout=1s\": EOF",
    )
    .await;
    check(
        |_, _| Reply::Silence,
        "failed to call webhook: Post \"https://URL/x?timeout=1s\": context deadline exceeded",
    )
    .await;
    check(
        |_, _| Reply::Trickle,
        "failed to call webhook: Post \"https://URL/x?timeout=1s\": context deadline exceeded",
    )
    .await;
    check(
        |_, _| Reply::Text(404, vec![], "404 page not found\n".to_owned()),
        "failed to call webhook: the server could not find the requested resource",
    )
    .await;
    check(
        |_, _| {
            let elsewhere = vec![("location", "https://127.0.0.1:1/".to_owned())];
            Reply::Text(302, elsewhere, String::new())
        },
        "failed to call webhook: the server responded with the status code 302 but did not return more information",
    )
    .await;
    check(
        |_, review| Reply::Json(respond(review, r#"{"allowed":true,"patch":"W10="}"#)),
        "received invalid webhook response: webhook returned response.patch but not response.patchType",
    )
    .await;
    check(
        |_, review| patch(review, "{"),
        "received undecodable patch in webhook response: unexpected end of JSON input",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn attacks_of_a_webhook_are_refused() {
    let of_another = through(FAIL, |_, review| {
        Reply::Json(respond(review, r#"{"allowed":true,"uid":"another"}"#))
    });
    let of_another = of_another.await.unwrap_err();
    assert!(
        of_another.starts_with(&format!(
            "{CALLING}received invalid webhook response: expected response.uid=\""
        )) && of_another.ends_with("\", got \"another\""),
        "{of_another}"
    );

    let began = tokio::time::Instant::now();
    let long = through("timeoutSeconds: 30, failurePolicy: Fail", |_, _| {
        Reply::Long(1 << 30)
    });
    let long = long.await.unwrap_err();
    assert!(
        long.starts_with(&format!(
            "{CALLING}failed to call webhook: the response is larger than "
        )),
        "{long}"
    );
    assert!(
        began.elapsed() < Duration::from_secs(60),
        "it is not read to its end"
    );

    // What the server sets, a webhook does not change; where the object is, it must not.
    let sets = r#"[{"op":"add","path":"/metadata/uid","value":"mine"},
        {"op":"add","path":"/metadata/deletionTimestamp","value":"2020-01-01T00:00:00Z"},
        {"op":"add","path":"/metadata/creationTimestamp","value":"2020-01-01T00:00:00Z"}]"#;
    let made = through(FAIL, move |_, review| patch(review, sets))
        .await
        .unwrap();
    assert_ne!(made.meta().uid(), "mine");
    assert!(!made.meta().is_being_deleted());
    assert_ne!(
        text(&made, &["metadata", "creationTimestamp"]),
        "2020-01-01T00:00:00Z"
    );

    let moves = r#"[{"op":"replace","path":"/metadata/namespace","value":"kube-system"}]"#;
    assert_eq!(
        through(FAIL, move |_, review| patch(review, moves))
            .await
            .unwrap_err(),
        "400 the namespace of the provided object does not match the namespace sent on the request"
    );

    let another_kind = r#"[{"op":"replace","path":"/kind","value":"Secret"}]"#;
    let refusal = through(FAIL, move |_, review| patch(review, another_kind)).await;
    assert!(
        refusal
            .unwrap_err()
            .starts_with("500 Internal error occurred: no kind \"Secret\"")
    );

    let wrong_type = r#"[{"op":"add","path":"/data/n","value":5}]"#;
    let refusal = through(FAIL, move |_, review| patch(review, wrong_type)).await;
    assert!(
        refusal
            .unwrap_err()
            .starts_with("500 Internal error occurred: ")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_is_called_again_if_one_after_it_changes_the_object() {
    let first =
        Webhook::start(
            |_, review| match text(review, &["request", "object", "data", "b"]) {
                "" => allow(review),
                _ => patch(review, r#"[{"op":"add","path":"/data/a","value":"seen"}]"#),
            },
        )
        .await;
    let once = Webhook::start(|_, review| allow(review)).await;
    let later =
        Webhook::start(|_, review| patch(review, r#"[{"op":"add","path":"/data/b","value":"x"}]"#))
            .await;
    let cluster = Cluster::start().await;
    for (name, webhook, settings) in [
        ("a-again", &first, "reinvocationPolicy: IfNeeded"),
        ("b-once", &once, "reinvocationPolicy: Never"),
        ("c-changes", &later, "reinvocationPolicy: Never"),
    ] {
        let of = Configured {
            name,
            webhook,
            path: "/",
            settings,
        };
        configure(&cluster, "Mutating", &of).await;
    }

    let made = maps(&cluster).create(&config_map("m", "1")).await.unwrap();
    assert_eq!(text(&made, &["data", "a"]), "seen");
    assert_eq!((first.calls(), once.calls(), later.calls()), (2, 1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn selectors_and_conditions_choose_what_a_webhook_sees() {
    let webhook = Webhook::start(|_, review| allow(review)).await;
    let cluster = Cluster::start().await;
    let condition = r#"matchConditions: [{name: c, expression: 'object.data.k == "seen"'}]"#;
    let of = Configured {
        name: "chooses",
        webhook: &webhook,
        path: "/",
        settings: &format!(
            "objectSelector: {{matchLabels: {{see: me}}}}, {condition}, matchPolicy: Exact"
        ),
    };
    configure(&cluster, "Validating", &of).await;

    let make = async |name: &str, label: &str, entry: &str, expected: usize| {
        let mut map = config_map(name, entry);
        map.meta_mut().set_label("see", Some(label));
        maps(&cluster).create(&map).await.unwrap();
        assert_eq!(webhook.calls(), expected, "{name}");
    };
    make("a", "not-me", "seen", 0).await;
    make("b", "me", "other", 0).await;
    make("c", "me", "seen", 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_with_side_effects_does_not_see_dry_runs() {
    let webhook = Webhook::start(|_, review| allow(review)).await;
    let cluster = Cluster::start().await;

    let of = Configured {
        name: "effects",
        webhook: &webhook,
        path: "/",
        settings: "timeoutSeconds: 3",
    };
    configure(&cluster, "Validating", &of).await;
    let some = br#"[{"op":"replace","path":"/webhooks/0/sideEffects","value":"Some"}]"#;
    let refused_change = configurations(&cluster, "Validating")
        .patch("effects", &Patch::Json(json::parse(some).unwrap()))
        .await;
    // In v1, only webhooks without side effects on dry runs are valid.
    assert_eq!(refused(&refused_change.unwrap_err()).0, 422);
    maps(&cluster)
        .dry_run()
        .create(&config_map("a", "1"))
        .await
        .unwrap();
    assert_eq!(webhook.calls(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_are_kept_and_an_untrusted_webhook_is_not_called() {
    let webhook = Webhook::start(|_, review| allow(review)).await;
    let other = Webhook::start(|_, review| allow(review)).await;
    let cluster = Cluster::start().await;
    let of = Configured {
        name: "kept",
        webhook: &webhook,
        path: "/",
        settings: "failurePolicy: Fail",
    };
    configure(&cluster, "Validating", &of).await;
    for number in 0..20 {
        let map = config_map(&format!("m{number}"), "1");
        maps(&cluster).create(&map).await.unwrap();
    }
    assert_eq!((webhook.calls(), webhook.connections()), (20, 1));

    let ca = format!(
        r#"[{{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"{}"}}]"#,
        other.ca_bundle()
    );
    let ca = Patch::Json(json::parse(ca.as_bytes()).unwrap());
    configurations(&cluster, "Validating")
        .patch("kept", &ca)
        .await
        .unwrap();
    let error = maps(&cluster)
        .create(&config_map("n", "1"))
        .await
        .unwrap_err();
    let (code, message) = refused(&error);
    assert_eq!(code, 500);
    assert!(
        message.ends_with(
            "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        ),
        "{message}"
    );
    assert_eq!(webhook.calls(), 20);
}
