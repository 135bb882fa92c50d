//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Bool, Int, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::IP;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "family",
        overloads: &[
            method("ip_family", &[IP], Int, CostClass::One, Planned),
        ],
    },
    Function {
        name: "ip",
        overloads: &[
            global("string_to_ip", &[String], IP, CostClass::Parse, Planned),
        ],
    },
    Function {
        name: "ip.isCanonical",
        overloads: &[
            global("ip_is_canonical", &[String], Bool, CostClass::Canonical, Planned),
        ],
    },
    Function {
        name: "isGlobalUnicast",
        overloads: &[
            method("ip_is_global_unicast", &[IP], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isIP",
        overloads: &[
            global("is_ip", &[String], Bool, CostClass::Parse, Planned),
        ],
    },
    Function {
        name: "isLinkLocalMulticast",
        overloads: &[
            method("ip_is_link_local_multicast", &[IP], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isLinkLocalUnicast",
        overloads: &[
            method("ip_is_link_local_unicast", &[IP], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isLoopback",
        overloads: &[
            method("ip_is_loopback", &[IP], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isUnspecified",
        overloads: &[
            method("ip_is_unspecified", &[IP], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "string",
        overloads: &[
            global("ip_to_string", &[IP], String, CostClass::One, Planned),
        ],
    },
];
