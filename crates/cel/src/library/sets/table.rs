//! The overloads.

use super::run::{sets_contains, sets_equivalent, sets_intersects};
use crate::declare::Run::Strict;
use crate::declare::Sig::{Bool, List};
use crate::declare::{CostClass, Function, global};
use crate::library::names::T;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "sets.contains",
        overloads: &[
            global("list_sets_contains_list", &[List(&T), List(&T)], Bool, CostClass::Sets, Strict(sets_contains)),
        ],
    },
    Function {
        name: "sets.equivalent",
        overloads: &[
            global("list_sets_equivalent_list", &[List(&T), List(&T)], Bool, CostClass::SetsEquivalent, Strict(sets_equivalent)),
        ],
    },
    Function {
        name: "sets.intersects",
        overloads: &[
            global("list_sets_intersects_list", &[List(&T), List(&T)], Bool, CostClass::Sets, Strict(sets_intersects)),
        ],
    },
];
