//! Conversions between types.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Bool, Bytes, Double, Duration, Dyn, Int, String, Timestamp, Uint};
use crate::declare::{CostClass, Function, global};
use crate::library::names::A;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "bool",
        overloads: &[
            global("bool_to_bool", &[Bool], Bool, CostClass::One, Planned),
            global("string_to_bool", &[String], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "bytes",
        overloads: &[
            global("bytes_to_bytes", &[Bytes], Bytes, CostClass::One, Planned),
            global("string_to_bytes", &[String], Bytes, CostClass::StringToBytes, Planned),
        ],
    },
    Function {
        name: "double",
        overloads: &[
            global("double_to_double", &[Double], Double, CostClass::One, Planned),
            global("int64_to_double", &[Int], Double, CostClass::One, Planned),
            global("string_to_double", &[String], Double, CostClass::One, Planned),
            global("uint64_to_double", &[Uint], Double, CostClass::One, Planned),
        ],
    },
    Function {
        name: "duration",
        overloads: &[
            global("duration_to_duration", &[Duration], Duration, CostClass::One, Planned),
            global("int64_to_duration", &[Int], Duration, CostClass::One, Planned),
            global("string_to_duration", &[String], Duration, CostClass::One, Planned),
        ],
    },
    Function {
        name: "dyn",
        overloads: &[
            global("to_dyn", &[A], Dyn, CostClass::One, Planned),
        ],
    },
    Function {
        name: "int",
        overloads: &[
            global("int64_to_int64", &[Int], Int, CostClass::One, Planned),
            global("double_to_int64", &[Double], Int, CostClass::One, Planned),
            global("duration_to_int64", &[Duration], Int, CostClass::One, Planned),
            global("string_to_int64", &[String], Int, CostClass::One, Planned),
            global("timestamp_to_int64", &[Timestamp], Int, CostClass::One, Planned),
            global("uint64_to_int64", &[Uint], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "string",
        overloads: &[
            global("string_to_string", &[String], String, CostClass::One, Planned),
            global("bool_to_string", &[Bool], String, CostClass::One, Planned),
            global("bytes_to_string", &[Bytes], String, CostClass::BytesToString, Planned),
            global("double_to_string", &[Double], String, CostClass::One, Planned),
            global("duration_to_string", &[Duration], String, CostClass::One, Planned),
            global("int64_to_string", &[Int], String, CostClass::One, Planned),
            global("timestamp_to_string", &[Timestamp], String, CostClass::One, Planned),
            global("uint64_to_string", &[Uint], String, CostClass::One, Planned),
        ],
    },
    Function {
        name: "timestamp",
        overloads: &[
            global("timestamp_to_timestamp", &[Timestamp], Timestamp, CostClass::One, Planned),
            global("int64_to_timestamp", &[Int], Timestamp, CostClass::One, Planned),
            global("string_to_timestamp", &[String], Timestamp, CostClass::One, Planned),
        ],
    },
    Function {
        name: "uint",
        overloads: &[
            global("uint64_to_uint64", &[Uint], Uint, CostClass::One, Planned),
            global("double_to_uint64", &[Double], Uint, CostClass::One, Planned),
            global("int64_to_uint64", &[Int], Uint, CostClass::One, Planned),
            global("string_to_uint64", &[String], Uint, CostClass::One, Planned),
        ],
    },
];
