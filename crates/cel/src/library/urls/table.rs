//! The overloads.

use crate::declare::Run::Planned;
use crate::declare::Sig::{Bool, List, Map, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::URL;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "getEscapedPath",
        overloads: &[
            method("url_get_escaped_path", &[URL], String, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getHost",
        overloads: &[
            method("url_get_host", &[URL], String, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getHostname",
        overloads: &[
            method("url_get_hostname", &[URL], String, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getPort",
        overloads: &[
            method("url_get_port", &[URL], String, CostClass::One, Planned),
        ],
    },
    Function {
        name: "getQuery",
        overloads: &[
            method("url_get_query", &[URL], Map(&String, &List(&String)), CostClass::One, Planned),
        ],
    },
    Function {
        name: "getScheme",
        overloads: &[
            method("url_get_scheme", &[URL], String, CostClass::One, Planned),
        ],
    },
    Function {
        name: "isURL",
        overloads: &[
            global("is_url_string", &[String], Bool, CostClass::One, Planned),
        ],
    },
    Function {
        name: "url",
        overloads: &[
            global("string_to_url", &[String], URL, CostClass::ParseSized, Planned),
        ],
    },
];
