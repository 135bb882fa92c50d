//! The overloads.

use super::run::{
    first, has_value, last, optional_none, optional_of, optional_of_non_zero_value, unwrap_all,
    value,
};
use crate::declare::Run::{Early, Planned, Strict};
use crate::declare::Sig::{Bool, Dyn, Int, List, Map, Optional, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::{K, V};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "optional.of",
        overloads: &[
            global("optional_of", &[V], Optional(&V), CostClass::One, Strict(optional_of)),
        ],
    },
    Function {
        name: "optional.ofNonZeroValue",
        overloads: &[
            global("optional_ofNonZeroValue", &[V], Optional(&V), CostClass::One, Strict(optional_of_non_zero_value)),
        ],
    },
    Function {
        name: "optional.none",
        overloads: &[
            global("optional_none", &[], Optional(&V), CostClass::One, Early(optional_none)),
        ],
    },
    Function {
        name: "value",
        overloads: &[
            method("optional_value", &[Optional(&V)], V, CostClass::One, Strict(value)),
        ],
    },
    Function {
        name: "hasValue",
        overloads: &[
            method("optional_hasValue", &[Optional(&V)], Bool, CostClass::One, Strict(has_value)),
        ],
    },
    Function {
        name: "or",
        overloads: &[
            method("optional_or_optional", &[Optional(&V), Optional(&V)], Optional(&V), CostClass::One, Planned),
        ],
    },
    Function {
        name: "orValue",
        overloads: &[
            method("optional_orValue_value", &[Optional(&V), V], V, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_?._",
        overloads: &[
            global("select_optional_field", &[Dyn, String], Optional(&V), CostClass::One, Planned),
        ],
    },
    Function {
        name: "_[?_]",
        overloads: &[
            global("list_optindex_optional_int", &[List(&V), Int], Optional(&V), CostClass::One, Planned),
            global("optional_list_optindex_optional_int", &[Optional(&List(&V)), Int], Optional(&V), CostClass::One, Planned),
            global("map_optindex_optional_value", &[Map(&K, &V), K], Optional(&V), CostClass::One, Planned),
            global("optional_map_optindex_optional_value", &[Optional(&Map(&K, &V)), K], Optional(&V), CostClass::One, Planned),
        ],
    },
    Function {
        name: "_[_]",
        overloads: &[
            global("optional_list_index_int", &[Optional(&List(&V)), Int], Optional(&V), CostClass::One, Planned),
            global("optional_map_index_value", &[Optional(&Map(&K, &V)), K], Optional(&V), CostClass::One, Planned),
        ],
    },
    Function {
        name: "last",
        overloads: &[
            method("list_last", &[List(&V)], Optional(&V), CostClass::One, Strict(last)),
        ],
    },
    Function {
        name: "first",
        overloads: &[
            method("list_first", &[List(&V)], Optional(&V), CostClass::One, Strict(first)),
        ],
    },
    Function {
        name: "optional.unwrap",
        overloads: &[
            global("optional_unwrap", &[List(&Optional(&V))], List(&V), CostClass::One, Strict(unwrap_all)),
        ],
    },
    Function {
        name: "unwrapOpt",
        overloads: &[
            method("optional_unwrapOpt", &[List(&Optional(&V))], List(&V), CostClass::One, Strict(unwrap_all)),
        ],
    },
];
