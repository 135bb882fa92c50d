//! Documents over HTTP: media type, ETag, caching.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use coracle_api::codec::media_type;
use coracle_api::time::Timestamp;
use http::{HeaderMap, HeaderValue, StatusCode, header};

use super::document::{Document, Form};
use crate::answer::{self, Answer};

/// How long a client may cache a document that it requested by its hash.
const KEPT_FOR: Duration = Duration::from_secs(365 * 24 * 3600);

const JSON: &str = "application/json";

/// The media type of the protobuf form, and an older one that is not valid, but requested by
/// clients.
fn protobuf_types(document: &Document) -> [&'static str; 2] {
    match document {
        Document::V2 => [
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        ],
        Document::V3(_) => [
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
            "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
        ],
    }
}

/// The form that the client likes best; `None`: it accepts none of them.
pub(super) fn form(document: &Document, headers: &HeaderMap) -> Option<Form> {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let [protobuf, older] = protobuf_types(document);
    let chosen = media_type::choose(accept, &[JSON, protobuf, older])?;
    Some(if chosen == JSON {
        Form::Json
    } else {
        Form::Protobuf
    })
}

/// Whether the client has the document with this ETag.
fn has_already(headers: &HeaderMap, etag: &str) -> bool {
    let values = headers.get_all(header::IF_NONE_MATCH);
    let mut tags = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    tags.any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    })
}

/// A document to respond with.
pub(super) struct DocumentResponse<'d> {
    pub(super) document: &'d Document,
    pub(super) form: Form,
    pub(super) hash: &'d str,
    pub(super) content: Bytes,
    /// The content is compressed.
    pub(super) gzip: bool,
}

impl DocumentResponse<'_> {
    /// The response to a request with these headers. `asked_hash`: the hash that the client saw in
    /// the index.
    pub(super) fn answer(
        self,
        headers: &HeaderMap,
        asked_hash: Option<&str>,
        now: Timestamp,
    ) -> Answer {
        let etag = format!("\"{}\"", self.hash);
        let mut answer = match asked_hash {
            Some(asked) if asked != self.hash => self.moved(),
            _ if has_already(headers, &etag) => answer::empty(StatusCode::NOT_MODIFIED),
            _ => self.whole(),
        };

        let head = answer.headers_mut();
        head.insert(
            header::VARY,
            HeaderValue::from_static("Accept, Accept-Encoding"),
        );

        if let Ok(etag) = HeaderValue::from_str(&etag) {
            head.insert(header::ETAG, etag);
        }

        if asked_hash == Some(self.hash) {
            head.insert(
                header::CACHE_CONTROL,
                HeaderValue::from_static("public, immutable"),
            );
            if let Ok(date) = HeaderValue::from_str(&http_date(now, KEPT_FOR)) {
                head.insert(header::EXPIRES, date);
            }
        }

        answer
    }

    fn whole(&self) -> Answer {
        let content_type = match self.form {
            Form::Json => JSON,
            Form::Protobuf => protobuf_types(self.document)[0],
        };
        let mut answer = answer::bytes(StatusCode::OK, content_type, self.content.clone());
        if self.gzip {
            answer
                .headers_mut()
                .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        answer
    }

    /// To the document under its present hash.
    fn moved(&self) -> Answer {
        let mut answer = answer::empty(StatusCode::MOVED_PERMANENTLY);
        if let Document::V3(section) = self.document
            && let Ok(place) = HeaderValue::from_str(&section.url(self.hash))
        {
            answer.headers_mut().insert(header::LOCATION, place);
        }
        answer
    }
}

/// A moment after `now`, as headers write it.
fn http_date(now: Timestamp, after: Duration) -> String {
    let since_1970 = Duration::from_secs(u64::try_from(now.unix_seconds()).unwrap_or_default());
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since_1970 + after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::section::Section;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value)))
            .collect()
    }

    fn answer(headers: &HeaderMap, asked_hash: Option<&str>) -> Answer {
        let document = &Document::V3(Section::Version);
        let content = Bytes::from_static(b"{}");
        let found = DocumentResponse {
            document,
            form: Form::Json,
            hash: "AB",
            content,
            gzip: false,
        };
        found.answer(headers, asked_hash, Timestamp::from_unix(0, 0))
    }

    #[test]
    fn the_form_is_what_the_client_likes_best() {
        let check = |accept, v2, v3| {
            assert_eq!(
                form(&Document::V2, &headers(&[("accept", accept)])),
                v2,
                "{accept}"
            );

            assert_eq!(
                form(
                    &Document::V3(Section::Version),
                    &headers(&[("accept", accept)])
                ),
                v3,
                "{accept}"
            );
        };

        let (json, protobuf) = (Some(Form::Json), Some(Form::Protobuf));
        check("", json, json);
        check("*/*", json, json);
        check("application/*", json, json);

        check("application/json", json, json);
        check("text/html", None, None);
        check("text/html, */*;q=0.1", json, json);
        check(
            "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
            protobuf,
            None,
        );

        check(
            "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            protobuf,
            None,
        );

        check(
            "application/com.github.proto-openapi.spec.v3.v1.0+protobuf, application/json;q=0.9",
            json,
            protobuf,
        );
    }

    #[test]
    fn compressed_content_is_sent_to_clients_that_accept_it() {
        let check = |accept, expected| {
            assert_eq!(
                answer::takes_gzip(&headers(&[("accept-encoding", accept)])),
                expected,
                "{accept}"
            );
        };

        check("", false);
        check("gzip", true);
        check("br, GZIP;q=0.5", true);
        check("gzip;q=0", false);
        check("deflate, br", false);
    }

    #[test]
    fn a_client_that_has_it_gets_not_modified() {
        let check = |tags, expected| {
            let answer = answer(&headers(&[("if-none-match", tags)]), None);
            assert_eq!(answer.status().as_u16(), expected, "{tags}");
            assert_eq!(answer.headers()["etag"], "\"AB\"");
            assert_eq!(answer.headers()["cache-control"], "no-cache, private");
        };

        check("\"AB\"", 304);
        check("W/\"AB\"", 304);
        check("\"CD\", \"AB\"", 304);
        check("*", 304);
        check("\"CD\"", 200);
        check("AB", 200);
    }

    #[test]
    fn a_document_requested_by_its_hash_may_be_cached_for_a_year() {
        let answer = answer(&HeaderMap::new(), Some("AB"));
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["cache-control"], "public, immutable");
        assert_eq!(answer.headers()["expires"], "Fri, 01 Jan 1971 00:00:00 GMT");
    }

    #[test]
    fn an_old_hash_redirects_to_the_current_one() {
        let answer = answer(&HeaderMap::new(), Some("CD"));
        assert_eq!(answer.status(), StatusCode::MOVED_PERMANENTLY);
        assert_eq!(answer.headers()["location"], "/openapi/v3/version?hash=AB");
    }
}
