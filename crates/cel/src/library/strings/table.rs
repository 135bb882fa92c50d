//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Dyn, Int, List, String};
use crate::declare::{CostClass, Function, global, method};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "charAt",
        overloads: &[
            method("string_char_at_int", &[String, Int], String, CostClass::One, Planned),
        ],
    },
    Function {
        name: "indexOf",
        overloads: &[
            method("string_index_of_string", &[String, String], Int, CostClass::Traverse, Planned),
            method("string_index_of_string_int", &[String, String, Int], Int, CostClass::Traverse, Planned),
        ],
    },
    Function {
        name: "lastIndexOf",
        overloads: &[
            method("string_last_index_of_string", &[String, String], Int, CostClass::Traverse, Planned),
            method("string_last_index_of_string_int", &[String, String, Int], Int, CostClass::Traverse, Planned),
        ],
    },
    Function {
        name: "lowerAscii",
        overloads: &[
            method("string_lower_ascii", &[String], String, CostClass::TransformText, Planned),
        ],
    },
    Function {
        name: "replace",
        overloads: &[
            method("string_replace_string_string", &[String, String, String], String, CostClass::Replace, Planned),
            method("string_replace_string_string_int", &[String, String, String, Int], String, CostClass::Replace, Planned),
        ],
    },
    Function {
        name: "split",
        overloads: &[
            method("string_split_string", &[String, String], List(&String), CostClass::Split, Planned),
            method("string_split_string_int", &[String, String, Int], List(&String), CostClass::Split, Planned),
        ],
    },
    Function {
        name: "substring",
        overloads: &[
            method("string_substring_int", &[String, Int], String, CostClass::TransformText, Planned),
            method("string_substring_int_int", &[String, Int, Int], String, CostClass::TransformText, Planned),
        ],
    },
    Function {
        name: "trim",
        overloads: &[
            method("string_trim", &[String], String, CostClass::TransformText, Planned),
        ],
    },
    Function {
        name: "upperAscii",
        overloads: &[
            method("string_upper_ascii", &[String], String, CostClass::TransformText, Planned),
        ],
    },
    Function {
        name: "format",
        overloads: &[
            method("string_format", &[String, List(&Dyn)], String, CostClass::Format, Planned),
        ],
    },
    Function {
        name: "strings.quote",
        overloads: &[
            global("strings_quote", &[String], String, CostClass::Quote, Planned),
        ],
    },
    Function {
        name: "join",
        overloads: &[
            method("list_join", &[List(&String)], String, CostClass::Join, Planned),
            method("list_join_string", &[List(&String), String], String, CostClass::Join, Planned),
        ],
    },
];
