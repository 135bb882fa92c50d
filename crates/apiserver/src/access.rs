//! Who comes in, and what they may do: what the chain asks about every request, and the registry about some.

use std::sync::Arc;

use crate::authn::Authentication;
use crate::authz::{AlwaysAllow, AlwaysDeny, Authorization, Authorizer, Rbac};
use crate::cache::Caches;

/// A way to decide what may be done: `--authorization-mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    AlwaysAllow,
    AlwaysDeny,
    Rbac,
}

pub struct Access {
    pub authentication: Authentication,
    pub authorization: Authorization,
    /// Asked by those who give rights away, whether it decides about requests or not.
    pub rbac: Arc<Rbac>,
}

impl Access {
    /// The chain of these modes, over filled caches.
    pub fn new(authentication: Authentication, modes: &[Mode], caches: &Caches) -> Access {
        let rbac = Arc::new(Rbac::new(caches));
        let authorizer = |mode: &Mode| -> Arc<dyn Authorizer> {
            match mode {
                Mode::AlwaysAllow => Arc::new(AlwaysAllow),
                Mode::AlwaysDeny => Arc::new(AlwaysDeny),
                Mode::Rbac => rbac.clone(),
            }
        };
        let chain = modes.iter().map(authorizer).collect();
        Access { authentication, authorization: Authorization { chain }, rbac }
    }
}
