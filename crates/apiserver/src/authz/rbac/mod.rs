//! RBAC: roles have rules, bindings grant roles to subjects.
//!
//! The [`policy`] is derived from the watch cache and indexed by subject, so that a decision costs
//! a few lookups and the rules of the bindings that name the user; an Allow allocates nothing.

pub mod policy;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use k8s_openapi::api::rbac::v1::RoleRef;

use coracle_kinds::rbac::{Rule, Unresolved, aggregate};
pub use policy::Policy;

use super::{Attributes, Authorizer, Decision, Grant, Listing};
use crate::authn::User;
use crate::cache::{Caches, Derived};

pub struct Rbac {
    policy: Derived<Policy>,
}

impl Rbac {
    pub fn new(caches: &Caches) -> Rbac {
        let source = |prefix| {
            caches
                .get(prefix)
                .expect("roles and bindings are built in")
                .clone()
        };
        Rbac {
            policy: Derived::new(policy::SOURCES.map(source).to_vec()),
        }
    }

    /// The rules that apply to a user in a namespace, and the errors while they were resolved.
    pub fn rules_of(&self, user: &User, namespace: &str) -> (Vec<Rule>, Vec<Unresolved>) {
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        self.policy.read().visit(user, namespace, |_, role| {
            match role {
                Ok(role) => rules.extend(role.iter().cloned()),
                Err(error) => errors.push(error),
            }
            true
        });
        (rules, errors)
    }

    /// The rules of the role that a binding in that namespace refers to.
    pub fn referred(&self, role: &RoleRef, namespace: &str) -> Result<Vec<Rule>, Unresolved> {
        self.policy
            .read()
            .referred(role, namespace)
            .map(|rules| rules.to_vec())
    }

    pub fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        self.policy.read().decide(attributes)
    }
}

impl Policy {
    fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        let mut allowed = None;
        let mut errors = Vec::new();
        self.visit(attributes.user, attributes.namespace(), |binding, role| {
            match role {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    allowed = Some(binding.clone());
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
            allowed.is_none()
        });

        match allowed {
            Some(binding) => Decision::Allow(Grant::Binding(binding)),
            None if errors.is_empty() => Decision::NoOpinion(String::new()),
            None => Decision::NoOpinion(format!("RBAC: {}", aggregate(&errors))),
        }
    }
}

#[async_trait]
impl Authorizer for Rbac {
    async fn authorize(&self, attributes: &Attributes<'_>) -> Decision {
        self.decide(attributes)
    }

    fn rules(&self, user: &User, namespace: &str) -> Listing {
        let (rules, errors) = self.rules_of(user, namespace);
        let error = if errors.is_empty() {
            String::new()
        } else {
            aggregate(&errors)
        };
        Listing {
            rules,
            incomplete: false,
            error,
        }
    }
}
