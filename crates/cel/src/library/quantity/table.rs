//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Bool, Double, Int, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::QUANTITY;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "add",
        overloads: &[
            method("quantity_add", &[QUANTITY, QUANTITY], QUANTITY, CostClass::One, Planned),
            method("quantity_add_int", &[QUANTITY, Int], QUANTITY, CostClass::One, Planned),
        ],
    },
    Function {
        name: "asApproximateFloat",
        overloads: &[
            method("quantity_get_float", &[QUANTITY], Double, CostClass::One, Planned),
        ],
    },
    Function {
        name: "asInteger",
        overloads: &[
            method("quantity_get_int", &[QUANTITY], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "compareTo",
        overloads: &[
            method("quantity_compare_to", &[QUANTITY, QUANTITY], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isGreaterThan",
        overloads: &[
            method("quantity_is_greater_than", &[QUANTITY, QUANTITY], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isInteger",
        overloads: &[
            method("quantity_is_integer", &[QUANTITY], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isLessThan",
        overloads: &[
            method("quantity_is_less_than", &[QUANTITY, QUANTITY], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isQuantity",
        overloads: &[
            global("is_quantity_string", &[String], Bool, CostClass::Parse, Planned),
        ],
    },
    Function {
        name: "quantity",
        overloads: &[
            global("string_to_quantity", &[String], QUANTITY, CostClass::Parse, Planned),
        ],
    },
    Function {
        name: "sign",
        overloads: &[
            global("quantity_sign", &[QUANTITY], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "sub",
        overloads: &[
            method("quantity_sub", &[QUANTITY, QUANTITY], QUANTITY, CostClass::One, Planned),
            method("quantity_sub_int", &[QUANTITY, Int], QUANTITY, CostClass::One, Planned),
        ],
    },
];
