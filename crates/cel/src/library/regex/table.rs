//! The overloads.

use super::run::{find, find_all};
use crate::declare::Run::{Early, Strict};
use crate::declare::Sig::{Int, List, String};
use crate::declare::{CostClass, Function, method};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "find",
        overloads: &[
            method("string_find_string", &[String, String], String, CostClass::Find, Strict(find)),
        ],
    },
    Function {
        name: "findAll",
        overloads: &[
            method("string_find_all_string", &[String, String], List(&String), CostClass::Find, Strict(find_all)),
            method("string_find_all_string_int", &[String, String, Int], List(&String), CostClass::Find, Early(find_all)),
        ],
    },
];
