//! What authorizers decide about: a user, a verb, and a resource or path.

use crate::User;

/// The attributes of a request, or of an access review.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    pub user: &'a User,
    pub verb: &'a str,
    pub target: AccessTarget<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum AccessTarget<'a> {
    Resource(ResourceTarget<'a>),
    /// A path that is not about a resource.
    Path(&'a str),
}

/// The objects that something is done to.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResourceTarget<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    /// Empty: everywhere, or nowhere.
    pub namespace: &'a str,
    /// Empty: all of them.
    pub name: &'a str,
    /// As the client wrote it; empty: none, or the verb does not support one.
    pub field_selector: &'a str,
}

impl<'a> Attributes<'a> {
    /// An action on a resource.
    pub fn on(user: &'a User, verb: &'a str, resource: ResourceTarget<'a>) -> Attributes<'a> {
        Attributes {
            user,
            verb,
            target: AccessTarget::Resource(resource),
        }
    }

    /// The namespace; empty where there is none.
    pub fn namespace(&self) -> &'a str {
        match self.target {
            AccessTarget::Resource(resource) => resource.namespace,
            AccessTarget::Path(_) => "",
        }
    }
}
