//! The overloads.

use super::run::{
    add, as_approximate_float, as_integer, compare_to, is_greater_than, is_integer, is_less_than,
    is_quantity, quantity, sign, sub,
};
use crate::declare::Run::Strict;
use crate::declare::Sig::{Bool, Double, Int, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::QUANTITY;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "add",
        overloads: &[
            method("quantity_add", &[QUANTITY, QUANTITY], QUANTITY, CostClass::One, Strict(add)),
            method("quantity_add_int", &[QUANTITY, Int], QUANTITY, CostClass::One, Strict(add)),
        ],
    },
    Function {
        name: "asApproximateFloat",
        overloads: &[
            method("quantity_get_float", &[QUANTITY], Double, CostClass::One, Strict(as_approximate_float)),
        ],
    },
    Function {
        name: "asInteger",
        overloads: &[
            method("quantity_get_int", &[QUANTITY], Int, CostClass::One, Strict(as_integer)),
        ],
    },
    Function {
        name: "compareTo",
        overloads: &[
            method("quantity_compare_to", &[QUANTITY, QUANTITY], Int, CostClass::One, Strict(compare_to)),
        ],
    },
    Function {
        name: "isGreaterThan",
        overloads: &[
            method("quantity_is_greater_than", &[QUANTITY, QUANTITY], Bool, CostClass::One, Strict(is_greater_than)),
        ],
    },
    Function {
        name: "isInteger",
        overloads: &[
            method("quantity_is_integer", &[QUANTITY], Bool, CostClass::One, Strict(is_integer)),
        ],
    },
    Function {
        name: "isLessThan",
        overloads: &[
            method("quantity_is_less_than", &[QUANTITY, QUANTITY], Bool, CostClass::One, Strict(is_less_than)),
        ],
    },
    Function {
        name: "isQuantity",
        overloads: &[
            global("is_quantity_string", &[String], Bool, CostClass::Parse, Strict(is_quantity)),
        ],
    },
    Function {
        name: "quantity",
        overloads: &[
            global("string_to_quantity", &[String], QUANTITY, CostClass::Parse, Strict(quantity)),
        ],
    },
    Function {
        name: "sign",
        overloads: &[
            global("quantity_sign", &[QUANTITY], Int, CostClass::One, Strict(sign)),
        ],
    },
    Function {
        name: "sub",
        overloads: &[
            method("quantity_sub", &[QUANTITY, QUANTITY], QUANTITY, CostClass::One, Strict(sub)),
            method("quantity_sub_int", &[QUANTITY, Int], QUANTITY, CostClass::One, Strict(sub)),
        ],
    },
];
