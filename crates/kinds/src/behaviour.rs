//! Everything that is particular to one kind, in one value.

use crate::Part;
use crate::print::Printer;
use crate::strategy::{AnyStrategy, Generic};

/// What one kind does differently. Every file of a kind has a static of this type, with
/// `..Behaviour::DEFAULT` for what the kind does like all others.
pub struct Behaviour {
    /// What writes fill in, validate and warn about.
    pub strategy: &'static dyn AnyStrategy,
    /// Prints the row of an object in a table; `None`: name and creation time.
    pub printer: Option<Printer>,
    /// Fields that a write of this part cannot own, besides those that hold for every kind.
    pub reset_fields: &'static [(Part, &'static [&'static [&'static str]])],
    /// Subresources that are created, and their handlers. The empty name is the resource itself:
    /// its objects are answered and not stored.
    pub handlers: &'static [(&'static str, Handler)],
}

/// A handler of the API server for objects that are posted to a subresource, or posted as a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// Binds a pod to a node.
    Binding,
    /// Deletes a pod if its disruption budget allows it.
    Eviction,
    /// Issues a token for a service account.
    TokenRequest,
    /// Returns the user that a token belongs to.
    TokenReview,
    /// Returns the user of the request.
    SelfSubjectReview,
    /// Returns whether a user may do something.
    AccessReview,
    /// Lists what the user may do in a namespace.
    RulesReview,
}

impl Behaviour {
    /// A kind that does nothing differently.
    pub const DEFAULT: Behaviour = Behaviour {
        strategy: &Generic,
        printer: None,
        reset_fields: &[],
        handlers: &[],
    };

    /// The handler of creates of a subresource; of the resource itself where the name is empty.
    pub fn handler(&self, subresource: &str) -> Option<Handler> {
        self.handlers
            .iter()
            .find(|(name, _)| *name == subresource)
            .map(|(_, handler)| *handler)
    }
}
