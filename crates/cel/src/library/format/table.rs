//! The overloads.

use super::run::{
    format_byte, format_date, format_datetime, format_dns1035_label, format_dns1035_label_prefix,
    format_dns1123_label, format_dns1123_label_prefix, format_dns1123_subdomain,
    format_dns1123_subdomain_prefix, format_label_value, format_named, format_qualified_name,
    format_uri, format_uuid, validate,
};
use crate::declare::Run::{Single, Strict};
use crate::declare::Sig::{List, Optional, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::FORMAT;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "format.byte",
        overloads: &[
            global("format.byte", &[], FORMAT, CostClass::One, Single(format_byte)),
        ],
    },
    Function {
        name: "format.date",
        overloads: &[
            global("format.date", &[], FORMAT, CostClass::One, Single(format_date)),
        ],
    },
    Function {
        name: "format.datetime",
        overloads: &[
            global("format.datetime", &[], FORMAT, CostClass::One, Single(format_datetime)),
        ],
    },
    Function {
        name: "format.dns1035Label",
        overloads: &[
            global("format.dns1035Label", &[], FORMAT, CostClass::One, Single(format_dns1035_label)),
        ],
    },
    Function {
        name: "format.dns1035LabelPrefix",
        overloads: &[
            global("format.dns1035LabelPrefix", &[], FORMAT, CostClass::One, Single(format_dns1035_label_prefix)),
        ],
    },
    Function {
        name: "format.dns1123Label",
        overloads: &[
            global("format.dns1123Label", &[], FORMAT, CostClass::One, Single(format_dns1123_label)),
        ],
    },
    Function {
        name: "format.dns1123LabelPrefix",
        overloads: &[
            global("format.dns1123LabelPrefix", &[], FORMAT, CostClass::One, Single(format_dns1123_label_prefix)),
        ],
    },
    Function {
        name: "format.dns1123Subdomain",
        overloads: &[
            global("format.dns1123Subdomain", &[], FORMAT, CostClass::One, Single(format_dns1123_subdomain)),
        ],
    },
    Function {
        name: "format.dns1123SubdomainPrefix",
        overloads: &[
            global("format.dns1123SubdomainPrefix", &[], FORMAT, CostClass::One, Single(format_dns1123_subdomain_prefix)),
        ],
    },
    Function {
        name: "format.labelValue",
        overloads: &[
            global("format.labelValue", &[], FORMAT, CostClass::One, Single(format_label_value)),
        ],
    },
    Function {
        name: "format.named",
        overloads: &[
            global("format-named", &[String], Optional(&FORMAT), CostClass::One, Strict(format_named)),
        ],
    },
    Function {
        name: "format.qualifiedName",
        overloads: &[
            global("format.qualifiedName", &[], FORMAT, CostClass::One, Single(format_qualified_name)),
        ],
    },
    Function {
        name: "format.uri",
        overloads: &[
            global("format.uri", &[], FORMAT, CostClass::One, Single(format_uri)),
        ],
    },
    Function {
        name: "format.uuid",
        overloads: &[
            global("format.uuid", &[], FORMAT, CostClass::One, Single(format_uuid)),
        ],
    },
    Function {
        name: "validate",
        overloads: &[
            method("format-validate", &[FORMAT, String], Optional(&List(&String)), CostClass::Validate, Strict(validate)),
        ],
    },
];
