//! Properties that hold for any path and query of a request: the target of `fuzz/` panics on a violation.

use coracle_api::codec::json;
use http::Method;

use crate::connect;
use crate::registry::check_continue_token;
use crate::request::{DeleteOptions, ListOptions, Query, RequestInfo, WriteOptions};

/// The first line is a path and a query, the rest the body of a delete.
pub fn apiserver_request(data: &[u8]) {
    let end = data
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(data.len());
    let (request, body) = data.split_at(end);
    let request = String::from_utf8_lossy(request);
    let (path, query) = request.split_once('?').unwrap_or((&request, ""));

    let query = Query::parse(query);
    let encoded: Vec<String> = query
        .pairs()
        .map(|(name, value)| format!("{}={}", escaped(name), escaped(value)))
        .collect();
    assert_eq!(Query::parse(&encoded.join("&")), query);

    for method in [Method::GET, Method::POST, Method::DELETE, Method::PATCH] {
        info(&method, path, &query);
    }
    options(&query, body);
    connect::fuzz::options(&query, path);
}

fn info(method: &Method, path: &str, query: &Query) {
    let info = RequestInfo::new(method, path, query);
    info.is_long_running();
    if let Some(target) = &info.target {
        assert!(!target.version.is_empty() || !target.group.is_empty() || !info.path.is_empty());
        let parts = [&target.namespace, &target.resource, &target.subresource];
        assert!(parts.iter().all(|part| !part.contains('/')), "{target:?}");
    }
}

fn options(query: &Query, body: &[u8]) {
    for kind in ["CreateOptions", "UpdateOptions", "PatchOptions"] {
        for apply in [false, true] {
            if let Ok(options) = WriteOptions::parse(query, kind, apply) {
                assert!(options.field_manager.chars().count() <= 128);
            }
        }
    }

    if let Ok(mut options) = ListOptions::parse(query) {
        check_continue_token(&options.continue_token);
        drop(options.only_object("name"));
        let labels = options.labels.to_string();
        assert_eq!(labels.parse().as_ref(), Ok(&options.labels), "{labels}");
    }

    let body = json::parse(body).ok();
    for body in [None, body.as_ref()] {
        if let Ok(options) = DeleteOptions::parse(query, body) {
            assert!(!options.dry_run || query.get("dryRun").is_some() || body.is_some());
        }
    }
}

/// Every byte escaped.
fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use crate::fuzz_corpus;

    #[test]
    fn any_request_keeps_every_property() {
        fuzz_corpus::run("apiserver_request", super::apiserver_request, 4000);
    }
}
