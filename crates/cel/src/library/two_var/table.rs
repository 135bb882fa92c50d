//! The overloads.

use super::run::map_insert;
use crate::declare::Run::{Early, Strict};
use crate::declare::Sig::Map;
use crate::declare::{CostClass, Function, global};
use crate::library::names::{K, V};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cel.@mapInsert",
        overloads: &[
            global("@mapInsert_map_key_value", &[Map(&K, &V), K, V], Map(&K, &V), CostClass::One, Early(map_insert)),
            global("@mapInsert_map_map", &[Map(&K, &V), Map(&K, &V)], Map(&K, &V), CostClass::One, Strict(map_insert)),
        ],
    },
];
