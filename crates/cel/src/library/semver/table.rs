//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Bool, Int, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::SEMVER;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "compareTo",
        overloads: &[
            method("semver_compare_to", &[SEMVER, SEMVER], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isGreaterThan",
        overloads: &[
            method("semver_is_greater_than", &[SEMVER, SEMVER], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isLessThan",
        overloads: &[
            method("semver_is_less_than", &[SEMVER, SEMVER], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isSemver",
        overloads: &[
            global("is_semver_string", &[String], Bool, CostClass::Parse, Planned),
            global("is_semver_string_bool", &[String, Bool], Bool, CostClass::Parse, Planned),
        ],
    },
    Function {
        name: "major",
        overloads: &[
            method("semver_major", &[SEMVER], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "minor",
        overloads: &[
            method("semver_minor", &[SEMVER], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "patch",
        overloads: &[
            method("semver_patch", &[SEMVER], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "semver",
        overloads: &[
            global("string_to_semver", &[String], SEMVER, CostClass::Parse, Planned),
            global("string_bool_to_semver", &[String, Bool], SEMVER, CostClass::Parse, Planned),
        ],
    },
];
