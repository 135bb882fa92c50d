//! Objects that are answered and never stored: reviews, and token requests.
//!
//! They are handled like every create up to validation: decoded, defaulted, given field owners,
//! admitted. The response is the object itself, with its status filled in.

use coracle_api::codec::canonical;
use coracle_api::{Value, defaults};
use http::StatusCode;

use super::{Call, Reply};
use crate::ApiError;
use crate::admission::{Notes, Operation, Options};
use crate::registry::{Part, Scope, Write, meta, owners};

/// A review in progress.
pub(super) struct Review<'a> {
    pub(super) call: &'a Call<'a>,
    scope: Scope<'a>,
    part: Part,
    notes: Notes,
    pub(super) object: Value,
    pub(super) warnings: Vec<String>,
}

impl<'a> Review<'a> {
    /// What was sent, admitted.
    pub(super) async fn of(call: &'a Call<'a>, part: Part) -> Result<Review<'a>, ApiError> {
        let scope = call.scope.as_sent();
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
        let object = owners::tracked(
            call.registry,
            &scope,
            part,
            None,
            object,
            &call.options,
            now,
        );
        let mut review = Review {
            call,
            scope,
            part,
            notes: Notes::default(),
            object,
            warnings,
        };

        let mut object = review.object.take();
        review.admit(&mut object).await?;
        review.object = object;

        Ok(review)
    }

    async fn admit(&self, object: &mut Value) -> Result<(), ApiError> {
        let name = self.name(object);
        let write = self.write();
        let options = Options::Create(&self.call.options);
        let attributes = write.attributes(Operation::Create, options, &name, &self.notes);
        let admission = &self.call.registry.admission;
        let admitted = admission.admit(object, &attributes).await;
        admitted.map_err(|refused| refused.after(self.notes.warnings.take()))
    }

    /// Runs validating admission.
    pub(super) async fn validate(&self) -> Result<(), ApiError> {
        let name = self.name(&self.object);
        let write = self.write();
        let options = Options::Create(&self.call.options);
        let attributes = write.attributes(Operation::Create, options, &name, &self.notes);
        let admission = &self.call.registry.admission;
        let admitted = admission.validate(Some(&self.object), &attributes).await;
        admitted.map_err(|refused| refused.after(self.notes.warnings.take()))
    }

    /// Of the path, or else of the object.
    fn name(&self, object: &Value) -> String {
        match self.call.name {
            "" => object.meta().name().to_owned(),
            name => name.to_owned(),
        }
    }

    /// The response.
    pub(super) fn reply(mut self) -> Reply {
        self.warnings.extend(self.notes.warnings.take());
        Reply {
            code: StatusCode::CREATED,
            object: self.object,
            warnings: self.warnings,
        }
    }

    fn write(&self) -> Write<'_> {
        let dry_run = self.call.options.dry_run;
        Write {
            subresource: self.call.subresource,
            ..Write::new(self.call.registry, &self.scope, self.part, dry_run)
        }
    }
}
