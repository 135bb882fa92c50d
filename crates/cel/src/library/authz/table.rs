//! The overloads.

use super::run::{
    allowed, check, error, errored, group, name, namespace, path, reason, resource,
    service_account, subresource,
};
use crate::declare::Run::{Early, Strict};
use crate::declare::Sig::{Bool, String};
use crate::declare::{CostClass, Function, method};
use crate::library::names::{AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK};

#[rustfmt::skip]
pub(in crate::library) const FUNCTIONS: &[Function] = &[
    Function {
        name: "allowed",
        overloads: &[
            method("decision_allowed", &[DECISION], Bool, CostClass::One, Strict(allowed)),
        ],
    },
    Function {
        name: "check",
        overloads: &[
            method("pathcheck_check", &[PATH_CHECK, String], DECISION, CostClass::AuthorizerCheck, Strict(check)),
            method("resourcecheck_check", &[RESOURCE_CHECK, String], DECISION, CostClass::AuthorizerCheck, Strict(check)),
        ],
    },
    Function {
        name: "error",
        overloads: &[
            method("decision_error", &[DECISION], String, CostClass::One, Strict(error)),
        ],
    },
    Function {
        name: "errored",
        overloads: &[
            method("decision_errored", &[DECISION], Bool, CostClass::One, Strict(errored)),
        ],
    },
    Function {
        name: "group",
        overloads: &[
            method("authorizer_group", &[AUTHORIZER, String], GROUP_CHECK, CostClass::One, Strict(group)),
        ],
    },
    Function {
        name: "name",
        overloads: &[
            method("resourcecheck_name", &[RESOURCE_CHECK, String], RESOURCE_CHECK, CostClass::One, Strict(name)),
        ],
    },
    Function {
        name: "namespace",
        overloads: &[
            method("resourcecheck_namespace", &[RESOURCE_CHECK, String], RESOURCE_CHECK, CostClass::One, Strict(namespace)),
        ],
    },
    Function {
        name: "path",
        overloads: &[
            method("authorizer_path", &[AUTHORIZER, String], PATH_CHECK, CostClass::One, Strict(path)),
        ],
    },
    Function {
        name: "reason",
        overloads: &[
            method("decision_reason", &[DECISION], String, CostClass::One, Strict(reason)),
        ],
    },
    Function {
        name: "resource",
        overloads: &[
            method("groupcheck_resource", &[GROUP_CHECK, String], RESOURCE_CHECK, CostClass::One, Strict(resource)),
        ],
    },
    Function {
        name: "serviceAccount",
        overloads: &[
            method("authorizer_serviceaccount", &[AUTHORIZER, String, String], AUTHORIZER, CostClass::One, Early(service_account)),
        ],
    },
    Function {
        name: "subresource",
        overloads: &[
            method("resourcecheck_subresource", &[RESOURCE_CHECK, String], RESOURCE_CHECK, CostClass::One, Strict(subresource)),
        ],
    },
];
