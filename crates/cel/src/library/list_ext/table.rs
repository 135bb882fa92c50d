//! The overloads.

use super::run::{distinct, flatten, lists_range, reverse, slice, sort, sort_by_associated_keys};
use crate::declare::Run::{Early, Single, Strict};
use crate::declare::Sig::{Bool, Bytes, Double, Duration, Dyn, Int, List, String, Timestamp, Uint};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::T;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "slice",
        overloads: &[
            method("list_slice", &[List(&T), Int, Int], List(&T), CostClass::Slice, Early(slice)),
        ],
    },
    Function {
        name: "flatten",
        overloads: &[
            method("list_flatten", &[List(&List(&T))], List(&T), CostClass::Flatten, Single(flatten)),
            method("list_flatten_int", &[List(&Dyn), Int], List(&Dyn), CostClass::Flatten, Single(flatten)),
        ],
    },
    Function {
        name: "sort",
        overloads: &[
            method("list_int_sort", &[List(&Int)], List(&Int), CostClass::Sort, Single(sort)),
            method("list_uint_sort", &[List(&Uint)], List(&Uint), CostClass::Sort, Single(sort)),
            method("list_double_sort", &[List(&Double)], List(&Double), CostClass::Sort, Single(sort)),
            method("list_bool_sort", &[List(&Bool)], List(&Bool), CostClass::Sort, Single(sort)),
            method("list_google.protobuf.Duration_sort", &[List(&Duration)], List(&Duration), CostClass::Sort, Single(sort)),
            method("list_google.protobuf.Timestamp_sort", &[List(&Timestamp)], List(&Timestamp), CostClass::Sort, Single(sort)),
            method("list_string_sort", &[List(&String)], List(&String), CostClass::SortText, Single(sort)),
            method("list_bytes_sort", &[List(&Bytes)], List(&Bytes), CostClass::SortText, Single(sort)),
        ],
    },
    Function {
        name: "@sortByAssociatedKeys",
        overloads: &[
            method("list_int_sortByAssociatedKeys", &[List(&T), List(&Int)], List(&T), CostClass::SortBy, Single(sort_by_associated_keys)),
            method("list_uint_sortByAssociatedKeys", &[List(&T), List(&Uint)], List(&T), CostClass::SortBy, Single(sort_by_associated_keys)),
            method("list_double_sortByAssociatedKeys", &[List(&T), List(&Double)], List(&T), CostClass::SortBy, Single(sort_by_associated_keys)),
            method("list_bool_sortByAssociatedKeys", &[List(&T), List(&Bool)], List(&T), CostClass::SortBy, Single(sort_by_associated_keys)),
            method("list_google.protobuf.Duration_sortByAssociatedKeys", &[List(&T), List(&Duration)], List(&T), CostClass::SortBy, Single(sort_by_associated_keys)),
            method("list_google.protobuf.Timestamp_sortByAssociatedKeys", &[List(&T), List(&Timestamp)], List(&T), CostClass::SortBy, Single(sort_by_associated_keys)),
            method("list_string_sortByAssociatedKeys", &[List(&T), List(&String)], List(&T), CostClass::SortByText, Single(sort_by_associated_keys)),
            method("list_bytes_sortByAssociatedKeys", &[List(&T), List(&Bytes)], List(&T), CostClass::SortByText, Single(sort_by_associated_keys)),
        ],
    },
    Function {
        name: "lists.range",
        overloads: &[
            global("lists_range", &[Int], List(&Int), CostClass::Range, Strict(lists_range)),
        ],
    },
    Function {
        name: "reverse",
        overloads: &[
            method("list_reverse", &[List(&T)], List(&T), CostClass::Reverse, Strict(reverse)),
        ],
    },
    Function {
        name: "distinct",
        overloads: &[
            method("list_distinct", &[List(&T)], List(&T), CostClass::Distinct, Strict(distinct)),
        ],
    },
];
