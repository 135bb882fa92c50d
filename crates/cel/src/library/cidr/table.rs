//! The overloads.

use super::run::{cidr, contains_cidr, contains_ip, ip, is_cidr, masked, prefix_length, to_string};
use crate::declare::Run::Strict;
use crate::declare::Sig::{Bool, Int, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::{CIDR, IP};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "cidr",
        overloads: &[
            global("string_to_cidr", &[String], CIDR, CostClass::Parse, Strict(cidr)),
        ],
    },
    Function {
        name: "containsCIDR",
        overloads: &[
            method("cidr_contains_cidr_string", &[CIDR, String], Bool, CostClass::ContainsCidrText, Strict(contains_cidr)),
            method("cidr_contains_cidr", &[CIDR, CIDR], Bool, CostClass::ContainsCidr, Strict(contains_cidr)),
        ],
    },
    Function {
        name: "containsIP",
        overloads: &[
            method("cidr_contains_ip_string", &[CIDR, String], Bool, CostClass::ContainsIpText, Strict(contains_ip)),
            method("cidr_contains_ip_ip", &[CIDR, IP], Bool, CostClass::ContainsIp, Strict(contains_ip)),
        ],
    },
    Function {
        name: "ip",
        overloads: &[
            method("cidr_ip", &[CIDR], IP, CostClass::One, Strict(ip)),
        ],
    },
    Function {
        name: "isCIDR",
        overloads: &[
            global("is_cidr", &[String], Bool, CostClass::Parse, Strict(is_cidr)),
        ],
    },
    Function {
        name: "masked",
        overloads: &[
            method("cidr_masked", &[CIDR], CIDR, CostClass::One, Strict(masked)),
        ],
    },
    Function {
        name: "prefixLength",
        overloads: &[
            method("cidr_prefix_length", &[CIDR], Int, CostClass::One, Strict(prefix_length)),
        ],
    },
    Function {
        name: "string",
        overloads: &[
            global("cidr_to_string", &[CIDR], String, CostClass::One, Strict(to_string)),
        ],
    },
];
