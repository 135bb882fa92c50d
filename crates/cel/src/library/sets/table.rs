//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Bool, List};
use crate::declare::{CostClass, Function, global};
use crate::library::names::T;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "sets.contains",
        overloads: &[
            global("list_sets_contains_list", &[List(&T), List(&T)], Bool, CostClass::Sets, Planned),
        ],
    },
    Function {
        name: "sets.equivalent",
        overloads: &[
            global("list_sets_equivalent_list", &[List(&T), List(&T)], Bool, CostClass::SetsEquivalent, Planned),
        ],
    },
    Function {
        name: "sets.intersects",
        overloads: &[
            global("list_sets_intersects_list", &[List(&T), List(&T)], Bool, CostClass::Sets, Planned),
        ],
    },
];
