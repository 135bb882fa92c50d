//! MutatingAdmissionPolicy and ValidatingAdmissionPolicy: expressions that change or refuse objects.
//!
//! A policy has an effect where a binding says so. [`source`] reads and compiles policies when they
//! change; [`concern`] finds out which of them a request concerns, with which bindings and
//! [`params`]. [`validating`] evaluates all of them and refuses what one denies; [`mutating`]
//! applies one after the other. What expressions see, return and cost is in
//! `coracle_expressions::admission`. Policies and their bindings are never seen by policies.

mod concern;
mod metrics;
mod mutating;
mod params;
mod source;
mod validating;

use std::sync::Arc;

use coracle_api::Value;
use coracle_expressions::admission::Stopped;
use tokio::sync::Semaphore;

pub(super) use mutating::MutatingAdmissionPolicy;
pub(super) use validating::ValidatingAdmissionPolicy;

use self::concern::Concern;
use self::source::{Hook, Hooks, Source};
use super::expressions::Asking;
use super::matching::{Question, is_exempt_from_policies};
use super::{Attributes, Setup};
use crate::authz::Authorization;
use crate::cache::Caches;

/// What the two plugins have in common.
struct Policies<P> {
    source: Source<P>,
    caches: Arc<Caches>,
    authorization: Authorization,
    long_work: Arc<Semaphore>,
}

impl<P> Policies<P> {
    /// Policies of one resource, bound by those of another.
    fn new(
        setup: &Setup<'_>,
        policies: &str,
        bindings: &str,
        compile: fn(&Value) -> P,
    ) -> Policies<P> {
        Policies {
            source: Source::new(setup.caches, policies, bindings, compile),
            caches: setup.caches.clone(),
            authorization: setup.authorization.clone(),
            long_work: setup.long_work.clone(),
        }
    }

    /// The bound policies of the moment; none for objects that policies never see.
    fn hooks(&self, attributes: &Attributes<'_>) -> Hooks<P> {
        match is_exempt_from_policies(attributes) {
            true => Hooks::default(),
            false => self.source.hooks(),
        }
    }

    /// What of a policy concerns a request.
    async fn concerns<'h, 'a>(
        &self,
        hook: &'h Hook<P>,
        question: &Question<'a>,
        attributes: &Attributes<'_>,
    ) -> Vec<Concern<'h, 'a, P>> {
        concern::all(hook, question, attributes, &self.caches).await
    }

    fn asking<'s>(&'s self, attributes: &Attributes<'s>) -> Asking<'s> {
        Asking::new(&self.authorization, attributes.cx.user)
    }
}

/// Evaluates expressions, which may take long.
async fn evaluate<P, T>(
    policies: &Policies<P>,
    asking: &Asking<'_>,
    work: impl Fn(&coracle_cel::eval::Authorize<'_>) -> Result<T, Stopped>,
) -> Result<T, Stopped> {
    asking.settle_aside(&policies.long_work, work).await
}
