//! The overloads.

use super::run::{
    index_of, is_sorted, last_index_of, max, min, sum_double, sum_duration, sum_int, sum_uint,
};
use crate::declare::Run::Strict;
use crate::declare::Sig::{Bool, Bytes, Double, Duration, Int, List, String, Timestamp, Uint};
use crate::declare::{CostClass, Function, method};
use crate::library::names::A;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "indexOf",
        overloads: &[
            method("list_a_index_of_int", &[List(&A), A], Int, CostClass::Traverse, Strict(index_of)),
        ],
    },
    Function {
        name: "isSorted",
        overloads: &[
            method("list_int_is_sorted_bool", &[List(&Int)], Bool, CostClass::Traverse, Strict(is_sorted)),
            method("list_uint_is_sorted_bool", &[List(&Uint)], Bool, CostClass::Traverse, Strict(is_sorted)),
            method("list_double_is_sorted_bool", &[List(&Double)], Bool, CostClass::Traverse, Strict(is_sorted)),
            method("list_bool_is_sorted_bool", &[List(&Bool)], Bool, CostClass::Traverse, Strict(is_sorted)),
            method("list_duration_is_sorted_bool", &[List(&Duration)], Bool, CostClass::Traverse, Strict(is_sorted)),
            method("list_timestamp_is_sorted_bool", &[List(&Timestamp)], Bool, CostClass::Traverse, Strict(is_sorted)),
            method("list_string_is_sorted_bool", &[List(&String)], Bool, CostClass::Traverse, Strict(is_sorted)),
            method("list_bytes_is_sorted_bool", &[List(&Bytes)], Bool, CostClass::Traverse, Strict(is_sorted)),
        ],
    },
    Function {
        name: "lastIndexOf",
        overloads: &[
            method("list_a_last_index_of_int", &[List(&A), A], Int, CostClass::Traverse, Strict(last_index_of)),
        ],
    },
    Function {
        name: "max",
        overloads: &[
            method("list_int_max_int", &[List(&Int)], Int, CostClass::Traverse, Strict(max)),
            method("list_uint_max_uint", &[List(&Uint)], Uint, CostClass::Traverse, Strict(max)),
            method("list_double_max_double", &[List(&Double)], Double, CostClass::Traverse, Strict(max)),
            method("list_bool_max_bool", &[List(&Bool)], Bool, CostClass::Traverse, Strict(max)),
            method("list_duration_max_duration", &[List(&Duration)], Duration, CostClass::Traverse, Strict(max)),
            method("list_timestamp_max_timestamp", &[List(&Timestamp)], Timestamp, CostClass::Traverse, Strict(max)),
            method("list_string_max_string", &[List(&String)], String, CostClass::Traverse, Strict(max)),
            method("list_bytes_max_bytes", &[List(&Bytes)], Bytes, CostClass::Traverse, Strict(max)),
        ],
    },
    Function {
        name: "min",
        overloads: &[
            method("list_int_min_int", &[List(&Int)], Int, CostClass::Traverse, Strict(min)),
            method("list_uint_min_uint", &[List(&Uint)], Uint, CostClass::Traverse, Strict(min)),
            method("list_double_min_double", &[List(&Double)], Double, CostClass::Traverse, Strict(min)),
            method("list_bool_min_bool", &[List(&Bool)], Bool, CostClass::Traverse, Strict(min)),
            method("list_duration_min_duration", &[List(&Duration)], Duration, CostClass::Traverse, Strict(min)),
            method("list_timestamp_min_timestamp", &[List(&Timestamp)], Timestamp, CostClass::Traverse, Strict(min)),
            method("list_string_min_string", &[List(&String)], String, CostClass::Traverse, Strict(min)),
            method("list_bytes_min_bytes", &[List(&Bytes)], Bytes, CostClass::Traverse, Strict(min)),
        ],
    },
    Function {
        name: "sum",
        overloads: &[
            method("list_int_sum_int", &[List(&Int)], Int, CostClass::Traverse, Strict(sum_int)),
            method("list_uint_sum_uint", &[List(&Uint)], Uint, CostClass::Traverse, Strict(sum_uint)),
            method("list_double_sum_double", &[List(&Double)], Double, CostClass::Traverse, Strict(sum_double)),
            method("list_duration_sum_duration", &[List(&Duration)], Duration, CostClass::Traverse, Strict(sum_duration)),
        ],
    },
];
