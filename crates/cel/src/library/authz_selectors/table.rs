//! The overloads.

use super::run::{field_selector, label_selector};
use crate::declare::Run::Strict;
use crate::declare::Sig::String;
use crate::declare::{CostClass, Function, method};
use crate::library::names::RESOURCE_CHECK;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "fieldSelector",
        overloads: &[
            method("authorizer_fieldselector", &[RESOURCE_CHECK, String], RESOURCE_CHECK, CostClass::Selector, Strict(field_selector)),
        ],
    },
    Function {
        name: "labelSelector",
        overloads: &[
            method("authorizer_labelselector", &[RESOURCE_CHECK, String], RESOURCE_CHECK, CostClass::Selector, Strict(label_selector)),
        ],
    },
];
