//! Discovery: which groups, versions and resources are served, from the catalogue, and by other
//! servers.
//!
//! A client reads it path by path (`plain`), or everything below `/api` or `/apis` at once
//! (`aggregated`), which it requests in `Accept`. The latter has an ETag, so that a client that has
//! it already gets a 304.

mod aggregated;
mod plain;
mod served_groups;
#[cfg(test)]
mod tests;

use coracle_api::Value;
use coracle_api::codec::media_type::{self, Endpoint, MediaType, NotAcceptable};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use ring::digest::{SHA512, digest};

use crate::ApiError;
use crate::answer::{self, Answer};
use crate::render::{Form, typed_json};
pub use served_groups::ServedGroups;

/// The document at a discovery path, in the form the client accepts; `None`: there is none.
pub fn answer(
    path: &str,
    headers: &HeaderMap,
    server_address: &str,
    served_groups: &ServedGroups<'_>,
    form: Result<Form, ApiError>,
) -> Option<Result<Answer, ApiError>> {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();

    if let Some(document) = aggregated::document(path, served_groups)
        && let Ok(accepted) = media_type::negotiate(accept, Endpoint::AggregatedDiscovery)
        && accepted.transform.is_some()
    {
        let pretty = accepted.pretty || form.is_ok_and(|form| form.pretty);
        let form = Form {
            media_type: accepted.media_type,
            pretty,
        };
        return Some(Ok(everything(&document, headers, form)));
    }

    let document = plain::document(path, server_address, served_groups)?;
    let form = form.and_then(|form| match form.media_type {
        MediaType::Cbor => Err(ApiError::not_acceptable(
            NotAcceptable::Document.to_string(),
        )),
        _ => Ok(form),
    });
    Some(form.map(|form| answer::value(StatusCode::OK, &document, form)))
}

/// Everything at once, unless the client has it.
fn everything(document: &Value, headers: &HeaderMap, form: Form) -> Answer {
    let tag = tag(document);
    let known = headers
        .get(header::IF_NONE_MATCH)
        .and_then(|value| value.to_str().ok());
    let mut answer = if known == Some(&tag) {
        answer::empty(StatusCode::NOT_MODIFIED)
    } else {
        let (media_type, content) = form.document(document);
        // Clients know by this that they did not get the plain document.
        let content_type = format!(
            "{};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            media_type.as_str()
        );
        answer::bytes(StatusCode::OK, &content_type, content)
    };

    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));

    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    headers.insert(
        header::ETAG,
        HeaderValue::from_str(&tag).expect("a tag is made of hexadecimal digits"),
    );

    answer
}

/// The ETag of a document: the same in every form, which is why responses vary by `Accept`.
fn tag(document: &Value) -> String {
    let hash = digest(&SHA512, &typed_json(document));
    let digits: String = hash
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    format!("\"{digits}\"")
}
