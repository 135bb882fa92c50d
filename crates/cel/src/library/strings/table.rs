//! The overloads.

use super::format;
use super::run::{
    char_at, index_of, join, last_index_of, lower_ascii, replace, split, strings_quote, substring,
    trim, upper_ascii,
};
use crate::declare::Run::{Early, Strict};
use crate::declare::Sig::{Dyn, Int, List, String};
use crate::declare::{CostClass, Function, global, method};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "charAt",
        overloads: &[
            method("string_char_at_int", &[String, Int], String, CostClass::One, Strict(char_at)),
        ],
    },
    Function {
        name: "indexOf",
        overloads: &[
            method("string_index_of_string", &[String, String], Int, CostClass::Traverse, Strict(index_of)),
            method("string_index_of_string_int", &[String, String, Int], Int, CostClass::Traverse, Early(index_of)),
        ],
    },
    Function {
        name: "lastIndexOf",
        overloads: &[
            method("string_last_index_of_string", &[String, String], Int, CostClass::Traverse, Strict(last_index_of)),
            method("string_last_index_of_string_int", &[String, String, Int], Int, CostClass::Traverse, Early(last_index_of)),
        ],
    },
    Function {
        name: "lowerAscii",
        overloads: &[
            method("string_lower_ascii", &[String], String, CostClass::TransformText, Strict(lower_ascii)),
        ],
    },
    Function {
        name: "replace",
        overloads: &[
            method("string_replace_string_string", &[String, String, String], String, CostClass::Replace, Early(replace)),
            method("string_replace_string_string_int", &[String, String, String, Int], String, CostClass::Replace, Early(replace)),
        ],
    },
    Function {
        name: "split",
        overloads: &[
            method("string_split_string", &[String, String], List(&String), CostClass::Split, Strict(split)),
            method("string_split_string_int", &[String, String, Int], List(&String), CostClass::Split, Early(split)),
        ],
    },
    Function {
        name: "substring",
        overloads: &[
            method("string_substring_int", &[String, Int], String, CostClass::TransformText, Strict(substring)),
            method("string_substring_int_int", &[String, Int, Int], String, CostClass::TransformText, Early(substring)),
        ],
    },
    Function {
        name: "trim",
        overloads: &[
            method("string_trim", &[String], String, CostClass::TransformText, Strict(trim)),
        ],
    },
    Function {
        name: "upperAscii",
        overloads: &[
            method("string_upper_ascii", &[String], String, CostClass::TransformText, Strict(upper_ascii)),
        ],
    },
    Function {
        name: "format",
        overloads: &[
            method("string_format", &[String, List(&Dyn)], String, CostClass::Format, Early(format::format)),
        ],
    },
    Function {
        name: "strings.quote",
        overloads: &[
            global("strings_quote", &[String], String, CostClass::Quote, Strict(strings_quote)),
        ],
    },
    Function {
        name: "join",
        overloads: &[
            method("list_join", &[List(&String)], String, CostClass::Join, Strict(join)),
            method("list_join_string", &[List(&String), String], String, CostClass::Join, Strict(join)),
        ],
    },
];
