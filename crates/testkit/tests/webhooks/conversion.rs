//! Conversion webhooks of definitions.
//!
//! `Boat`s have `spec.oars` in v1 and `spec.paddles` in v2; the webhook moves the number.

use coracle_api::codec::json;
use coracle_api::{Map, Value};
use coracle_client::{Access, DeleteOptions, Error, ListOptions, Patch, Resource, WatchEvent};
use coracle_testkit::objects::object;
use coracle_testkit::{Cluster, Reply, Webhook, eventually};

fn definition(webhook: &Webhook, path: &str, storage: &str) -> Value {
    let (url, ca) = (webhook.url(path), webhook.ca_bundle());
    let is_storage = |version: &str| version == storage;
    object(&format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: boats.a.example}}
spec:
  group: a.example
  scope: Namespaced
  names: {{plural: boats, kind: Boat}}
  conversion:
    strategy: Webhook
    webhook: {{conversionReviewVersions: [v1, v1beta1], clientConfig: {{url: '{url}', caBundle: {ca}}}}}
  versions:
  - name: v1
    served: true
    storage: {}
    selectableFields: [{{jsonPath: .spec.oars}}]
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{
      oars: {{type: string}}, name: {{type: string}}}}}}}}}}}}
  - name: v2
    served: true
    storage: {}
    selectableFields: [{{jsonPath: .spec.paddles}}]
    schema: {{openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{
      paddles: {{type: string}}, name: {{type: string}}, color: {{type: string, default: red}}}}}}}}}}}}
",
        is_storage("v1"),
        is_storage("v2"),
    ))
}

/// Moves the number of a boat to where a version has it.
fn convert(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    let fields = object.as_object_mut().unwrap();
    fields.insert("apiVersion", to);
    let spec = fields.object_mut("spec");
    let (from, into) = match to {
        "a.example/v1" => ("paddles", "oars"),
        _ => ("oars", "paddles"),
    };
    if let Some(number) = spec.remove(from) {
        spec.insert(into, number);
    }
    // What the wanted version does not have is dropped.
    spec.insert("unknown", "x");
    object
}

/// The answer to a review, after `change` of each converted object.
fn reply(review: &Value, change: impl Fn(&mut Value)) -> Value {
    let request = review.get("request").unwrap();
    let to = request.get("desiredAPIVersion").unwrap().as_str().unwrap();
    let objects = request.get("objects").unwrap().as_array().unwrap();
    let converted: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut converted = convert(object, to);
            change(&mut converted);
            converted
        })
        .collect();

    let mut result = Map::new();
    result.insert("status", "Success");
    let mut response = Map::new();
    response.insert("uid", request.get("uid").unwrap().clone());
    response.insert("result", Value::Object(result));
    response.insert("convertedObjects", converted);
    let mut review = review.as_object().unwrap().clone();
    review.insert("response", Value::Object(response));
    Value::Object(review)
}

fn boats(cluster: &Cluster, version: &str) -> Access {
    let resource = Resource::new("a.example", version, "boats", "Boat", true);
    cluster.client().resource(&resource).namespace("default")
}

async fn define(cluster: &Cluster, definition: &Value) {
    let of = Resource::new(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
    );
    cluster
        .client()
        .resource(&of)
        .create(definition)
        .await
        .unwrap();
    eventually("boats are served", async || {
        boats(cluster, "v1")
            .list(&ListOptions::default())
            .await
            .ok()
    })
    .await;
}

/// Changes the definition; until the server has it.
async fn redefine(cluster: &Cluster, patch: &str) {
    let of = Resource::new(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
    );
    let patch = Patch::Json(json::parse(patch.as_bytes()).unwrap());
    let definitions = cluster.client().resource(&of);
    definitions.patch("boats.a.example", &patch).await.unwrap();
}

fn boat(version: &str, name: &str, field: &str, number: &str) -> Value {
    object(&format!(
        "apiVersion: a.example/{version}\nkind: Boat\nmetadata: {{name: {name}}}\nspec: {{{field}: '{number}'}}\n"
    ))
}

fn spec(object: &Value) -> String {
    json::to_string(object.get("spec").unwrap())
}

fn message(error: &Error) -> String {
    match error {
        Error::Refused(status) => status.message.clone(),
        other => other.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_version_shows_what_another_one_wrote() {
    let webhook = Webhook::start(|_, review| Reply::Json(reply(review, |_| {}))).await;
    let cluster = Cluster::start().await;
    define(&cluster, &definition(&webhook, "/convert", "v1")).await;
    let (v1, v2) = (boats(&cluster, "v1"), boats(&cluster, "v2"));

    let written = v2
        .create(&boat("v2", "skiff", "paddles", "2"))
        .await
        .unwrap();
    assert_eq!(
        spec(&written),
        r#"{"paddles":"2"}"#,
        "the answer shows what the store has"
    );
    let (path, review) = webhook.take_requests().swap_remove(0);
    assert_eq!(path, "/convert?timeout=30s");
    assert_eq!(
        review
            .at(&["request", "desiredAPIVersion"])
            .unwrap()
            .as_str(),
        Some("a.example/v1")
    );

    assert_eq!(spec(&v1.get("skiff").await.unwrap()), r#"{"oars":"2"}"#);
    assert_eq!(spec(&v2.get("skiff").await.unwrap()), r#"{"paddles":"2"}"#);

    v1.create(&boat("v1", "raft", "oars", "0")).await.unwrap();
    let watched = ListOptions {
        resource_version: written.meta().resource_version().into(),
        field_selector: "spec.paddles=3".into(),
        ..ListOptions::default()
    };
    let mut watch = v2.watch(&watched).await.unwrap();

    let calls = webhook.calls();
    let all = v2.list(&ListOptions::default()).await.unwrap();
    let specs: Vec<String> = all.items.iter().map(spec).collect();
    assert_eq!(specs, [r#"{"paddles":"0"}"#, r#"{"paddles":"2"}"#]);
    v2.list(&ListOptions::default()).await.unwrap();
    assert_eq!(webhook.calls(), calls + 1, "an object is converted once");

    let selected = ListOptions {
        field_selector: "spec.paddles=2".into(),
        ..ListOptions::default()
    };
    let found = v2.list(&selected).await.unwrap().items;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].meta().name(), "skiff");

    let patch = Patch::Merge(json::parse(br#"{"spec":{"paddles":"3"}}"#).unwrap());
    v2.patch("raft", &patch).await.unwrap();
    assert_eq!(spec(&v1.get("raft").await.unwrap()), r#"{"oars":"3"}"#);
    match watch.next().await.unwrap().unwrap() {
        WatchEvent::Added(object) => assert_eq!(spec(&object), r#"{"paddles":"3"}"#),
        other => panic!("{other:?}"),
    }

    v2.delete("raft", &DeleteOptions::default()).await.unwrap();
    match watch.next().await.unwrap().unwrap() {
        WatchEvent::Deleted(object) => assert_eq!(spec(&object), r#"{"paddles":"3"}"#),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fields_are_owned_across_versions() {
    let webhook = Webhook::start(|_, review| Reply::Json(reply(review, |_| {}))).await;
    let cluster = Cluster::start().await;
    define(&cluster, &definition(&webhook, "/", "v1")).await;
    let (v1, v2) = (boats(&cluster, "v1"), boats(&cluster, "v2"));

    let apply = |version: &str, manager: &str, field: &str, number: &str| Patch::Apply {
        object: boat(version, "skiff", field, number),
        manager: manager.to_owned(),
        force: false,
    };
    let first = apply("v1", "one", "oars", "2");
    v1.patch("skiff", &first).await.unwrap();
    let refused = v2
        .patch("skiff", &apply("v2", "other", "paddles", "3"))
        .await;
    let refused = message(&refused.unwrap_err());
    assert_eq!(
        refused, r#"Apply failed with 1 conflict: conflict with "one": .spec.oars"#,
        "in the version that the owner used"
    );

    let shared = apply("v2", "other", "paddles", "2");
    v2.patch("skiff", &shared).await.unwrap();
    let given_up = apply("v1", "one", "name", "x");
    v1.patch("skiff", &given_up).await.unwrap();
    let now = v2.get("skiff").await.unwrap();
    assert_eq!(
        spec(&now),
        r#"{"name":"x","paddles":"2"}"#,
        "the other owns it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stored_version_is_migrated_by_an_update_that_changes_nothing() {
    let webhook = Webhook::start(|_, review| Reply::Json(reply(review, |_| {}))).await;
    let cluster = Cluster::start().await;
    define(&cluster, &definition(&webhook, "/", "v1")).await;
    let (v1, v2) = (boats(&cluster, "v1"), boats(&cluster, "v2"));
    v1.create(&boat("v1", "skiff", "oars", "2")).await.unwrap();
    let before = v1.get("skiff").await.unwrap();

    let swap = r#"[{"op":"replace","path":"/spec/versions/0/storage","value":false},
        {"op":"replace","path":"/spec/versions/1/storage","value":true}]"#;
    redefine(&cluster, swap).await;
    let of = Resource::new(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
    );
    let definitions = cluster.client().resource(&of);
    let stored = definitions.get("boats.a.example").await.unwrap();
    let stored = stored.at(&["status", "storedVersions"]).unwrap();
    assert_eq!(json::to_string(stored), r#"["v1","v2"]"#);

    eventually("both versions show the object", async || {
        let one = v1.get("skiff").await.ok()?;
        let other = v2.get("skiff").await.ok()?;
        (spec(&one) == r#"{"oars":"2"}"# && spec(&other) == r#"{"paddles":"2"}"#).then_some(())
    })
    .await;

    let same = v1.get("skiff").await.unwrap();
    assert_eq!(
        same.meta().resource_version(),
        before.meta().resource_version()
    );
    let migrated = v1.update(&same).await.unwrap();
    assert_ne!(
        migrated.meta().resource_version(),
        before.meta().resource_version(),
        "it is written in the storage version"
    );
    let again = v1.update(&migrated).await.unwrap();
    assert_eq!(
        again.meta().resource_version(),
        migrated.meta().resource_version(),
        "it is in the storage version already"
    );
    assert_eq!(spec(&v1.get("skiff").await.unwrap()), r#"{"oars":"2"}"#);
}

/// What reading an object through a webhook fails with.
async fn refusal(handler: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> String {
    let webhook = Webhook::start(handler).await;
    let cluster = Cluster::start().await;
    define(&cluster, &definition(&webhook, "/convert", "v1")).await;
    let made = boats(&cluster, "v1")
        .create(&boat("v1", "skiff", "oars", "2"))
        .await;
    made.unwrap();

    let failed = boats(&cluster, "v2").get("skiff").await.unwrap_err();
    let listed = boats(&cluster, "v2").list(&ListOptions::default()).await;
    assert!(message(&listed.unwrap_err()).starts_with(FAILED));
    message(&failed).replace(&webhook.url(""), "https://URL")
}

const FAILED: &str = "conversion webhook for a.example/v1, Kind=Boat";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_loses_or_renames_objects_is_refused() {
    let renamed = refusal(|_, review| {
        Reply::Json(reply(review, |object| {
            object.meta_mut().members().insert("name", "other");
        }))
    });
    assert_eq!(
        renamed.await,
        format!("{FAILED} returned invalid object: must have the same name: skiff != other")
    );

    let lost = refusal(|_, review| {
        let mut answer = reply(review, |_| {});
        let response = answer.as_object_mut().unwrap().object_mut("response");
        response.insert("convertedObjects", Vec::<Value>::new());
        Reply::Json(answer)
    });
    assert_eq!(
        lost.await,
        format!("{FAILED} returned 0 objects, expected 1")
    );

    let of_another = refusal(|_, review| {
        let mut answer = reply(review, |_| {});
        let response = answer.as_object_mut().unwrap().object_mut("response");
        response.insert("uid", "another");
        Reply::Json(answer)
    });
    let of_another = of_another.await;
    assert!(
        of_another.starts_with(&format!("{FAILED} failed: expected response.uid=\""))
            && of_another.ends_with("\", got \"another\""),
        "{of_another}"
    );
}

/// What reading an object fails with where a webhook changes each object so.
async fn refusal_of(change: fn(&mut Value)) -> String {
    refusal(move |_, review| Reply::Json(reply(review, change))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_moves_objects_or_changes_their_kind_is_refused() {
    let moved = refusal_of(|object| {
        let mut meta = object.meta_mut();
        meta.members().insert("namespace", "kube-system");
    });
    assert_eq!(
        moved.await,
        format!(
            "{FAILED} returned invalid object: must have the same namespace: default != kube-system"
        )
    );

    let of_another = refusal_of(|object| {
        object.meta_mut().members().insert("uid", "mine");
    });
    let of_another = of_another.await;
    assert!(
        of_another.starts_with(&format!(
            "{FAILED} returned invalid object: must have the same UID: "
        )) && of_another.ends_with(" != mine"),
        "{of_another}"
    );

    let kind = refusal_of(|object| {
        object.as_object_mut().unwrap().insert("kind", "Car");
    });
    assert_eq!(
        kind.await,
        format!(
            "{FAILED} returned invalid object at index 0: invalid kind (expected Boat, received Car)"
        )
    );

    let version = refusal_of(|object| {
        let members = object.as_object_mut().unwrap();
        members.insert("apiVersion", "a.example/v3");
    });
    assert_eq!(
        version.await,
        format!(
            "{FAILED} returned invalid object at index 0: invalid groupVersion (expected a.example/v2, received a.example/v3)"
        )
    );

    let without = refusal_of(|object| {
        object.as_object_mut().unwrap().remove("metadata");
    });
    let without = without.await;
    assert!(
        without.starts_with(&format!(
            "{FAILED} returned invalid object: must have the same name"
        )),
        "{without}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_metadata_a_webhook_changes_labels_and_annotations_alone() {
    let webhook = Webhook::start(|_, review| {
        Reply::Json(reply(review, |object| {
            let mut meta = object.meta_mut();
            let members = meta.members();
            members.insert("creationTimestamp", "2020-01-01T00:00:00Z");
            members.insert("resourceVersion", "7");
            members.insert("finalizers", vec![Value::string("example.com/stays")]);
            members.object_mut("labels").insert("seen", "yes");
        }))
    })
    .await;
    let cluster = Cluster::start().await;
    define(&cluster, &definition(&webhook, "/", "v1")).await;
    let made = boats(&cluster, "v1")
        .create(&boat("v1", "skiff", "oars", "2"))
        .await
        .unwrap();

    let shown = boats(&cluster, "v2").get("skiff").await.unwrap();
    let field = |object: &Value, name: &str| object.at(&["metadata", name]).cloned();
    for name in ["creationTimestamp", "resourceVersion", "finalizers", "uid"] {
        assert_eq!(field(&shown, name), field(&made, name), "{name}");
    }
    let labels = field(&shown, "labels").unwrap();
    assert_eq!(json::to_string(&labels), r#"{"seen":"yes"}"#);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_object_is_lost_while_a_conversion_webhook_is_killed_and_replaced() {
    const COUNT: usize = 30;
    let converts = |_: &str, review: &Value| Reply::Json(reply(review, |_| {}));
    let mut webhook = Webhook::start(converts).await;
    let cluster = Cluster::start().await;
    define(&cluster, &definition(&webhook, "/", "v1")).await;
    for number in 0..COUNT {
        let made = boat("v1", &format!("boat-{number:02}"), "oars", "2");
        boats(&cluster, "v1").create(&made).await.unwrap();
    }

    // Reads and writes of the version that is not stored: all that was asked, or a refusal.
    let users = (0..4).map(|user| {
        let (v1, v2) = (boats(&cluster, "v1"), boats(&cluster, "v2"));
        async move {
            let (mut whole, mut failed) = (0, 0);
            for round in 0..10 {
                let name = format!("boat-{:02}", user * 7);
                let oars = (user * 100 + round).to_string();
                let patch = format!(r#"{{"spec":{{"paddles":"{oars}"}}}}"#);
                let patch = Patch::Merge(json::parse(patch.as_bytes()).unwrap());
                match v2.patch(&name, &patch).await {
                    Ok(changed) => {
                        assert_eq!(spec(&changed), format!(r#"{{"paddles":"{oars}"}}"#));
                        let stored = v1.get(&name).await.unwrap();
                        assert_eq!(spec(&stored), format!(r#"{{"oars":"{oars}"}}"#));
                    }
                    Err(error) => assert!(message(&error).starts_with("conversion webhook for")),
                }

                match v2.list(&ListOptions::default()).await {
                    Ok(list) => {
                        let names = list.items.iter().map(|boat| boat.meta().name());
                        let expected = (0..COUNT).map(|number| format!("boat-{number:02}"));
                        assert!(names.eq(expected));
                        let converted = |boat: &Value| boat.at(&["spec", "paddles"]).is_some();
                        assert!(list.items.iter().all(converted));
                        whole += 1;
                    }
                    Err(error) => {
                        assert!(message(&error).starts_with(FAILED));
                        failed += 1;
                    }
                }
            }
            (whole, failed)
        }
    });

    let using = futures_util::future::join_all(users);
    tokio::pin!(using);
    let all = loop {
        tokio::select! {
            all = &mut using => break all,
            () = async {
                webhook.replace(converts).await;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            } => {}
        }
    };
    let whole: usize = all.iter().map(|(whole, _)| whole).sum();
    assert!(whole > 0, "{all:?}");

    webhook.replace(converts).await;
    let left = boats(&cluster, "v2").list(&ListOptions::default()).await;
    assert_eq!(left.unwrap().items.len(), COUNT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_too_large_or_no_answers_are_refused() {
    let long = refusal(|_, _| Reply::Long(1 << 30)).await;
    assert!(
        long.starts_with(&format!("{FAILED} failed: the response is larger than ")),
        "{long}"
    );

    let moved = refusal(|_, _| {
        let location = ("location", "https://127.0.0.1:1/".to_owned());
        Reply::Text(307, vec![location], String::new())
    });
    assert_eq!(
        moved.await,
        format!(
            "{FAILED} failed: the server responded with the status code 307 but did not return more information"
        )
    );

    assert_eq!(
        refusal(|_, _| Reply::HangUp).await,
        format!("{FAILED} failed: Post \"https://URL/convert?timeout=30s\": EOF")
    );
    assert_eq!(
        refusal(|_, _| Reply::Text(500, vec![], "broken".to_owned())).await,
        format!(
            "{FAILED} failed: an error on the server (\"broken\") has prevented the request from succeeding"
        )
    );
}
