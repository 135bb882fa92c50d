//! What is asked, and what is answered.

/// For which user is asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Authorizer {
    /// The user of the request that is evaluated.
    Requester,
    ServiceAccount {
        namespace: String,
        name: String,
    },
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Check {
    pub user: Authorizer,
    pub verb: String,
    pub request: Request,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// A path that is no resource's.
    Path(String),
    /// Of any version of the group. Selectors are not parsed yet; empty is none.
    Resource {
        group: String,
        resource: String,
        subresource: String,
        namespace: String,
        name: String,
        field_selector: String,
        label_selector: String,
    },
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    pub reason: String,
    pub error: Option<String>,
}
