//! The operators, `size` and `type`.

use crate::declare::Run::Planned;
use crate::declare::Sig::{
    Bool, Bytes, Double, Duration, Int, List, Map, String, Timestamp, Type, Uint,
};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::{A, B};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "_?_:_",
        overloads: &[
            global("conditional", &[Bool, A, A], A, CostClass::Conditional, Planned),
        ],
    },
    Function {
        name: "_&&_",
        overloads: &[
            global("logical_and", &[Bool, Bool], Bool, CostClass::Logical, Planned),
        ],
    },
    Function {
        name: "_||_",
        overloads: &[
            global("logical_or", &[Bool, Bool], Bool, CostClass::Logical, Planned),
        ],
    },
    Function {
        name: "!_",
        overloads: &[
            global("logical_not", &[Bool], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "@not_strictly_false",
        overloads: &[
            global("not_strictly_false", &[Bool], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_==_",
        overloads: &[
            global("equals", &[A, A], Bool, CostClass::Equal, Planned),
        ],
    },
    Function {
        name: "_!=_",
        overloads: &[
            global("not_equals", &[A, A], Bool, CostClass::Compare, Planned),
        ],
    },
    Function {
        name: "_+_",
        overloads: &[
            global("add_bytes", &[Bytes, Bytes], Bytes, CostClass::AddText, Planned),
            global("add_double", &[Double, Double], Double, CostClass::One, Planned),
            global("add_duration_duration", &[Duration, Duration], Duration, CostClass::One, Planned),
            global("add_duration_timestamp", &[Duration, Timestamp], Timestamp, CostClass::One, Planned),
            global("add_timestamp_duration", &[Timestamp, Duration], Timestamp, CostClass::One, Planned),
            global("add_int64", &[Int, Int], Int, CostClass::One, Planned),
            global("add_list", &[List(&A), List(&A)], List(&A), CostClass::AddList, Planned),
            global("add_string", &[String, String], String, CostClass::AddText, Planned),
            global("add_uint64", &[Uint, Uint], Uint, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_/_",
        overloads: &[
            global("divide_double", &[Double, Double], Double, CostClass::One, Planned),
            global("divide_int64", &[Int, Int], Int, CostClass::One, Planned),
            global("divide_uint64", &[Uint, Uint], Uint, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_%_",
        overloads: &[
            global("modulo_int64", &[Int, Int], Int, CostClass::One, Planned),
            global("modulo_uint64", &[Uint, Uint], Uint, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_*_",
        overloads: &[
            global("multiply_double", &[Double, Double], Double, CostClass::One, Planned),
            global("multiply_int64", &[Int, Int], Int, CostClass::One, Planned),
            global("multiply_uint64", &[Uint, Uint], Uint, CostClass::One, Planned),
        ],
    },
    Function {
        name: "-_",
        overloads: &[
            global("negate_double", &[Double], Double, CostClass::One, Planned),
            global("negate_int64", &[Int], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_-_",
        overloads: &[
            global("subtract_double", &[Double, Double], Double, CostClass::One, Planned),
            global("subtract_duration_duration", &[Duration, Duration], Duration, CostClass::One, Planned),
            global("subtract_int64", &[Int, Int], Int, CostClass::One, Planned),
            global("subtract_timestamp_duration", &[Timestamp, Duration], Timestamp, CostClass::One, Planned),
            global("subtract_timestamp_timestamp", &[Timestamp, Timestamp], Duration, CostClass::One, Planned),
            global("subtract_uint64", &[Uint, Uint], Uint, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_<_",
        overloads: &[
            global("less_bool", &[Bool, Bool], Bool, CostClass::One, Planned),
            global("less_int64", &[Int, Int], Bool, CostClass::One, Planned),
            global("less_int64_double", &[Int, Double], Bool, CostClass::One, Planned),
            global("less_int64_uint64", &[Int, Uint], Bool, CostClass::One, Planned),
            global("less_uint64", &[Uint, Uint], Bool, CostClass::One, Planned),
            global("less_uint64_double", &[Uint, Double], Bool, CostClass::One, Planned),
            global("less_uint64_int64", &[Uint, Int], Bool, CostClass::One, Planned),
            global("less_double", &[Double, Double], Bool, CostClass::One, Planned),
            global("less_double_int64", &[Double, Int], Bool, CostClass::One, Planned),
            global("less_double_uint64", &[Double, Uint], Bool, CostClass::One, Planned),
            global("less_string", &[String, String], Bool, CostClass::Compare, Planned),
            global("less_bytes", &[Bytes, Bytes], Bool, CostClass::Compare, Planned),
            global("less_timestamp", &[Timestamp, Timestamp], Bool, CostClass::One, Planned),
            global("less_duration", &[Duration, Duration], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_<=_",
        overloads: &[
            global("less_equals_bool", &[Bool, Bool], Bool, CostClass::One, Planned),
            global("less_equals_int64", &[Int, Int], Bool, CostClass::One, Planned),
            global("less_equals_int64_double", &[Int, Double], Bool, CostClass::One, Planned),
            global("less_equals_int64_uint64", &[Int, Uint], Bool, CostClass::One, Planned),
            global("less_equals_uint64", &[Uint, Uint], Bool, CostClass::One, Planned),
            global("less_equals_uint64_double", &[Uint, Double], Bool, CostClass::One, Planned),
            global("less_equals_uint64_int64", &[Uint, Int], Bool, CostClass::One, Planned),
            global("less_equals_double", &[Double, Double], Bool, CostClass::One, Planned),
            global("less_equals_double_int64", &[Double, Int], Bool, CostClass::One, Planned),
            global("less_equals_double_uint64", &[Double, Uint], Bool, CostClass::One, Planned),
            global("less_equals_string", &[String, String], Bool, CostClass::Compare, Planned),
            global("less_equals_bytes", &[Bytes, Bytes], Bool, CostClass::Compare, Planned),
            global("less_equals_timestamp", &[Timestamp, Timestamp], Bool, CostClass::One, Planned),
            global("less_equals_duration", &[Duration, Duration], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_>_",
        overloads: &[
            global("greater_bool", &[Bool, Bool], Bool, CostClass::One, Planned),
            global("greater_int64", &[Int, Int], Bool, CostClass::One, Planned),
            global("greater_int64_double", &[Int, Double], Bool, CostClass::One, Planned),
            global("greater_int64_uint64", &[Int, Uint], Bool, CostClass::One, Planned),
            global("greater_uint64", &[Uint, Uint], Bool, CostClass::One, Planned),
            global("greater_uint64_double", &[Uint, Double], Bool, CostClass::One, Planned),
            global("greater_uint64_int64", &[Uint, Int], Bool, CostClass::One, Planned),
            global("greater_double", &[Double, Double], Bool, CostClass::One, Planned),
            global("greater_double_int64", &[Double, Int], Bool, CostClass::One, Planned),
            global("greater_double_uint64", &[Double, Uint], Bool, CostClass::One, Planned),
            global("greater_string", &[String, String], Bool, CostClass::Compare, Planned),
            global("greater_bytes", &[Bytes, Bytes], Bool, CostClass::Compare, Planned),
            global("greater_timestamp", &[Timestamp, Timestamp], Bool, CostClass::One, Planned),
            global("greater_duration", &[Duration, Duration], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_>=_",
        overloads: &[
            global("greater_equals_bool", &[Bool, Bool], Bool, CostClass::One, Planned),
            global("greater_equals_int64", &[Int, Int], Bool, CostClass::One, Planned),
            global("greater_equals_int64_double", &[Int, Double], Bool, CostClass::One, Planned),
            global("greater_equals_int64_uint64", &[Int, Uint], Bool, CostClass::One, Planned),
            global("greater_equals_uint64", &[Uint, Uint], Bool, CostClass::One, Planned),
            global("greater_equals_uint64_double", &[Uint, Double], Bool, CostClass::One, Planned),
            global("greater_equals_uint64_int64", &[Uint, Int], Bool, CostClass::One, Planned),
            global("greater_equals_double", &[Double, Double], Bool, CostClass::One, Planned),
            global("greater_equals_double_int64", &[Double, Int], Bool, CostClass::One, Planned),
            global("greater_equals_double_uint64", &[Double, Uint], Bool, CostClass::One, Planned),
            global("greater_equals_string", &[String, String], Bool, CostClass::Compare, Planned),
            global("greater_equals_bytes", &[Bytes, Bytes], Bool, CostClass::Compare, Planned),
            global("greater_equals_timestamp", &[Timestamp, Timestamp], Bool, CostClass::One, Planned),
            global("greater_equals_duration", &[Duration, Duration], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "_[_]",
        overloads: &[
            global("index_list", &[List(&A), Int], A, CostClass::IndexList, Planned),
            global("index_map", &[Map(&A, &B), A], B, CostClass::IndexMap, Planned),
        ],
    },
    Function {
        name: "@in",
        overloads: &[
            global("in_list", &[A, List(&A)], Bool, CostClass::InList, Planned),
            global("in_map", &[A, Map(&A, &B)], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "size",
        overloads: &[
            global("size_bytes", &[Bytes], Int, CostClass::One, Planned),
            method("bytes_size", &[Bytes], Int, CostClass::One, Planned),
            global("size_list", &[List(&A)], Int, CostClass::One, Planned),
            method("list_size", &[List(&A)], Int, CostClass::One, Planned),
            global("size_map", &[Map(&A, &B)], Int, CostClass::One, Planned),
            method("map_size", &[Map(&A, &B)], Int, CostClass::One, Planned),
            global("size_string", &[String], Int, CostClass::One, Planned),
            method("string_size", &[String], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "type",
        overloads: &[
            global("type", &[A], Type(&A), CostClass::One, Planned),
        ],
    },
];
