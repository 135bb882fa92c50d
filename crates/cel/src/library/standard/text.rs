//! Tests of strings.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Bool, String};
use crate::declare::{CostClass, Function, global, method};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "contains",
        overloads: &[
            method("contains_string", &[String, String], Bool, CostClass::Contains, Planned),
        ],
    },
    Function {
        name: "endsWith",
        overloads: &[
            method("ends_with_string", &[String, String], Bool, CostClass::Affix, Planned),
        ],
    },
    Function {
        name: "startsWith",
        overloads: &[
            method("starts_with_string", &[String, String], Bool, CostClass::Affix, Planned),
        ],
    },
    Function {
        name: "matches",
        overloads: &[
            global("matches", &[String, String], Bool, CostClass::One, Planned),
            method("matches_string", &[String, String], Bool, CostClass::Matches, Planned),
        ],
    },
];
