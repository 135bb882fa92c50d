//! The attributes of a request that authorizers decide about.

use coracle_kinds::User;
use coracle_kinds::access::{AccessTarget, Attributes, ResourceTarget};

use crate::request::{Query, RequestInfo};

/// The attributes of a request.
pub fn attributes_of<'a>(
    user: &'a User,
    request: &'a RequestInfo,
    query: &'a Query,
) -> Attributes<'a> {
    let Some(target) = &request.target else {
        return Attributes {
            user,
            verb: request.verb.as_str(),
            target: AccessTarget::Path(&request.path),
        };
    };

    let selects = request.verb.is_of_collection();
    let target_resource = ResourceTarget {
        group: &target.group,
        version: &target.version,
        resource: &target.resource,
        subresource: &target.subresource,
        namespace: &target.namespace,
        name: &target.name,
        field_selector: query
            .get("fieldSelector")
            .filter(|_| selects)
            .unwrap_or_default(),
    };

    Attributes {
        user,
        verb: request.verb.as_str(),
        target: AccessTarget::Resource(target_resource),
    }
}
