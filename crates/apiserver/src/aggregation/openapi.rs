//! The OpenAPI documents of remote servers, as far as they are about their own group and version.
//!
//! Of version 3 it is known which documents there are; readers get them from the server.
//! Version 2 is one document for the whole API, so their parts of it are fetched, and kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use coracle_api::Value;
use coracle_api::codec::json;
use http::{StatusCode, header};

use super::discovery::Described;
use super::{Aggregation, Remote};
use crate::openapi::others::about;
use crate::openapi::{OfOthers, Others};

/// The longest index that is read.
const MAX_INDEX: usize = 1 << 20;

/// The longest document of version 2 that is read.
const MAX_VERSION2: usize = 8 << 20;

/// What a server describes.
#[derive(Clone, Default)]
pub(crate) struct Documents {
    /// What version 2 says of the group and version, and the tag of the whole document.
    version2: Option<(Arc<Value>, String)>,
    /// The paths in the index of version 3, with the URLs that lead to their documents.
    pub(crate) version3: BTreeMap<String, String>,
}

impl Aggregation {
    pub(super) async fn documents(&self, remote: &Remote, before: Option<&Described>) -> Documents {
        let before = before.map(|before| before.openapi.clone());
        let before = before.unwrap_or_default();
        Documents {
            version3: self.version3(remote, &before).await,
            version2: self.version2(remote, before.version2).await,
        }
    }

    async fn version3(&self, remote: &Remote, before: &Documents) -> BTreeMap<String, String> {
        let accept = [(header::ACCEPT, "application/json")];
        let index = self.fetch(remote, "/openapi/v3", &accept, MAX_INDEX).await;
        match index {
            Ok(Some(index)) => own_paths(remote, json::parse(index.body()).ok().as_ref()),
            Ok(None) => BTreeMap::new(),
            // What was there is kept until it is known to be gone.
            Err(_) => before.version3.clone(),
        }
    }

    async fn version2(
        &self,
        remote: &Remote,
        before: Option<(Arc<Value>, String)>,
    ) -> Option<(Arc<Value>, String)> {
        let tag = before.as_ref().map(|(_, tag)| tag.as_str());
        let tag = tag.unwrap_or_default();
        let headers = [
            (header::ACCEPT, "application/json"),
            (header::IF_NONE_MATCH, tag),
        ];
        let headers = if tag.is_empty() {
            &headers[..1]
        } else {
            &headers
        };

        let path = "/openapi/v2";
        let answered = match self.fetch(remote, path, headers, MAX_VERSION2).await {
            Ok(Some(answered)) if answered.status() == StatusCode::OK => answered,
            Ok(None) => return None,
            Ok(Some(_)) | Err(_) => return before,
        };
        let document = json::parse(answered.body()).ok()?;
        let own = about(&document, &format!("{}/", remote.path()));
        let tag = answered.headers().get(header::ETAG);
        let tag = tag.and_then(|tag| tag.to_str().ok()).unwrap_or_default();

        // The same document stays the same, so that nothing is made anew of it.
        match before {
            Some((known, _)) if *known == own => Some((known, tag.to_owned())),
            _ => Some((Arc::new(own), tag.to_owned())),
        }
    }

    /// What other servers describe.
    pub(crate) fn openapi(&self) -> OfOthers {
        let remotes = self.remotes();
        let described = remotes.iter().filter_map(|remote| self.described(remote));
        let mut index = BTreeMap::new();
        let mut version2 = Vec::new();
        for described in described {
            index.extend(described.openapi.version3.clone());
            let document = described.openapi.version2.as_ref();
            version2.extend(document.map(|(document, _)| document.clone()));
        }

        OfOthers {
            index,
            version2: Others::new(version2),
        }
    }

    /// The server that describes a path of the index.
    pub(super) fn describes(&self, path: &str) -> Option<Arc<Remote>> {
        let remotes = self.remotes();
        remotes.into_iter().find(|remote| {
            self.described(remote)
                .is_some_and(|described| described.openapi.version3.contains_key(path))
        })
    }
}

/// Of an index, what is about the server's own group and version.
fn own_paths(remote: &Remote, index: Option<&Value>) -> BTreeMap<String, String> {
    let own = format!("apis/{}", remote.api_version());
    let url = index
        .and_then(|index| {
            index
                .get("paths")?
                .get(&own)?
                .get("serverRelativeURL")?
                .as_str()
        })
        .filter(|url| {
            let path = url.split('?').next().unwrap_or_default();
            path == format!("/openapi/v3/{own}")
        });
    url.map(|url| (own.clone(), url.to_owned()))
        .into_iter()
        .collect()
}
