//! The identity of an object.

use std::fmt;

use coracle_api::Text;
use coracle_api::uid::Uid;

use crate::views::Owner;

/// A UID as key of the graph: sixteen bytes for those that the server assigns. An owner reference
/// may contain anything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// In the server's format.
    Uuid(Uid),
    /// Anything else.
    Other(Box<str>),
}

impl Id {
    /// The key of a UID.
    pub fn of(uid: &str) -> Id {
        match uid.parse::<Uid>() {
            // Uppercase letters make it another UID.
            Ok(id) if !uid.bytes().any(|byte| byte.is_ascii_uppercase()) => Id::Uuid(id),
            _ => Id::Other(uid.into()),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Id::Uuid(uid) => uid.fmt(out),
            Id::Other(text) => out.write_str(text),
        }
    }
}

/// All fields by which an owner reference can be right or wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// `apps/v1`.
    pub api_version: Text,
    /// `ReplicaSet`.
    pub kind: Text,
    /// The object's name.
    pub name: Text,
    /// The UID.
    pub uid: Text,
    /// Empty for cluster-scoped objects.
    pub namespace: Text,
}

impl Identity {
    /// The owner named by an object of `namespace`.
    pub fn of_owner(owner: &Owner, namespace: &str) -> Identity {
        Identity {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            namespace: Text::new(namespace),
        }
    }

    /// The same, cluster-scoped.
    #[must_use]
    pub fn of_cluster(&self) -> Identity {
        Identity {
            namespace: Text::default(),
            ..self.clone()
        }
    }

    /// Whether a reference means this object: references have no namespace.
    pub fn is_named_by(&self, owner: &Owner) -> bool {
        self.uid == owner.uid
            && self.api_version == owner.api_version
            && self.kind == owner.kind
            && self.name == owner.name
    }
}

/// The format of upstream's events.
impl fmt::Display for Identity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Identity {
            api_version,
            kind,
            namespace,
            name,
            uid,
        } = self;
        write!(
            out,
            "[{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}]"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_of_the_server_takes_no_space_of_its_own() {
        let check = |uid: &str, is_uuid: bool| {
            assert_eq!(matches!(Id::of(uid), Id::Uuid(_)), is_uuid, "{uid}");
            assert_eq!(Id::of(uid).to_string(), uid);
        };
        check("0b9c1fd2-6c1b-4e83-9f3a-5a7f2f0d5b11", true);
        check("0B9C1FD2-6c1b-4e83-9f3a-5a7f2f0d5b11", false);
        check("anything", false);
        check("", false);
    }
}
