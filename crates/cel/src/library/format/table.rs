//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{List, Optional, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::FORMAT;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "format.byte",
        overloads: &[
            global("format.byte", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.date",
        overloads: &[
            global("format.date", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.datetime",
        overloads: &[
            global("format.datetime", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.dns1035Label",
        overloads: &[
            global("format.dns1035Label", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.dns1035LabelPrefix",
        overloads: &[
            global("format.dns1035LabelPrefix", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.dns1123Label",
        overloads: &[
            global("format.dns1123Label", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.dns1123LabelPrefix",
        overloads: &[
            global("format.dns1123LabelPrefix", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.dns1123Subdomain",
        overloads: &[
            global("format.dns1123Subdomain", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.dns1123SubdomainPrefix",
        overloads: &[
            global("format.dns1123SubdomainPrefix", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.labelValue",
        overloads: &[
            global("format.labelValue", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.named",
        overloads: &[
            global("format-named", &[String], Optional(&FORMAT), CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.qualifiedName",
        overloads: &[
            global("format.qualifiedName", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.uri",
        overloads: &[
            global("format.uri", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "format.uuid",
        overloads: &[
            global("format.uuid", &[], FORMAT, CostClass::One, Planned),
        ],
    },
    Function {
        name: "validate",
        overloads: &[
            method("format-validate", &[FORMAT, String], Optional(&List(&String)), CostClass::Validate, Planned),
        ],
    },
];
