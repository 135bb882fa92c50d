//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Int, List, String};
use crate::declare::{CostClass, Function, method};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "find",
        overloads: &[
            method("string_find_string", &[String, String], String, CostClass::Find, Planned),
        ],
    },
    Function {
        name: "findAll",
        overloads: &[
            method("string_find_all_string", &[String, String], List(&String), CostClass::Find, Planned),
            method("string_find_all_string_int", &[String, String, Int], List(&String), CostClass::Find, Planned),
        ],
    },
];
