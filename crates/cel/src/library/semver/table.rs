//! The overloads.

use super::run::{
    compare_to, is_greater_than, is_less_than, is_semver, major, minor, patch, semver,
};
use crate::declare::Run::Strict;
use crate::declare::Sig::{Bool, Int, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::SEMVER;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "compareTo",
        overloads: &[
            method("semver_compare_to", &[SEMVER, SEMVER], Int, CostClass::One, Strict(compare_to)),
        ],
    },
    Function {
        name: "isGreaterThan",
        overloads: &[
            method("semver_is_greater_than", &[SEMVER, SEMVER], Bool, CostClass::One, Strict(is_greater_than)),
        ],
    },
    Function {
        name: "isLessThan",
        overloads: &[
            method("semver_is_less_than", &[SEMVER, SEMVER], Bool, CostClass::One, Strict(is_less_than)),
        ],
    },
    Function {
        name: "isSemver",
        overloads: &[
            global("is_semver_string", &[String], Bool, CostClass::Parse, Strict(is_semver)),
            global("is_semver_string_bool", &[String, Bool], Bool, CostClass::Parse, Strict(is_semver)),
        ],
    },
    Function {
        name: "major",
        overloads: &[
            method("semver_major", &[SEMVER], Int, CostClass::One, Strict(major)),
        ],
    },
    Function {
        name: "minor",
        overloads: &[
            method("semver_minor", &[SEMVER], Int, CostClass::One, Strict(minor)),
        ],
    },
    Function {
        name: "patch",
        overloads: &[
            method("semver_patch", &[SEMVER], Int, CostClass::One, Strict(patch)),
        ],
    },
    Function {
        name: "semver",
        overloads: &[
            global("string_to_semver", &[String], SEMVER, CostClass::Parse, Strict(semver)),
            global("string_bool_to_semver", &[String, Bool], SEMVER, CostClass::Parse, Strict(semver)),
        ],
    },
];
