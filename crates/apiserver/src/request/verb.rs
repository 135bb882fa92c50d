//! The verb of a request, as authorization names it.

use std::fmt;

/// What is done to objects, or the method of a request that is not about any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// The HTTP method in lower case, where it has no meaning for objects or the path is not about
    /// a resource. Empty: a method that HTTP does not define.
    Method(&'static str),
}

impl Verb {
    /// As roles, reviews and discovery spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Method(method) => method,
        }
    }

    /// Whether it leaves the objects of a resource as they are.
    pub fn is_read(self) -> bool {
        matches!(self, Verb::Get | Verb::List | Verb::Watch)
    }

    /// Whether it selects objects instead of naming one.
    pub fn is_of_collection(self) -> bool {
        matches!(self, Verb::List | Verb::Watch | Verb::DeleteCollection)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
