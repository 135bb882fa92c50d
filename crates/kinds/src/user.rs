//! Users, as authorization, admission and audit see them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The group of authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of unauthenticated users.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group whose members may do anything.
pub const MASTERS: &str = "system:masters";

/// The user of requests without credentials.
pub const ANONYMOUS: &str = "system:anonymous";

/// The groups of every service account of a namespace.
pub fn service_account_groups(namespace: &str) -> [String; 2] {
    [
        "system:serviceaccounts".to_string(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// An authenticated user.
    pub fn authenticated(mut self) -> User {
        if !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_string());
        }
        self
    }

    /// The user of requests without credentials.
    pub fn anonymous() -> Arc<User> {
        Arc::new(User {
            name: ANONYMOUS.to_string(),
            groups: vec![UNAUTHENTICATED.to_string()],
            ..User::default()
        })
    }

    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether the user is in a group whose members may do anything.
    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }
}

/// The user of a request, and the client program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub user: Arc<User>,
    /// It names the owner of fields where the request does not.
    pub user_agent: String,
}

impl Caller {
    /// The server itself.
    pub fn system() -> Caller {
        let user = User {
            name: "system:apiserver".to_string(),
            groups: vec![MASTERS.to_string(), AUTHENTICATED.to_string()],
            ..User::default()
        };
        Caller {
            user: Arc::new(user),
            user_agent: "kube-apiserver".to_string(),
        }
    }
}
