//! Headers and their results. The expectations are a real server's responses, and those of
//! upstream's negotiation.

use super::MediaType::{Json, Protobuf, Yaml};
use super::MetaVersion::{V1, V1beta1};
use super::*;

/// Expects the form and shape of a response; `None`: not acceptable.
fn check(endpoint: Endpoint, accept: &str, expected: Option<(MediaType, Option<Transform>)>) {
    let found =
        negotiate(accept, endpoint).map(|accepted| (accepted.media_type, accepted.transform));
    assert_eq!(found, expected.ok_or(NotAcceptable::Object), "{accept:?}");
}

#[test]
fn the_best_clause_that_is_offered_decides() {
    let check = |accept, expected: Option<MediaType>| {
        check(
            Endpoint::BuiltIn,
            accept,
            expected.map(|media_type| (media_type, None)),
        );
    };

    check("", Some(Json));
    check("*/*", Some(Json));
    check("*", Some(Json));
    check("application/*", Some(Json));
    check("application/yaml", Some(Yaml));
    check("application/vnd.kubernetes.protobuf", Some(Protobuf));
    check(
        "application/vnd.kubernetes.protobuf,application/json",
        Some(Protobuf),
    );

    check("application/json;q=0.4, application/yaml;q=0.5", Some(Yaml));
    check("application/foo, application/json", Some(Json));
    check("text/html,application/xhtml+xml,*/*;q=0.8", Some(Json));
    check("application/yaml;q=0.1, */*", Some(Json));

    check("*/*, application/yaml;q=0.1", Some(Yaml));
    check("application/yaml;q=0", Some(Yaml));
    check(
        "application/yaml;q=nonsense, application/json;q=0.1",
        Some(Json),
    );

    check(" application/ yaml ; charset=utf-8", Some(Yaml));
    check("application/yaml/", Some(Yaml));
    check("text/html", None);
    check("application", None);
    check("application/yaml/x", None);
    check("Application/JSON", None);
    check("*/json", None);
    check("application/cbor", None);
}

#[test]
fn very_many_clauses_are_sorted_too() {
    let many =
        "text/a;q=0.9,".repeat(1000) + "*/*;q=0.1,application/yaml;q=0.2,application/json;q=0.15";
    check(Endpoint::BuiltIn, &many, Some((Yaml, None)));
}

#[test]
fn an_unknown_shape_is_skipped() {
    use Transform::{PartialObjectMetadata, PartialObjectMetadataList, Table};

    let check = |accept, expected| check(Endpoint::BuiltIn, accept, expected);
    let table = |form, version| Some((form, Some(Table(version))));
    check(
        "application/json;as=Table;v=v1;g=meta.k8s.io",
        table(Json, V1),
    );

    check(
        "application/json; as=Table; g=meta.k8s.io; v=v1beta1",
        table(Json, V1beta1),
    );

    check(
        "application/yaml;as=Table;v=v1;g=meta.k8s.io",
        table(Yaml, V1),
    );

    check("*/*;as=Table;v=v1;g=meta.k8s.io", table(Json, V1));
    check(
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
        None,
    );

    check("application/json;as=Table;v=v9;g=meta.k8s.io", None);
    check(
        "application/json;as=Table;v=v9;g=meta.k8s.io, application/json",
        Some((Json, None)),
    );

    check("application/json;as=Table;g=meta.k8s.io", None);
    check("application/json;as=Table", None);
    check("application/json;v=v1", None);
    check("application/json;as=Table;v=v1;g=x.io", None);
    check("application/json;as=Chair;v=v1;g=meta.k8s.io", None);

    let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
    check(kubectl, table(Json, V1));
    let metadata =
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    check(metadata, Some((Protobuf, Some(PartialObjectMetadata(V1)))));

    let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1";
    check(list, Some((Json, Some(PartialObjectMetadataList(V1beta1)))));
    check(
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        None,
    );
}

#[test]
fn endpoints_differ_in_what_they_offer() {
    check(
        Endpoint::Custom,
        "application/vnd.kubernetes.protobuf",
        None,
    );

    check(
        Endpoint::Custom,
        "application/vnd.kubernetes.protobuf,application/yaml",
        Some((Yaml, None)),
    );

    let metadata =
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let expected = Some((Protobuf, Some(Transform::PartialObjectMetadata(V1))));
    check(Endpoint::Custom, metadata, expected);
    check(Endpoint::WithoutTable, metadata, expected);

    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    check(Endpoint::WithoutTable, table, None);
    check(
        Endpoint::WithoutTable,
        &format!("{table},application/json"),
        Some((Json, None)),
    );

    check(Endpoint::Plain, metadata, None);
    check(
        Endpoint::Plain,
        "application/vnd.kubernetes.protobuf",
        Some((Protobuf, None)),
    );

    let aggregated =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    check(
        Endpoint::AggregatedDiscovery,
        aggregated,
        Some((Json, Some(Transform::ApiGroupDiscoveryList))),
    );

    check(Endpoint::Plain, aggregated, Some((Json, None)));
    check(Endpoint::AggregatedDiscovery, "application/json", None);
    check(
        Endpoint::AggregatedDiscovery,
        "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        None,
    );

    check(
        Endpoint::BuiltIn,
        "application/json;sv=v1",
        Some((Json, None)),
    );

    check(Endpoint::BuiltIn, "application/json;sv=v2", None);
    check(Endpoint::Plain, "application/json;sv=v1", None);
}

#[test]
fn parameters_are_returned() {
    let accepted = negotiate(
        "application/json;pretty=1;stream=watch;profile=nopeer;x=y",
        Endpoint::BuiltIn,
    )
    .unwrap();
    assert!(accepted.pretty && accepted.stream);
    assert_eq!(accepted.profile.as_deref(), Some("nopeer"));
    let accepted = negotiate("application/json;pretty=true", Endpoint::BuiltIn).unwrap();
    assert!(!accepted.pretty && !accepted.stream && accepted.profile.is_none());
}

#[test]
fn a_watch_has_no_yaml() {
    let stream =
        |accept| negotiate_stream(accept, Endpoint::BuiltIn).map(|accepted| accepted.media_type);
    assert_eq!(stream(""), Ok(Json));
    assert_eq!(stream("application/json;stream=watch"), Ok(Json));
    assert_eq!(
        stream("application/vnd.kubernetes.protobuf;stream=watch"),
        Ok(Protobuf)
    );

    assert_eq!(stream("application/yaml"), Err(NotAcceptable::Stream));
    assert_eq!(
        stream("application/yaml,application/json"),
        Err(NotAcceptable::Stream)
    );

    assert_eq!(
        stream("application/yaml;stream=watch,application/json"),
        Ok(Json)
    );

    assert_eq!(
        stream("application/json;stream=other"),
        Err(NotAcceptable::Stream)
    );
}

#[test]
fn refusals_list_what_is_offered() {
    let check = |text: String, expected: &str| assert_eq!(text, expected);
    check(
        NotAcceptable::Object.to_string(),
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    );

    check(
        NotAcceptable::Stream.to_string(),
        "only the following media types are accepted: application/json;stream=watch, \
         application/vnd.kubernetes.protobuf;stream=watch",
    );

    check(
        body("text/plain").unwrap_err().to_string(),
        "the body of the request was in an unknown format - accepted media types include: application/json, \
         application/yaml, application/vnd.kubernetes.protobuf",
    );

    check(
        produces(
            "application/*",
            &MediaType::all().map(MediaType::as_str).collect::<Vec<_>>(),
        )
        .unwrap_err()
        .to_string(),
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    );

    check(
        consumes("", "PATCH", &[]).unwrap_err().to_string(),
        "415: Unsupported Media Type",
    );
}

#[test]
fn the_type_of_a_body_may_have_well_formed_parameters() {
    let check = |content_type, expected: Option<MediaType>| {
        assert_eq!(
            body(content_type),
            expected.ok_or(Unsupported::Object),
            "{content_type:?}"
        );
    };

    check("", Some(Json));
    check("application/json", Some(Json));
    check("Application/YAML", Some(Yaml));
    check("application/vnd.kubernetes.protobuf", Some(Protobuf));
    check("application/json; charset=utf-8", Some(Json));
    check("application/json;charset=\"a;b\\\"c\";", Some(Json));
    check("application/json; a=1; A=1", Some(Json));
    check("application/json; a=1; a=2", None);
    check("application/json; charset", None);

    check("application/json; charset=", None);
    check("application/json; charset=\"open", None);
    check("application/json, application/yaml", None);
    check("application/x-www-form-urlencoded", None);
    check("application/cbor", None);
    check("application", None);
    check("*/*", None);
}

#[test]
fn routes_look_at_bare_types_only() {
    const OBJECTS: [&str; 3] = [
        "application/json",
        "application/yaml",
        "application/vnd.kubernetes.protobuf",
    ];

    let produced = |accept| produces(accept, &OBJECTS).is_ok();
    assert!(produced("") && produced("*/*;q=0.1") && produced("a/b, application/json;as=Table"));
    assert!(!produced("application/*") && !produced("text/html") && !produced("*"));

    let patch: Vec<&str> = PatchType::all().map(PatchType::as_str).collect();
    let consumed = |content_type, method| consumes(content_type, method, &patch).is_ok();
    assert!(consumed(
        "application/merge-patch+json; charset=utf-8",
        "PATCH"
    ));

    assert!(!consumed("", "PATCH") && !consumed("application/foo-patch+json", "PATCH"));
    assert!(consumed("", "DELETE") && consumes("text/plain", "POST", &["*/*"]).is_ok());
}

#[test]
fn patches_are_named_by_their_type() {
    assert_eq!(
        PatchType::of("application/json-patch+json"),
        Some(PatchType::Json)
    );

    assert_eq!(
        PatchType::of("application/merge-patch+json;charset=utf-8"),
        Some(PatchType::Merge)
    );

    assert_eq!(
        PatchType::of("application/strategic-merge-patch+json"),
        Some(PatchType::StrategicMerge)
    );

    assert_eq!(
        PatchType::of("application/apply-patch+yaml"),
        Some(PatchType::Apply)
    );

    assert_eq!(PatchType::of("application/json"), None);
    assert_eq!(PatchType::of(""), None);
}
