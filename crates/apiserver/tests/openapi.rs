//! The documents of a server, compared with those of a real one: every type, every field, the whole
//! of every schema.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

#[expect(dead_code, reason = "who compares one file asks for no folder of them")]
#[path = "../../api/tests/api/recorded/mod.rs"]
mod recorded;

use std::collections::BTreeMap;

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Catalog, ServedApis};
use coracle_api::codec::json;
use coracle_api::time::Timestamp;
use coracle_apiserver::openapi::OpenApi;
use coracle_apiserver::request::Query;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;

struct Documents(OpenApi);

impl Documents {
    async fn get(&self, uri: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Bytes) {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }

        let (head, ()) = request.body(()).unwrap().into_parts();
        assert!(OpenApi::is_at(head.uri.path()));

        let query = Query::parse(head.uri.query().unwrap_or_default());
        let now = Timestamp::from_unix(1_700_000_000, 0);
        // Alpha and beta versions too.
        let catalog = Catalog::with_all(ServedApis::choose(|_| true), []);
        let nothing = Default::default();
        let answer = self.0.answer(&head, &query, &catalog, nothing, now).await;
        let (head, body) = answer.into_parts();

        (
            head.status,
            head.headers,
            body.collect().await.unwrap().to_bytes(),
        )
    }

    async fn json(&self, uri: &str) -> Value {
        let (status, _, body) = self.get(uri, &[]).await;
        assert_eq!(status, StatusCode::OK, "{uri}");
        json::parse(&body).unwrap()
    }

    /// Where each document of version 3 is, by its name.
    async fn index(&self) -> BTreeMap<String, String> {
        let index = self.json("/openapi/v3").await;
        let paths = index.get("paths").unwrap().as_object().unwrap();
        let url = |entry: &Value| {
            entry
                .get("serverRelativeURL")
                .unwrap()
                .as_str()
                .unwrap()
                .to_string()
        };

        paths
            .iter()
            .map(|(name, entry)| (name.to_string(), url(entry)))
            .collect()
    }
}

/// The facts of a type, by the name of its definition.
fn facts(text: &[u8]) -> BTreeMap<String, Value> {
    let facts = json::parse(text).unwrap();
    let types = facts.get("types").unwrap().as_object().unwrap();
    types
        .values()
        .filter_map(|of| {
            let message = of.get("message")?.as_str()?.strip_prefix("k8s.io")?;
            Some((format!("io.k8s{}", message.replace('_', "-")), of.clone()))
        })
        .collect()
}

#[tokio::test]
async fn every_type_and_field_is_described_as_the_real_server_describes_it() {
    let facts = facts(&std::fs::read(recorded::path("facts/api-facts.json")).unwrap());
    let documents = Documents(OpenApi::default());
    let whole = documents.json("/openapi/v2").await;

    let mut v3: BTreeMap<String, Value> = BTreeMap::new();
    for url in documents.index().await.values() {
        let document = documents.json(url).await;
        let schemas = document
            .at(&["components", "schemas"])
            .and_then(Value::as_object);
        for (name, schema) in schemas.into_iter().flat_map(coracle_api::Map::iter) {
            v3.insert(name.to_string(), schema.clone());
        }
    }

    let v2 = whole.get("definitions").unwrap().as_object().unwrap();
    let names: Vec<&str> = v3.keys().map(String::as_str).collect();
    assert_eq!(
        v2.keys().collect::<Vec<_>>(),
        names,
        "both versions know the same types"
    );

    for resource in BUILTIN.resources() {
        let kind = BUILTIN
            .kind(&resource.group, &resource.version, &resource.kind)
            .unwrap();
        let name = BUILTIN.root(kind).definition_name();
        assert!(v3.contains_key(&name), "{name}");
    }

    let mut fields = 0;
    for (name, schema) in &v3 {
        let Some(of) = facts.get(name) else {
            assert_eq!(name, "io.k8s.apimachinery.pkg.version.Info");
            continue;
        };
        if of.get("scalar").is_none() {
            fields += compare_type(name, of, schema, v2.get(name).unwrap());
        }
    }

    assert!(
        names.len() > 580 && fields > 2400,
        "{} types, {fields} fields",
        names.len()
    );
}

/// Compares a type in both versions, and returns how many fields it has.
fn compare_type(name: &str, of: &Value, v3: &Value, v2: &Value) -> usize {
    let fields = of
        .get("fields")
        .and_then(Value::as_array)
        .unwrap_or_default();

    assert_eq!(
        of.get("map-type"),
        v3.get("x-kubernetes-map-type"),
        "{name}"
    );

    assert_eq!(of.get("unions"), v3.get("x-kubernetes-unions"), "{name}");

    let field_name = |field: &Value| field.get("name").unwrap().as_str().unwrap().to_string();
    let mut required: Vec<String> = fields
        .iter()
        .filter(|field| field.get("required").is_some())
        .map(field_name)
        .collect();
    required.sort();

    for schema in [v3, v2] {
        let properties = schema.get("properties").and_then(Value::as_object);
        let found: Vec<&str> = properties
            .into_iter()
            .flat_map(coracle_api::Map::keys)
            .collect();

        assert_eq!(
            found,
            fields.iter().map(field_name).collect::<Vec<_>>(),
            "{name}"
        );

        let listed = schema
            .get("required")
            .and_then(Value::as_array)
            .unwrap_or_default();
        let mut listed: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
        listed.sort_unstable();
        assert_eq!(listed, required, "{name}");
    }

    for field in fields {
        let place = format!("{name}.{}", field_name(field));
        let at = |schema: &Value| {
            schema
                .at(&["properties", &field_name(field)])
                .unwrap()
                .clone()
        };

        compare_field(&place, field, &at(v3), "#/components/schemas/");
        compare_field(&place, field, &at(v2), "#/definitions/");

        let default = at(v3)
            .get("default")
            .cloned()
            .filter(|default| *default != Value::object());
        assert_eq!(default.as_ref(), field.get("default"), "{place}");

        assert!(at(v2).get("default").is_none(), "{place}");
    }

    fields.len()
}

fn compare_field(place: &str, fact: &Value, schema: &Value, references: &str) {
    let same = |of: &str, mark: &str| {
        assert_eq!(
            fact.get(of),
            schema.get(&format!("x-kubernetes-{mark}")),
            "{place}: {mark}"
        );
    };

    same("list", "list-type");
    same("keys", "list-map-keys");
    same("map", "map-type");
    same("patch", "patch-strategy");

    same("patchKey", "patch-merge-key");
    compare_shape(
        place,
        fact.get("type").unwrap().as_str().unwrap(),
        schema,
        references,
        fact.get("enum"),
    );
}

/// Compares the form of a value with what the facts call it: `[]core.v1.Container`,
/// `integer:int32`.
fn compare_shape(
    place: &str,
    fact: &str,
    schema: &Value,
    references: &str,
    choices: Option<&Value>,
) {
    for (mark, name, below) in [
        ("[]", "array", "items"),
        ("map[string]", "object", "additionalProperties"),
    ] {
        if let Some(inner) = fact.strip_prefix(mark) {
            assert_eq!(
                schema.get("type").and_then(Value::as_str),
                Some(name),
                "{place}"
            );

            return compare_shape(
                place,
                inner,
                schema.get(below).unwrap(),
                references,
                choices,
            );
        }
    }

    assert_eq!(schema.get("enum"), choices, "{place}");

    let alone = schema.get("allOf").and_then(|all| all.as_array()?.first());
    if let Some(reference) = alone.unwrap_or(schema).get("$ref").and_then(Value::as_str) {
        let last = fact.rsplit('.').next().unwrap();
        assert!(reference.starts_with(references), "{place}: {reference}");
        assert!(
            reference.ends_with(&format!(".{last}")),
            "{place}: {fact} is {reference}"
        );
        return;
    }

    // Lists of strings with a name of their own are written out.
    let fact = if fact.ends_with(".ExtraValue") || fact.ends_with(".Verbs") {
        "strings"
    } else {
        fact
    };

    let text = |name| schema.get(name).and_then(Value::as_str);
    let (name, format) = match fact.split_once(':') {
        _ if fact == "strings" => ("array", None),
        Some((name, format)) => (name, Some(format)),
        None => (fact, None),
    };

    assert_eq!(
        (text("type"), text("format")),
        (Some(name), format),
        "{place}"
    );
}

#[tokio::test]
async fn documents_come_in_every_form_and_only_once() {
    let documents = Documents(OpenApi::default());
    let url = documents.index().await.remove("apis/apps/v1").unwrap();
    let (status, headers, plain) = documents.get(&url, &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(headers["cache-control"], "public, immutable");
    assert_eq!(headers["expires"], "Wed, 13 Nov 2024 22:13:20 GMT");

    let etag = headers["etag"].to_str().unwrap();
    assert!(
        url.ends_with(&format!("?hash={}", etag.trim_matches('"'))),
        "{url}: {etag}"
    );

    let (_, headers, packed) = documents.get(&url, &[("accept-encoding", "gzip")]).await;
    assert_eq!(headers["content-encoding"], "gzip");
    assert!(
        packed.starts_with(b"\x1f\x8b") && packed.len() * 5 < plain.len(),
        "{}",
        packed.len()
    );

    let protobuf = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
    let (_, headers, binary) = documents.get(&url, &[("accept", protobuf)]).await;
    assert_eq!(
        (
            headers["content-type"].to_str().unwrap(),
            headers["etag"].to_str().unwrap()
        ),
        (protobuf, etag)
    );

    assert!(binary.starts_with(b"\x0a\x053.0.0"), "{:?}", &binary[..16]);

    let (status, headers, body) = documents
        .get("/openapi/v3/apis/apps/v1", &[("if-none-match", etag)])
        .await;
    assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert!(
        !headers.contains_key("content-type") && !headers.contains_key("expires"),
        "{headers:?}"
    );

    let (status, headers, _) = documents.get("/openapi/v3/apis/apps/v1?hash=0", &[]).await;
    assert_eq!(
        (status, headers["location"].to_str().unwrap()),
        (StatusCode::MOVED_PERMANENTLY, url.as_str())
    );
}
