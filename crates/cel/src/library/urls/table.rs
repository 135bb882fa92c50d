//! The overloads.

use super::run::{
    get_escaped_path, get_host, get_hostname, get_port, get_query, get_scheme, is_url, url,
};
use crate::declare::Run::Strict;
use crate::declare::Sig::{Bool, List, Map, String};
use crate::declare::{CostClass, Function, global, method};
use crate::library::names::URL;

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "getEscapedPath",
        overloads: &[
            method("url_get_escaped_path", &[URL], String, CostClass::One, Strict(get_escaped_path)),
        ],
    },
    Function {
        name: "getHost",
        overloads: &[
            method("url_get_host", &[URL], String, CostClass::One, Strict(get_host)),
        ],
    },
    Function {
        name: "getHostname",
        overloads: &[
            method("url_get_hostname", &[URL], String, CostClass::One, Strict(get_hostname)),
        ],
    },
    Function {
        name: "getPort",
        overloads: &[
            method("url_get_port", &[URL], String, CostClass::One, Strict(get_port)),
        ],
    },
    Function {
        name: "getQuery",
        overloads: &[
            method("url_get_query", &[URL], Map(&String, &List(&String)), CostClass::One, Strict(get_query)),
        ],
    },
    Function {
        name: "getScheme",
        overloads: &[
            method("url_get_scheme", &[URL], String, CostClass::One, Strict(get_scheme)),
        ],
    },
    Function {
        name: "isURL",
        overloads: &[
            global("is_url_string", &[String], Bool, CostClass::One, Strict(is_url)),
        ],
    },
    Function {
        name: "url",
        overloads: &[
            global("string_to_url", &[String], URL, CostClass::ParseSized, Strict(url)),
        ],
    },
];
