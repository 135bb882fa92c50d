//! Kinds of `authentication.k8s.io`: the user of a request or of a token.

use coracle_api::{Map, Value};

use crate::User;
use crate::behaviour::{Behaviour, Handler};

pub(crate) static SELF_SUBJECT_REVIEWS: Behaviour = Behaviour {
    handlers: &[("", Handler::SelfSubjectReview)],
    ..Behaviour::DEFAULT
};

pub(crate) static TOKEN_REVIEWS: Behaviour = Behaviour {
    handlers: &[("", Handler::TokenReview)],
    ..Behaviour::DEFAULT
};

/// A user as these kinds show one.
pub fn user_info(user: &User) -> Map {
    let list = |texts: &[String]| texts.iter().map(Value::string).collect::<Vec<_>>();
    let mut shown = Map::new();
    for (name, text) in [("username", &user.name), ("uid", &user.uid)] {
        if !text.is_empty() {
            shown.insert(name, text.as_str());
        }
    }

    if !user.groups.is_empty() {
        shown.insert("groups", list(&user.groups));
    }

    if !user.extra.is_empty() {
        let mut extra = Map::new();
        for (name, values) in &user.extra {
            extra.insert(name.as_str(), list(values));
        }
        shown.insert("extra", extra);
    }

    shown
}
