//! Objects in every shape and form, compared as text.

use bytes::Bytes;
use coracle_api::Value;
use coracle_api::time::Time;
use coracle_store::Revision;

use super::*;
use crate::cache::Entry;
use crate::served::BuiltIn;

fn noon() -> Timestamp {
    Time::parse("2026-03-01T12:00:00Z").unwrap().0
}

fn objects(group: &str, version: &str, plural: &str) -> Objects<'static> {
    let BuiltIn {
        resource,
        kind,
        of,
        storage_version,
    } = built_in(group, version, plural);

    Objects {
        resource,
        kind,
        of,
        storage_version,
        custom: None,
    }
}

fn built_in(group: &str, version: &str, plural: &str) -> BuiltIn {
    BuiltIn::of(BUILTIN.resource(group, version, plural).unwrap())
}

fn config_map(name: &str, revision: u64) -> Entry {
    let text = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"n","uid":"u-{name}",
        "creationTimestamp":"2026-03-01T11:55:00Z","labels":{{"metadata":"}}"}}}},"data":{{"k":"v"}}}}"#
    );
    let of = objects("", "v1", "configmaps");
    let key = format!("n/{name}");
    Entry::stored(
        &key,
        &Bytes::from(text),
        Revision::new(revision),
        &of.storage_version,
    )
    .unwrap()
}

fn list() -> List {
    List {
        revision: Revision::new(9),
        entries: vec![config_map("a", 7).into(), config_map("b", 8).into()],
        continue_token: "next".to_string(),
        remaining: Some(3),
    }
}

fn rendering(accept: &str, query: &str) -> Rendering {
    Rendering::negotiate(accept, &Query::parse(query), "", Endpoint::BuiltIn).unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

const META_A: &str = r#"{"name":"a","namespace":"n","uid":"u-a","resourceVersion":"7","creationTimestamp":"2026-03-01T11:55:00Z","labels":{"metadata":"}"}}"#;
const META_B: &str = r#"{"name":"b","namespace":"n","uid":"u-b","resourceVersion":"8","creationTimestamp":"2026-03-01T11:55:00Z","labels":{"metadata":"}"}}"#;
const LIST_META: &str = r#"{"resourceVersion":"9","continue":"next","remainingItemCount":3}"#;
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const PARTIAL_LIST: &str = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

fn one(accept: &str, query: &str) -> Result<Vec<u8>, ApiError> {
    let objects = objects("", "v1", "configmaps");
    rendering(accept, query).object_of((&config_map("a", 7)).into(), &objects, noon())
}

fn many(accept: &str, query: &str) -> Result<Vec<u8>, ApiError> {
    rendering(accept, query).list_of(&list(), &objects("", "v1", "configmaps"), noon())
}

#[test]
fn whole_objects_are_the_bytes_of_the_cache() {
    let whole = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{META_A},"data":{{"k":"v"}}}}"#
    );
    assert_eq!(text(one("", "").unwrap()), format!("{whole}\n"));

    let items = format!(
        r#"{{"metadata":{META_A},"data":{{"k":"v"}}}},{{"metadata":{META_B},"data":{{"k":"v"}}}}"#
    );
    assert_eq!(
        text(many("", "").unwrap()),
        format!(
            "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{LIST_META},\"items\":[{items}]}}\n"
        )
    );

    assert!(
        text(one("application/yaml", "").unwrap())
            .starts_with("apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n")
    );

    assert!(text(one("", "pretty=true").unwrap()).starts_with("{\n  \"kind\": \"ConfigMap\",\n"));

    for (bytes, kind) in [
        (
            one("application/vnd.kubernetes.protobuf", "").unwrap(),
            "ConfigMap",
        ),
        (
            many("application/vnd.kubernetes.protobuf", "").unwrap(),
            "ConfigMapList",
        ),
    ] {
        let decoded = protobuf::decode(&bytes, &BUILTIN).unwrap();
        assert_eq!(decoded.get("kind").and_then(Value::as_str), Some(kind));
    }
}

#[test]
fn metadata_alone_comes_in_every_form() {
    let partial = |version: &str| {
        format!(
            r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/{version}","metadata":META}}"#
        )
    };

    assert_eq!(
        text(one(PARTIAL, "").unwrap()),
        partial("v1").replace("META", META_A) + "\n"
    );

    let old = PARTIAL.replace("v=v1", "v=v1beta1");
    assert_eq!(
        text(one(&old, "").unwrap()),
        partial("v1beta1").replace("META", META_A) + "\n"
    );

    let items = [META_A, META_B]
        .map(|meta| partial("v1").replace("META", meta))
        .join(",");
    assert_eq!(
        text(many(PARTIAL_LIST, "").unwrap()),
        format!(
            "{{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{LIST_META},\
             \"items\":[{items}]}}\n"
        )
    );

    let protobuf = PARTIAL.replace("json", "vnd.kubernetes.protobuf");
    let decoded = protobuf::decode(&one(&protobuf, "").unwrap(), &BUILTIN).unwrap();
    assert_eq!(
        decoded.get("kind").and_then(Value::as_str),
        Some("PartialObjectMetadata")
    );

    assert_eq!(decoded.meta().uid(), "u-a");
}

#[test]
fn a_list_is_no_object_and_an_object_no_list() {
    let refused = |result: Result<Vec<u8>, ApiError>| result.unwrap_err().message;
    assert_eq!(
        refused(many(PARTIAL, "")),
        "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"
    );

    assert_eq!(
        refused(one(PARTIAL_LIST, "")),
        "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"
    );

    assert_eq!(
        go_type(&objects("events.k8s.io", "v1", "events")),
        "*core.Event"
    );

    assert_eq!(
        go_type(&objects("rbac.authorization.k8s.io", "v1", "roles")),
        "*rbac.Role"
    );
}

#[test]
fn a_table_has_columns_and_rows() {
    let row = |name: &str, meta: &str| {
        format!(
            r#"{{"cells":["{name}",1,"5m"],"object":{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{meta}}}}}"#
        )
    };

    let table = text(many(TABLE, "").unwrap());
    let (head, rows) = table.split_once(r#","rows":"#).unwrap();
    assert_eq!(
        rows,
        format!("[{},{}]}}\n", row("a", META_A), row("b", META_B))
    );

    let begin = format!(
        r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{LIST_META},"columnDefinitions":[{{"name":"Name","type":"string","format":"name","description":"Name must be unique"#
    );
    assert!(head.starts_with(&begin), "{head}");
    assert!(
        text(one(TABLE, "").unwrap())
            .contains(r#""metadata":{"resourceVersion":"7"},"columnDefinitions":[{"#)
    );

    let rows = |query: &str| {
        text(one(TABLE, query).unwrap())
            .split_once(r#","rows":"#)
            .unwrap()
            .1
            .to_string()
    };

    assert_eq!(
        rows("includeObject=None"),
        "[{\"cells\":[\"a\",1,\"5m\"],\"object\":null}]}\n"
    );

    assert_eq!(
        rows("includeObject=Metadata"),
        format!("[{}]}}\n", row("a", META_A))
    );

    assert!(
        rows("includeObject=Object")
            .contains(r#""object":{"kind":"ConfigMap","apiVersion":"v1","metadata""#)
    );

    assert_eq!(
        one(TABLE, "includeObject=Some").unwrap_err().message,
        "Unable to convert to Table as requested: includeObject: Invalid value: \"Some\": must be 'Metadata', 'Object', \
         'None', or empty"
    );
}

#[test]
fn a_kind_without_columns_of_its_own_shows_name_and_creation() {
    let objects = objects("", "v1", "limitranges");
    let empty = List {
        revision: Revision::new(9),
        entries: vec![],
        continue_token: String::new(),
        remaining: None,
    };

    let table = text(
        rendering(TABLE, "")
            .list_of(&empty, &objects, noon())
            .unwrap(),
    );
    assert!(table.ends_with(",\"rows\":null}\n"), "{table}");

    let tree = json::parse(
        br#"{"kind":"LimitRange","apiVersion":"v1","metadata":{"name":"l","creationTimestamp":"2026-03-01T11:55:00Z"}}"#,
    );
    let table = rendering(TABLE, "includeObject=None").object_of(
        Shown::Tree(&tree.unwrap()),
        &objects,
        noon(),
    );

    let table = text(table.unwrap());
    assert!(
        table.contains(r#""rows":[{"cells":["l","2026-03-01T11:55:00Z"],"#),
        "{table}"
    );
}

/// What a table of one object without anything in it looks like.
fn table_of_nothing(resource: &'static Resource) -> Value {
    let objects = objects(&resource.group, &resource.version, &resource.plural);
    let mut tree = Value::object();
    coracle_api::codec::canonical::canonicalize(&mut tree, objects.of.node());
    let table = rendering(TABLE, "")
        .object_of(Shown::Tree(&tree), &objects, noon())
        .unwrap();
    json::parse(&table).unwrap()
}

#[test]
fn every_column_of_every_resource_is_filled() {
    for resource in BUILTIN
        .resources()
        .iter()
        .filter(|r| r.verbs.iter().any(|verb| verb == "list"))
    {
        let table = table_of_nothing(resource);
        let columns = table
            .get("columnDefinitions")
            .and_then(Value::as_array)
            .unwrap();

        let row = &table.get("rows").and_then(Value::as_array).unwrap()[0];
        let cells = row.get("cells").and_then(Value::as_array).unwrap();

        // Upstream fills one more than these have.
        let expected = columns.len() + usize::from(resource.plural == "ipaddresses");
        assert_eq!(cells.len(), expected, "{}", resource.plural);
    }
}

fn events(accept: &str, query: &str, group: &str, plural: &str) -> EventWriter {
    let served = Served::BuiltIn(built_in(group, "v1", plural));
    EventWriter::new(rendering(accept, query), served, noon).unwrap()
}

#[test]
fn a_watch_names_its_columns_once() {
    let mut writer = events(TABLE, "includeObject=None", "", "configmaps");
    let mut out = Vec::new();
    writer.write("ADDED", &config_map("a", 7), &mut out);
    writer.write("MODIFIED", &config_map("b", 8), &mut out);
    writer.bookmark(Revision::new(9), true, &mut out);
    let lines = text(out);
    let lines: Vec<&str> = lines.lines().collect();
    let begin = r#"{"type":"ADDED","object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"columnDefinitions":[{"name":"Name","#;
    assert!(lines[0].starts_with(begin), "{}", lines[0]);

    let table =
        r#""object":{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"#;
    assert_eq!(
        lines[1],
        format!(
            r#"{{"type":"MODIFIED",{table}"8"}},"columnDefinitions":null,"rows":[{{"cells":["b",1,"5m"],"object":null}}]}}}}"#
        )
    );

    assert_eq!(
        lines[2],
        format!(
            r#"{{"type":"BOOKMARK",{table}"9"}},"columnDefinitions":null,"rows":[{{"cells":["",0,"\u003cunknown\u003e"],"object":{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"9","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}]}}}}"#
        )
    );
}

#[test]
fn a_bookmark_has_the_shape_of_its_kind() {
    let mut out = Vec::new();
    events("", "", "apps", "deployments").bookmark(Revision::new(9), false, &mut out);
    assert_eq!(
        text(out),
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Deployment\",\"apiVersion\":\"apps/v1\",\"metadata\":\
         {\"resourceVersion\":\"9\"},\"spec\":{\"selector\":null,\"template\":{\"metadata\":{},\"spec\":{\"containers\":null}},\
         \"strategy\":{}},\"status\":{}}}\n"
    );
}

#[test]
fn a_watch_in_protobuf_is_a_row_of_messages_with_their_lengths() {
    let accept = "application/vnd.kubernetes.protobuf";
    for accept in [
        accept.to_string(),
        PARTIAL.replace("application/json", accept),
    ] {
        let mut writer = events(&accept, "", "", "configmaps");
        assert_eq!(
            writer.content_type(),
            "application/vnd.kubernetes.protobuf;stream=watch"
        );

        let mut out = Vec::new();
        writer.write("ADDED", &config_map("a", 7), &mut out);
        writer.bookmark(Revision::new(9), false, &mut out);
        writer.error(&ApiError::expired("too old"), &mut out);
        let mut rest = out.as_slice();

        let mut frames = 0;
        while let Some((length, behind)) = rest.split_first_chunk::<4>() {
            let (event, behind) =
                behind.split_at(usize::try_from(u32::from_be_bytes(*length)).unwrap());

            // The event has no envelope, as stock clients expect it; the object inside has its own.
            assert!(!event.starts_with(protobuf::MAGIC), "{accept}");
            assert!(
                event.windows(4).any(|window| window == protobuf::MAGIC),
                "{accept}"
            );

            rest = behind;
            frames += 1;
        }

        assert_eq!((frames, rest.len()), (3, 0), "{accept}");
    }
}

#[test]
fn there_is_no_watch_in_yaml() {
    let refused = EventWriter::new(
        rendering("application/yaml", ""),
        Served::BuiltIn(built_in("", "v1", "pods")),
        noon,
    );

    assert_eq!(
        refused.err().map(|error| error.message),
        Some(
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch"
                .to_string()
        )
    );
}

#[test]
fn an_object_stored_in_another_version_is_returned_in_the_requested_one() {
    let kept = r#"{"kind":"Event","apiVersion":"v1","metadata":{"name":"e","namespace":"n","uid":"u"},
        "involvedObject":{"kind":"Pod","name":"p"},"message":"m","source":{},"firstTimestamp":null,
        "lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""}"#;
    let objects = objects("events.k8s.io", "v1", "events");
    let entry = Entry::stored(
        "n/e",
        &Bytes::from(kept),
        Revision::new(7),
        &objects.storage_version,
    )
    .unwrap();
    let shown = r#""metadata":{"name":"e","namespace":"n","uid":"u","resourceVersion":"7"},"eventTime":null,"regarding":{"kind":"Pod","name":"p"},"note":"m","deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}"#;

    let kind = r#""kind":"Event","apiVersion":"events.k8s.io/v1","#;
    let json = rendering("application/json", "");
    let one = json.object_of((&entry).into(), &objects, noon()).unwrap();
    assert_eq!(text(one), format!("{{{kind}{shown}\n"));

    let list = List {
        revision: Revision::new(9),
        entries: vec![entry.at(Revision::new(7)).into()],
        continue_token: String::new(),
        remaining: None,
    };
    let many = text(json.list_of(&list, &objects, noon()).unwrap());

    let head = r#"{"kind":"EventList","apiVersion":"events.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":["#;
    assert_eq!(many, format!("{head}{{{shown}]}}\n"));

    let mut out = Vec::new();
    events("", "", "events.k8s.io", "events").write("ADDED", &entry, &mut out);
    let line = format!("{{\"type\":\"ADDED\",\"object\":{{{kind}{shown}}}\n");
    assert_eq!(text(out), line);

    let table = rendering(TABLE, "includeObject=None")
        .object_of((&entry).into(), &objects, noon())
        .unwrap();
    assert!(
        text(table).contains("\"pod/p\""),
        "rows are those of the kept kind"
    );
}
