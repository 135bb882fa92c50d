//! The schemas of kinds, from the server's OpenAPI documents.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::Value;
use coracle_client::{Client, Error};
use coracle_expressions::admission::type_check::{Declaration, Kind, Schemas};

/// The types of a policy's objects and parameters.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// Those that have a schema.
    pub(super) kinds: Vec<(Kind, Declaration)>,
    /// `None`: there are no parameters.
    pub(super) params: Option<Declaration>,
}

/// The documents of a server.
pub(super) struct Documents<'c> {
    client: &'c Client,
}

impl<'c> Documents<'c> {
    pub(super) fn new(client: &'c Client) -> Documents<'c> {
        Documents { client }
    }

    /// Reads one document after the other, so that only one is in memory.
    pub(super) async fn resolve(
        &self,
        kinds: BTreeSet<Kind>,
        params: Option<Kind>,
    ) -> Result<Resolved, Error> {
        let mut by_document: BTreeMap<String, Vec<&Kind>> = BTreeMap::new();
        for kind in kinds.iter().chain(&params) {
            by_document.entry(document_of(kind)).or_default().push(kind);
        }
        if by_document.is_empty() {
            return Ok(Resolved::default());
        }

        let index = self.client.get("/openapi/v3").await?;
        let mut declarations = BTreeMap::new();
        for (document, kinds) in by_document {
            let place = index.at(&["paths", &document, "serverRelativeURL"]);
            let Some(place) = place.and_then(Value::as_str) else {
                continue;
            };

            let document = match self.client.get(place).await {
                Err(error) if error.is_not_found() => continue,
                document => document?,
            };
            if let Some(schemas) = Schemas::of_document(&document) {
                let declared = kinds
                    .into_iter()
                    .filter_map(|kind| Some((kind.clone(), schemas.declare(kind)?)));
                declarations.extend(declared);
            }
        }

        let params = params.map(|kind| {
            declarations
                .get(&kind)
                .cloned()
                .unwrap_or_else(Declaration::unknown)
        });
        let kinds = kinds
            .into_iter()
            .filter_map(|kind| declarations.get(&kind).cloned().map(|of| (kind, of)))
            .collect();
        Ok(Resolved { kinds, params })
    }
}

/// The document that has a kind, as the index names it.
fn document_of(kind: &Kind) -> String {
    match kind.group.as_str() {
        "" => format!("api/{}", kind.version),
        group => format!("apis/{group}/{}", kind.version),
    }
}
