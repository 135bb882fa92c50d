//! The operators, `size` and `type`.

use super::run::{
    add, contains_element, divide, greater, greater_or_equal, less, less_or_equal, modulo,
    multiply, negate, not, size, subtract, type_of,
};
use crate::declare::Run::{Planned, Single};
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
            global("logical_not", &[Bool], Bool, CostClass::One, Single(not)),
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
            global("add_bytes", &[Bytes, Bytes], Bytes, CostClass::AddText, Single(add)),
            global("add_double", &[Double, Double], Double, CostClass::One, Single(add)),
            global("add_duration_duration", &[Duration, Duration], Duration, CostClass::One, Single(add)),
            global("add_duration_timestamp", &[Duration, Timestamp], Timestamp, CostClass::One, Single(add)),
            global("add_timestamp_duration", &[Timestamp, Duration], Timestamp, CostClass::One, Single(add)),
            global("add_int64", &[Int, Int], Int, CostClass::One, Single(add)),
            global("add_list", &[List(&A), List(&A)], List(&A), CostClass::AddList, Single(add)),
            global("add_string", &[String, String], String, CostClass::AddText, Single(add)),
            global("add_uint64", &[Uint, Uint], Uint, CostClass::One, Single(add)),
        ],
    },
    Function {
        name: "_/_",
        overloads: &[
            global("divide_double", &[Double, Double], Double, CostClass::One, Single(divide)),
            global("divide_int64", &[Int, Int], Int, CostClass::One, Single(divide)),
            global("divide_uint64", &[Uint, Uint], Uint, CostClass::One, Single(divide)),
        ],
    },
    Function {
        name: "_%_",
        overloads: &[
            global("modulo_int64", &[Int, Int], Int, CostClass::One, Single(modulo)),
            global("modulo_uint64", &[Uint, Uint], Uint, CostClass::One, Single(modulo)),
        ],
    },
    Function {
        name: "_*_",
        overloads: &[
            global("multiply_double", &[Double, Double], Double, CostClass::One, Single(multiply)),
            global("multiply_int64", &[Int, Int], Int, CostClass::One, Single(multiply)),
            global("multiply_uint64", &[Uint, Uint], Uint, CostClass::One, Single(multiply)),
        ],
    },
    Function {
        name: "-_",
        overloads: &[
            global("negate_double", &[Double], Double, CostClass::One, Single(negate)),
            global("negate_int64", &[Int], Int, CostClass::One, Single(negate)),
        ],
    },
    Function {
        name: "_-_",
        overloads: &[
            global("subtract_double", &[Double, Double], Double, CostClass::One, Single(subtract)),
            global("subtract_duration_duration", &[Duration, Duration], Duration, CostClass::One, Single(subtract)),
            global("subtract_int64", &[Int, Int], Int, CostClass::One, Single(subtract)),
            global("subtract_timestamp_duration", &[Timestamp, Duration], Timestamp, CostClass::One, Single(subtract)),
            global("subtract_timestamp_timestamp", &[Timestamp, Timestamp], Duration, CostClass::One, Single(subtract)),
            global("subtract_uint64", &[Uint, Uint], Uint, CostClass::One, Single(subtract)),
        ],
    },
    Function {
        name: "_<_",
        overloads: &[
            global("less_bool", &[Bool, Bool], Bool, CostClass::One, Single(less)),
            global("less_int64", &[Int, Int], Bool, CostClass::One, Single(less)),
            global("less_int64_double", &[Int, Double], Bool, CostClass::One, Single(less)),
            global("less_int64_uint64", &[Int, Uint], Bool, CostClass::One, Single(less)),
            global("less_uint64", &[Uint, Uint], Bool, CostClass::One, Single(less)),
            global("less_uint64_double", &[Uint, Double], Bool, CostClass::One, Single(less)),
            global("less_uint64_int64", &[Uint, Int], Bool, CostClass::One, Single(less)),
            global("less_double", &[Double, Double], Bool, CostClass::One, Single(less)),
            global("less_double_int64", &[Double, Int], Bool, CostClass::One, Single(less)),
            global("less_double_uint64", &[Double, Uint], Bool, CostClass::One, Single(less)),
            global("less_string", &[String, String], Bool, CostClass::Compare, Single(less)),
            global("less_bytes", &[Bytes, Bytes], Bool, CostClass::Compare, Single(less)),
            global("less_timestamp", &[Timestamp, Timestamp], Bool, CostClass::One, Single(less)),
            global("less_duration", &[Duration, Duration], Bool, CostClass::One, Single(less)),
        ],
    },
    Function {
        name: "_<=_",
        overloads: &[
            global("less_equals_bool", &[Bool, Bool], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_int64", &[Int, Int], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_int64_double", &[Int, Double], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_int64_uint64", &[Int, Uint], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_uint64", &[Uint, Uint], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_uint64_double", &[Uint, Double], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_uint64_int64", &[Uint, Int], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_double", &[Double, Double], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_double_int64", &[Double, Int], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_double_uint64", &[Double, Uint], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_string", &[String, String], Bool, CostClass::Compare, Single(less_or_equal)),
            global("less_equals_bytes", &[Bytes, Bytes], Bool, CostClass::Compare, Single(less_or_equal)),
            global("less_equals_timestamp", &[Timestamp, Timestamp], Bool, CostClass::One, Single(less_or_equal)),
            global("less_equals_duration", &[Duration, Duration], Bool, CostClass::One, Single(less_or_equal)),
        ],
    },
    Function {
        name: "_>_",
        overloads: &[
            global("greater_bool", &[Bool, Bool], Bool, CostClass::One, Single(greater)),
            global("greater_int64", &[Int, Int], Bool, CostClass::One, Single(greater)),
            global("greater_int64_double", &[Int, Double], Bool, CostClass::One, Single(greater)),
            global("greater_int64_uint64", &[Int, Uint], Bool, CostClass::One, Single(greater)),
            global("greater_uint64", &[Uint, Uint], Bool, CostClass::One, Single(greater)),
            global("greater_uint64_double", &[Uint, Double], Bool, CostClass::One, Single(greater)),
            global("greater_uint64_int64", &[Uint, Int], Bool, CostClass::One, Single(greater)),
            global("greater_double", &[Double, Double], Bool, CostClass::One, Single(greater)),
            global("greater_double_int64", &[Double, Int], Bool, CostClass::One, Single(greater)),
            global("greater_double_uint64", &[Double, Uint], Bool, CostClass::One, Single(greater)),
            global("greater_string", &[String, String], Bool, CostClass::Compare, Single(greater)),
            global("greater_bytes", &[Bytes, Bytes], Bool, CostClass::Compare, Single(greater)),
            global("greater_timestamp", &[Timestamp, Timestamp], Bool, CostClass::One, Single(greater)),
            global("greater_duration", &[Duration, Duration], Bool, CostClass::One, Single(greater)),
        ],
    },
    Function {
        name: "_>=_",
        overloads: &[
            global("greater_equals_bool", &[Bool, Bool], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_int64", &[Int, Int], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_int64_double", &[Int, Double], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_int64_uint64", &[Int, Uint], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_uint64", &[Uint, Uint], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_uint64_double", &[Uint, Double], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_uint64_int64", &[Uint, Int], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_double", &[Double, Double], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_double_int64", &[Double, Int], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_double_uint64", &[Double, Uint], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_string", &[String, String], Bool, CostClass::Compare, Single(greater_or_equal)),
            global("greater_equals_bytes", &[Bytes, Bytes], Bool, CostClass::Compare, Single(greater_or_equal)),
            global("greater_equals_timestamp", &[Timestamp, Timestamp], Bool, CostClass::One, Single(greater_or_equal)),
            global("greater_equals_duration", &[Duration, Duration], Bool, CostClass::One, Single(greater_or_equal)),
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
            global("in_list", &[A, List(&A)], Bool, CostClass::InList, Single(contains_element)),
            global("in_map", &[A, Map(&A, &B)], Bool, CostClass::One, Single(contains_element)),
        ],
    },
    Function {
        name: "size",
        overloads: &[
            global("size_bytes", &[Bytes], Int, CostClass::One, Single(size)),
            method("bytes_size", &[Bytes], Int, CostClass::One, Single(size)),
            global("size_list", &[List(&A)], Int, CostClass::One, Single(size)),
            method("list_size", &[List(&A)], Int, CostClass::One, Single(size)),
            global("size_map", &[Map(&A, &B)], Int, CostClass::One, Single(size)),
            method("map_size", &[Map(&A, &B)], Int, CostClass::One, Single(size)),
            global("size_string", &[String], Int, CostClass::One, Single(size)),
            method("string_size", &[String], Int, CostClass::One, Single(size)),
        ],
    },
    Function {
        name: "type",
        overloads: &[
            global("type", &[A], Type(&A), CostClass::One, Single(type_of)),
        ],
    },
];
