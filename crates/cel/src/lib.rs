//! The Common Expression Language, as Kubernetes v1.36 has it.
//!
//! A text becomes tokens (`lex`), a tree (`parse`, with the macros of `macros` expanded), a
//! tree with types (`check`, then `validate`), and a program. [`env`] holds what an expression
//! may use: libraries, variables, object types, limits. What functions there are, and what they
//! cost, is data ([`declare`]): the checker, the estimator, the planner and the meter read the same
//! line of a table.
//!
//! Errors have upstream's texts and places, because users see them ([`source`]); those of the
//! syntax are made by `syntax_errors`, which runs only after the parser refused a text.
//!
//! This crate knows neither HTTP nor stores, and nothing of Kubernetes' objects but what its users
//! declare. Nothing in it does I/O or reads a clock.

pub mod ast;
mod base64;
mod check;
pub mod cost;
pub mod declare;
pub mod env;
pub mod escape;
pub mod eval;
pub mod failure;
pub mod fuzz;
pub mod large_stack;
mod lex;
pub mod library;
mod macros;
mod parse;
mod plan;
pub mod program;
pub mod source;
mod syntax_errors;
pub mod types;
mod validate;
pub mod value;
