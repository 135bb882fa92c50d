//! What an object is called, and by what it is told from others.

use std::fmt;

use coracle_api::Text;
use coracle_api::uid::Uid;

use crate::views::Owner;

/// A UID as the graph's key: sixteen bytes for those that the server gives. An owner reference may
/// say anything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Id {
    /// In the form that the server gives.
    Uuid(Uid),
    /// Anything else.
    Other(Box<str>),
}

impl Id {
    /// The key of a UID.
    pub fn of(uid: &str) -> Id {
        match uid.parse::<Uid>() {
            // Capital letters make it another UID.
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

/// Everything by which an owner reference can be right or wrong: where an object is, and which it
/// is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// `apps/v1`.
    pub api_version: Text,
    /// `ReplicaSet`.
    pub kind: Text,
    /// The object's name.
    pub name: Text,
    /// Which it is.
    pub uid: Text,
    /// Empty for objects of the cluster.
    pub namespace: Text,
}

impl Identity {
    /// The owner that an object of `namespace` names.
    pub fn of_owner(owner: &Owner, namespace: &str) -> Identity {
        Identity {
            api_version: owner.api_version.clone(),
            kind: owner.kind.clone(),
            name: owner.name.clone(),
            uid: owner.uid.clone(),
            namespace: Text::new(namespace),
        }
    }

    /// The same, of the cluster.
    #[must_use]
    pub fn of_cluster(&self) -> Identity {
        Identity {
            namespace: Text::default(),
            ..self.clone()
        }
    }

    /// Whether a reference means this very object, as far as it says: references name no namespace.
    pub fn is_named_by(&self, owner: &Owner) -> bool {
        self.uid == owner.uid
            && self.api_version == owner.api_version
            && self.kind == owner.kind
            && self.name == owner.name
    }
}

/// As upstream writes it in events.
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
