//! The overloads.

use super::run::{
    family, ip, ip_is_canonical, is_global_unicast, is_ip, is_link_local_multicast,
    is_link_local_unicast, is_loopback, is_unspecified, to_string,
};
use crate::declare::Run::Strict;
use crate::declare::Sig::{Bool, Int, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::IP;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "family",
        overloads: &[
            method("ip_family", &[IP], Int, CostClass::One, Strict(family)),
        ],
    },
    Function {
        name: "ip",
        overloads: &[
            global("string_to_ip", &[String], IP, CostClass::Parse, Strict(ip)),
        ],
    },
    Function {
        name: "ip.isCanonical",
        overloads: &[
            global("ip_is_canonical", &[String], Bool, CostClass::Canonical, Strict(ip_is_canonical)),
        ],
    },
    Function {
        name: "isGlobalUnicast",
        overloads: &[
            method("ip_is_global_unicast", &[IP], Bool, CostClass::One, Strict(is_global_unicast)),
        ],
    },
    Function {
        name: "isIP",
        overloads: &[
            global("is_ip", &[String], Bool, CostClass::Parse, Strict(is_ip)),
        ],
    },
    Function {
        name: "isLinkLocalMulticast",
        overloads: &[
            method("ip_is_link_local_multicast", &[IP], Bool, CostClass::One, Strict(is_link_local_multicast)),
        ],
    },
    Function {
        name: "isLinkLocalUnicast",
        overloads: &[
            method("ip_is_link_local_unicast", &[IP], Bool, CostClass::One, Strict(is_link_local_unicast)),
        ],
    },
    Function {
        name: "isLoopback",
        overloads: &[
            method("ip_is_loopback", &[IP], Bool, CostClass::One, Strict(is_loopback)),
        ],
    },
    Function {
        name: "isUnspecified",
        overloads: &[
            method("ip_is_unspecified", &[IP], Bool, CostClass::One, Strict(is_unspecified)),
        ],
    },
    Function {
        name: "string",
        overloads: &[
            global("ip_to_string", &[IP], String, CostClass::One, Strict(to_string)),
        ],
    },
];
