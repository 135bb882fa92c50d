//! `x-kubernetes-validations`: rules of custom resources.
//!
//! A rule sees the value of its node as `self`, and the value that the update replaces as
//! `oldSelf`. [`compile`] compiles the rules of one node, which a definition's validation needs to
//! report errors and costs. [`Validator`] holds the rules of a whole schema and evaluates them on
//! objects.

mod compile;
pub mod cost;
mod ratchet;
mod validate;
mod validator;

pub use compile::{
    CompileError, Compiled, Condition, Message, Selves, compile, environment, estimated,
};
pub use validate::Findings;
pub use validator::Validator;
