//! OpenAPI: a description of the API, for clients that explain, validate, patch and generate.
//!
//! A request arrives at [`OpenApi::answer`]. The [`document`] it names is made from the catalogue,
//! once, and kept compressed in the [`library`]; [`http`] handles media types and caching.
//!
//! A document has [`contents`]: the operations of its [`section`]s (such as a group and version),
//! by path, which [`resource`] makes from the verbs of each resource with its [`routes`], and the
//! types that they refer to. [`v2`] and [`v3`] write operations, [`schema`] the [`named`] types,
//! all as trees; one path or type at a time is written as JSON or as [`protobuf`].
//!
//! Kinds that are added at run time are kinds of the catalogue like any other: their group and
//! version gets a document of its own, and they appear in the document of the whole.

mod contents;
mod document;
mod http;
mod library;
mod named;
mod names;
mod operation;
pub(crate) mod others;
mod protobuf;
mod published;
mod resource;
mod routes;
mod schema;
mod section;
#[cfg(test)]
mod tests;
mod v2;
mod v3;

use std::collections::BTreeMap;
use std::sync::Arc;

use ::http::request::Parts;
use ::http::{HeaderValue, StatusCode, header};
use bytes::Bytes;
use coracle_api::catalog::Catalog;
use coracle_api::codec::json;
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};

use crate::ApiError;
use crate::answer::{self, Answer};
use crate::request::Query;
use document::{Document, Form};
use library::{Library, LibraryError, Sources};
pub use others::Others;
use section::Section;

/// What other servers describe.
#[derive(Clone, Debug, Default)]
pub struct OfOthers {
    /// Their documents of version 3: paths in the index, and URLs.
    pub index: BTreeMap<String, String>,
    pub version2: Others,
}

/// The documents of one server.
#[derive(Default)]
pub struct OpenApi {
    library: Arc<Library>,
}

impl OpenApi {
    /// Whether a path is one of those that are answered here.
    pub fn is_at(path: &str) -> bool {
        path == "/openapi/v2" || path == "/openapi/v3" || path.starts_with("/openapi/v3/")
    }

    /// The document at a path for which [`OpenApi::is_at`] holds.
    pub async fn answer(
        &self,
        head: &Parts,
        query: &Query,
        catalog: &Catalog,
        of_others: OfOthers,
        now: Timestamp,
    ) -> Answer {
        let OfOthers { index, version2 } = of_others;
        let sources = Sources {
            catalog: catalog.clone(),
            others: version2,
        };
        let headers = &head.headers;
        let document = match head.uri.path() {
            "/openapi/v2" => Document::V2,
            "/openapi/v3" => {
                return self
                    .index(&sources, index)
                    .await
                    .unwrap_or_else(|error| failed(&error));
            }
            path => {
                let name = path.strip_prefix("/openapi/v3/");
                let section = Section::all(catalog)
                    .into_iter()
                    .find(|section| name == Some(&section.path()));
                let Some(section) = section else {
                    return answer::empty(StatusCode::NOT_FOUND);
                };
                Document::V3(section)
            }
        };

        // The document of the whole has no place under its hash.
        let hash = if document == Document::V2 {
            None
        } else {
            query.get("hash").filter(|hash| !hash.is_empty())
        };

        let Some(form) = http::form(&document, headers) else {
            let mut answer = answer::empty(StatusCode::NOT_ACCEPTABLE);
            answer
                .headers_mut()
                .insert(header::VARY, HeaderValue::from_static("Accept"));
            return answer;
        };

        let gzip = answer::takes_gzip(headers);
        let found = self.find(&sources, &document, form, gzip).await;
        match found {
            Ok((hash_now, content)) => {
                let found = http::DocumentResponse {
                    document: &document,
                    form,
                    hash: &hash_now,
                    content,
                    gzip,
                };
                found.answer(headers, hash, now)
            }
            Err(error) => failed(&error),
        }
    }

    /// A document's hash and content.
    async fn find(
        &self,
        sources: &Sources,
        document: &Document,
        form: Form,
        gzip: bool,
    ) -> Result<(Arc<str>, Bytes), OpenApiError> {
        if gzip && let Some(kept) = self.library.kept(sources, document, form) {
            return Ok((kept.hash.clone(), kept.gzip()));
        }

        let (library, sources, document) =
            (self.library.clone(), sources.clone(), document.clone());
        aside(move || {
            let kept = library.get(&sources, &document, form)?;
            Ok((
                kept.hash.clone(),
                if gzip { kept.gzip() } else { kept.plain()? },
            ))
        })
        .await
    }

    /// Which documents of version 3 there are, each with its hash.
    async fn index(
        &self,
        sources: &Sources,
        of_others: BTreeMap<String, String>,
    ) -> Result<Answer, OpenApiError> {
        let (library, sources) = (self.library.clone(), sources.clone());
        let paths = aside(move || {
            let mut paths = Map::new();
            for section in Section::all(&sources.catalog) {
                let hash = library.hash(&sources, &Document::V3(section.clone()))?;
                let mut entry = Map::new();
                entry.insert("serverRelativeURL", section.url(&hash).as_str());
                paths.insert(section.path(), entry);
            }
            for (path, url) in of_others {
                let mut entry = Map::new();
                entry.insert("serverRelativeURL", url.as_str());
                paths.insert(path, entry);
            }
            Ok(paths)
        })
        .await?;

        let mut index = Map::new();
        index.insert("paths", paths);

        // Upstream declares no type for the index, and this is what clients see.
        let content_type = "text/plain; charset=utf-8";

        Ok(answer::bytes(
            StatusCode::OK,
            content_type,
            json::to_vec(&Value::Object(index)),
        ))
    }
}

/// Why there is no document.
#[derive(Debug, thiserror::Error)]
enum OpenApiError {
    #[error("cannot build the OpenAPI document")]
    Library(#[from] LibraryError),
    #[error("building the OpenAPI document was cancelled")]
    Cancelled(#[from] tokio::task::JoinError),
}

fn failed(error: &OpenApiError) -> Answer {
    answer::error(
        &ApiError::internal(error.to_string()),
        crate::render::Form::JSON,
    )
}

/// Runs outside of the threads that serve requests: building and compressing documents takes long.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LibraryError> + Send + 'static,
) -> Result<T, OpenApiError> {
    Ok(tokio::task::spawn_blocking(work).await??)
}

fn texts(list: &[&str]) -> Vec<Value> {
    list.iter().map(Value::string).collect()
}
