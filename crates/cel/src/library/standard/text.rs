//! Tests of strings.

use super::run::{contains, ends_with, matches, starts_with};
use crate::declare::Run::Single;
use crate::declare::Sig::{Bool, String};
use crate::declare::{CostClass, Function, global, method};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "contains",
        overloads: &[
            method("contains_string", &[String, String], Bool, CostClass::Contains, Single(contains)),
        ],
    },
    Function {
        name: "endsWith",
        overloads: &[
            method("ends_with_string", &[String, String], Bool, CostClass::Affix, Single(ends_with)),
        ],
    },
    Function {
        name: "startsWith",
        overloads: &[
            method("starts_with_string", &[String, String], Bool, CostClass::Affix, Single(starts_with)),
        ],
    },
    Function {
        name: "matches",
        overloads: &[
            global("matches", &[String, String], Bool, CostClass::One, Single(matches)),
            method("matches_string", &[String, String], Bool, CostClass::Matches, Single(matches)),
        ],
    },
];
