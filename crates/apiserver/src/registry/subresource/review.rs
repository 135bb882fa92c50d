//! Objects that are answered and never stored: reviews, and token requests.
//!
//! They are handled like every create up to validation: decoded, defaulted, given field owners,
//! admitted. The response is the object itself, with its status filled in.

use coracle_api::codec::canonical;
use coracle_api::{Value, defaults};
use http::StatusCode;

use super::{Call, Reply};
use crate::ApiError;
use crate::admission::{Attributes, Operation, Warnings};
use crate::registry::{Part, Scope, Write, meta, owners};
use crate::storage_version::StorageVersion;

/// A review in progress.
pub(super) struct Review<'a> {
    pub(super) call: &'a Call<'a>,
    scope: Scope<'a>,
    part: Part,
    noted: Warnings,
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
}

impl<'a> Review<'a> {
    /// What was sent, admitted.
    pub(super) async fn of(call: &'a Call<'a>, part: Part) -> Result<Review<'a>, ApiError> {
        let scope = call.scope;

        // Nothing is stored: it stays in the version it was sent in.
        let scope = Scope {
            storage_version: StorageVersion {
                kind: scope.kind,
                of: scope.of,
                ..scope.storage_version
            },
            ..scope
        };

        let (mut object, mut warnings) = call.object(None)?;
        let now = (call.registry.now)();

        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion", scope.kind.api_version());
            fields.insert("kind", scope.kind.name.clone());
        }

        defaults::apply(&mut object, scope.kind, now)?;
        canonical::canonicalize(&mut object, scope.of.node());
        meta::settle_namespace(&mut object, &scope)?;

        if part == Part::Main {
            meta::wipe_system_fields(&mut object);
        }

        warnings.extend(meta::merge_owners(&mut object));
        let object = owners::tracked(&scope, part, None, object, &call.options, now);
        let mut review = Review {
            call,
            scope,
            part,
            noted: Warnings::default(),
            object,
            warnings,
        };

        let mut object = review.object.take();
        call.registry
            .admission
            .admit(&mut object, &review.attributes())
            .await?;

        review.object = object;

        Ok(review)
    }

    /// Runs validating admission.
    pub(super) async fn validate(&self) -> Result<(), ApiError> {
        self.call
            .registry
            .admission
            .validate(Some(&self.object), &self.attributes())
            .await
    }

    /// The response.
    pub(super) fn reply(mut self) -> Reply {
        self.warnings.extend(self.noted.take());
        Reply {
            code: StatusCode::CREATED,
            object: self.object,
            warnings: self.warnings,
        }
    }

    fn attributes(&self) -> Attributes<'_> {
        Attributes {
            cx: Write::new(
                self.call.registry,
                &self.scope,
                self.part,
                self.call.options.dry_run,
            )
            .cx,
            operation: Operation::Create,
            name: self.call.name,
            old: None,
            warnings: &self.noted,
        }
    }
}
