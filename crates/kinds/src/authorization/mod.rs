//! Kinds of `authorization.k8s.io`: what a user may do.

pub mod access_review;

use crate::behaviour::{Behaviour, Handler};

pub(crate) static ACCESS_REVIEWS: Behaviour = Behaviour {
    handlers: &[("", Handler::AccessReview)],
    ..Behaviour::DEFAULT
};

pub(crate) static RULES_REVIEWS: Behaviour = Behaviour {
    handlers: &[("", Handler::RulesReview)],
    ..Behaviour::DEFAULT
};
