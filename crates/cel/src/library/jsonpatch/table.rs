//! The overloads.

use super::run::escape_key;
use crate::declare::Run::Strict;
use crate::declare::Sig::String;
use crate::declare::{CostClass, Function, global};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "jsonpatch.escapeKey",
        overloads: &[
            global("string_jsonpatch_escapeKey_string", &[String], String, CostClass::ParseSized, Strict(escape_key)),
        ],
    },
];
