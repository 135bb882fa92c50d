//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Bool, Int, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::{CIDR, IP};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cidr",
        overloads: &[
            global("string_to_cidr", &[String], CIDR, CostClass::Parse, Planned),
        ],
    },
    Function {
        name: "containsCIDR",
        overloads: &[
            method("cidr_contains_cidr_string", &[CIDR, String], Bool, CostClass::ContainsCidrText, Planned),
            method("cidr_contains_cidr", &[CIDR, CIDR], Bool, CostClass::ContainsCidr, Planned),
        ],
    },
    Function {
        name: "containsIP",
        overloads: &[
            method("cidr_contains_ip_string", &[CIDR, String], Bool, CostClass::ContainsIpText, Planned),
            method("cidr_contains_ip_ip", &[CIDR, IP], Bool, CostClass::ContainsIp, Planned),
        ],
    },
    Function {
        name: "ip",
        overloads: &[
            method("cidr_ip", &[CIDR], IP, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isCIDR",
        overloads: &[
            global("is_cidr", &[String], Bool, CostClass::Parse, Planned),
        ],
    },
    Function {
        name: "masked",
        overloads: &[
            method("cidr_masked", &[CIDR], CIDR, CostClass::One, Planned),
        ],
    },
    Function {
        name: "prefixLength",
        overloads: &[
            method("cidr_prefix_length", &[CIDR], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "string",
        overloads: &[
            global("cidr_to_string", &[CIDR], String, CostClass::One, Planned),
        ],
    },
];
