//! Which bindings of a policy concern a request.

use super::params::Param;
use super::source::{Binding, Hook, Policy};
use crate::admission::Attributes;
use crate::admission::matching::{Match, Question};
use crate::cache::Caches;

/// A policy that concerns a request.
pub(super) enum Concern<'h, 'a, P> {
    /// It is to be evaluated.
    Evaluate(Evaluation<'h, 'a, P>),
    /// Or it cannot be: what follows is up to its failure policy.
    Misconfigured {
        policy: &'h Policy<P>,
        /// The binding at fault; `None`: the policy itself is.
        binding: Option<&'h Binding>,
        why: String,
    },
}

/// What is evaluated for one binding.
pub(super) struct Evaluation<'h, 'a, P> {
    pub(super) policy: &'h Policy<P>,
    pub(super) binding: &'h Binding,
    /// What the policy wants to see.
    pub(super) matched: Match<'a>,
    /// Once for each of these.
    pub(super) params: Vec<Param>,
}

/// In the order of the bindings.
pub(super) async fn all<'h, 'a, P>(
    hook: &'h Hook<P>,
    question: &Question<'a>,
    attributes: &Attributes<'_>,
    caches: &Caches,
) -> Vec<Concern<'h, 'a, P>> {
    let policy = &*hook.policy;
    let broken = |why: String| {
        vec![Concern::Misconfigured {
            policy,
            binding: None,
            why: format!("failed to configure policy: {why}"),
        }]
    };

    let Some(criteria) = &policy.criteria else {
        return broken("policy contained no match constraints, a required field".to_owned());
    };
    let matched = match criteria.matches(question) {
        Err(error) => return broken(error.message),
        Ok(None) => return Vec::new(),
        Ok(Some(matched)) => matched,
    };

    let served = match &policy.params {
        None => None,
        Some(kind) => match kind.resource(caches) {
            Ok(served) => Some(served),
            Err(why) => return broken(why),
        },
    };

    let mut concerns = Vec::new();
    for binding in &hook.bindings {
        let is_bound = match &binding.criteria {
            None => Ok(true),
            Some(criteria) => criteria.matches(question).map(|matched| matched.is_some()),
        };
        let params = match (is_bound, &served, &binding.params) {
            (Ok(false), _, _) => continue,
            (Err(error), _, _) => Err(error.message),
            (Ok(true), Some(served), Some(params)) => params
                .collect(served, attributes, caches)
                .await
                .map_err(|error| error.to_string()),
            (Ok(true), _, _) => Ok(vec![None]),
        };

        concerns.push(match params {
            Ok(params) => Concern::Evaluate(Evaluation {
                policy,
                binding,
                matched,
                params,
            }),
            Err(why) => Concern::Misconfigured {
                policy,
                binding: Some(binding),
                why: format!("failed to configure binding: {why}"),
            },
        });
    }
    concerns
}
