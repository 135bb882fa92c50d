//! Kinds of `authentication.k8s.io`: questions about who somebody is.

pub(super) mod self_subject_review;
pub(super) mod token_review;

use coracle_api::{Map, Value};

use crate::authn::User;

/// A user as these kinds show one.
fn user_info(user: &User) -> Map {
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
