//! Conversions between types.

use super::run::{
    same, to_bool, to_bytes, to_double, to_duration, to_int, to_string, to_timestamp, to_uint,
};
use crate::declare::Run::{Single, Strict};
use crate::declare::Sig::{Bool, Bytes, Double, Duration, Dyn, Int, String, Timestamp, Uint};
use crate::declare::{CostClass, Function, global};
use crate::library::names::A;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "bool",
        overloads: &[
            global("bool_to_bool", &[Bool], Bool, CostClass::One, Strict(same)),
            global("string_to_bool", &[String], Bool, CostClass::One, Strict(to_bool)),
        ],
    },
    Function {
        name: "bytes",
        overloads: &[
            global("bytes_to_bytes", &[Bytes], Bytes, CostClass::One, Strict(same)),
            global("string_to_bytes", &[String], Bytes, CostClass::StringToBytes, Strict(to_bytes)),
        ],
    },
    Function {
        name: "double",
        overloads: &[
            global("double_to_double", &[Double], Double, CostClass::One, Strict(same)),
            global("int64_to_double", &[Int], Double, CostClass::One, Strict(to_double)),
            global("string_to_double", &[String], Double, CostClass::One, Strict(to_double)),
            global("uint64_to_double", &[Uint], Double, CostClass::One, Strict(to_double)),
        ],
    },
    Function {
        name: "duration",
        overloads: &[
            global("duration_to_duration", &[Duration], Duration, CostClass::One, Strict(same)),
            global("int64_to_duration", &[Int], Duration, CostClass::One, Strict(to_duration)),
            global("string_to_duration", &[String], Duration, CostClass::One, Strict(to_duration)),
        ],
    },
    Function {
        name: "dyn",
        overloads: &[
            global("to_dyn", &[A], Dyn, CostClass::One, Single(same)),
        ],
    },
    Function {
        name: "int",
        overloads: &[
            global("int64_to_int64", &[Int], Int, CostClass::One, Strict(same)),
            global("double_to_int64", &[Double], Int, CostClass::One, Strict(to_int)),
            global("duration_to_int64", &[Duration], Int, CostClass::One, Strict(to_int)),
            global("string_to_int64", &[String], Int, CostClass::One, Strict(to_int)),
            global("timestamp_to_int64", &[Timestamp], Int, CostClass::One, Strict(to_int)),
            global("uint64_to_int64", &[Uint], Int, CostClass::One, Strict(to_int)),
        ],
    },
    Function {
        name: "string",
        overloads: &[
            global("string_to_string", &[String], String, CostClass::One, Strict(same)),
            global("bool_to_string", &[Bool], String, CostClass::One, Strict(to_string)),
            global("bytes_to_string", &[Bytes], String, CostClass::BytesToString, Strict(to_string)),
            global("double_to_string", &[Double], String, CostClass::One, Strict(to_string)),
            global("duration_to_string", &[Duration], String, CostClass::One, Strict(to_string)),
            global("int64_to_string", &[Int], String, CostClass::One, Strict(to_string)),
            global("timestamp_to_string", &[Timestamp], String, CostClass::One, Strict(to_string)),
            global("uint64_to_string", &[Uint], String, CostClass::One, Strict(to_string)),
        ],
    },
    Function {
        name: "timestamp",
        overloads: &[
            global("timestamp_to_timestamp", &[Timestamp], Timestamp, CostClass::One, Strict(same)),
            global("int64_to_timestamp", &[Int], Timestamp, CostClass::One, Strict(to_timestamp)),
            global("string_to_timestamp", &[String], Timestamp, CostClass::One, Strict(to_timestamp)),
        ],
    },
    Function {
        name: "uint",
        overloads: &[
            global("uint64_to_uint64", &[Uint], Uint, CostClass::One, Strict(same)),
            global("double_to_uint64", &[Double], Uint, CostClass::One, Strict(to_uint)),
            global("int64_to_uint64", &[Int], Uint, CostClass::One, Strict(to_uint)),
            global("string_to_uint64", &[String], Uint, CostClass::One, Strict(to_uint)),
        ],
    },
];
