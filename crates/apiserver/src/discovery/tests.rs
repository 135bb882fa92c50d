//! The aggregated document, compared with what a real server answers.

use coracle_api::codec::media_type::MediaType;
use coracle_api::codec::{json, protobuf};
use http_body_util::BodyExt;

use super::*;
use crate::cache::Definitions;

const EVERYTHING: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn ask(path: &str, headers: &[(header::HeaderName, &str)]) -> Answer {
    let headers: HeaderMap = headers
        .iter()
        .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()))
        .collect();

    let definitions = Definitions::default();
    let served = ServedGroups::new(&definitions);
    answer(path, &headers, "127.0.0.1:6443", &served, Ok(Form::JSON))
        .unwrap()
        .unwrap()
}

fn header_of(answer: &Answer, name: header::HeaderName) -> String {
    answer
        .headers()
        .get(name)
        .map_or_else(String::new, |value| value.to_str().unwrap().to_string())
}

fn body(answer: Answer) -> Vec<u8> {
    let mut collecting = std::pin::pin!(answer.into_body().collect());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match collecting.as_mut().poll(&mut context) {
        std::task::Poll::Ready(collected) => collected.unwrap().to_bytes().to_vec(),
        std::task::Poll::Pending => panic!("a document is there at once"),
    }
}

#[test]
fn the_aggregated_document_is_served_if_accept_names_it() {
    let kubectl = format!(
        "{EVERYTHING},{},application/json",
        EVERYTHING.replace("v=v2", "v=v2beta1")
    );

    for accept in [
        EVERYTHING,
        &kubectl,
        &format!("application/json,{EVERYTHING}"),
    ] {
        let answer = ask("/apis", &[(header::ACCEPT, accept)]);
        assert_eq!(
            header_of(&answer, header::CONTENT_TYPE),
            EVERYTHING,
            "{accept}"
        );

        assert_eq!(header_of(&answer, header::VARY), "Accept");
        assert_eq!(header_of(&answer, header::CACHE_CONTROL), "public");
        assert_eq!(header_of(&answer, header::ETAG).len(), 130);
    }

    // Upstream has removed the older version, and a single group was never served in this form.
    let old = EVERYTHING.replace("v=v2", "v=v2beta1");
    let plain = ask(
        "/apis",
        &[(header::ACCEPT, &format!("{old},application/json"))],
    );
    assert_eq!(header_of(&plain, header::CONTENT_TYPE), "application/json");

    assert!(
        body(plain).starts_with(br#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":""#)
    );

    for accept in [&[][..], &[(header::ACCEPT, "*/*")]] {
        assert_eq!(
            header_of(&ask("/apis", accept), header::CONTENT_TYPE),
            "application/json",
            "{accept:?}"
        );
    }

    let one = ask("/apis/apps", &[(header::ACCEPT, &kubectl)]);
    assert_eq!(header_of(&one, header::CONTENT_TYPE), "application/json");
}

#[test]
fn a_matching_etag_gets_not_modified() {
    let tag = header_of(&ask("/api", &[(header::ACCEPT, EVERYTHING)]), header::ETAG);
    let again = ask(
        "/api",
        &[(header::ACCEPT, EVERYTHING), (header::IF_NONE_MATCH, &tag)],
    );
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);

    assert_eq!(header_of(&again, header::ETAG), tag);
    assert!(body(again).is_empty());

    let other = ask(
        "/apis",
        &[(header::ACCEPT, EVERYTHING), (header::IF_NONE_MATCH, &tag)],
    );
    assert_eq!(other.status(), StatusCode::OK);
}

#[test]
fn it_is_the_same_document_in_protobuf() {
    let accept = EVERYTHING.replace("application/json", MediaType::Protobuf.as_str());
    let answer = ask("/apis", &[(header::ACCEPT, &accept)]);
    assert_eq!(header_of(&answer, header::CONTENT_TYPE), accept);
    let decoded = protobuf::decode(&body(answer), &coracle_api::catalog::BUILTIN).unwrap();
    let plain = json::parse(&body(ask("/apis", &[(header::ACCEPT, EVERYTHING)]))).unwrap();
    assert!(
        json::to_string(&decoded) == json::to_string(&plain),
        "protobuf says something else than JSON"
    );
}

#[test]
fn every_plain_document_has_a_protobuf_form() {
    for path in ["/api", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1"] {
        let form = Form {
            media_type: MediaType::Protobuf,
            pretty: false,
        };

        let definitions = Definitions::default();
        let served = ServedGroups::new(&definitions);
        let answer = answer(path, &HeaderMap::new(), "127.0.0.1:6443", &served, Ok(form))
            .unwrap()
            .unwrap();

        assert_eq!(
            header_of(&answer, header::CONTENT_TYPE),
            MediaType::Protobuf.as_str(),
            "{path}"
        );

        assert!(body(answer).starts_with(protobuf::MAGIC), "{path}");
    }
}

/// Groups in order, with versions in order, with all there is to each resource.
fn flat(document: &Value, served: impl Fn(&str, &str, &str) -> bool) -> Vec<String> {
    let list = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_array)
            .map(<[Value]>::to_vec)
            .unwrap_or_default()
    };

    let text = |value: &Value, name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_string()
    };

    let mut lines = Vec::new();
    for group in list(document, "items") {
        let name = group.meta().name().to_string();
        for version in list(&group, "versions") {
            let known = text(&version, "version");
            lines.push(format!("{name}/{known} {}", text(&version, "freshness")));
            for resource in list(&version, "resources") {
                if served(&name, &known, &text(&resource, "resource")) {
                    lines.push(json::to_string(&resource));
                }
            }
        }
    }

    lines
}

#[test]
fn it_is_what_a_real_server_answers() {
    let folder =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/facts/discovery");
    let is_served = |group: &str, version: &str, plural: &str| {
        coracle_api::catalog::BUILTIN
            .resources()
            .iter()
            .any(|r| r.group == group && r.version == version && r.plural == plural)
    };

    for path in ["api", "apis"] {
        let recorded = std::fs::read(folder.join(format!("aggregated-{path}.json"))).unwrap();
        let recorded = json::parse(&recorded).unwrap();
        let ours = aggregated::document(path, &ServedGroups::new(&Definitions::default())).unwrap();
        assert_eq!(flat(&ours, is_served), flat(&recorded, is_served), "{path}");
    }
}
