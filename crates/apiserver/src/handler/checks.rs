//! Checks of a request before its object is read or written.

use coracle_api::catalog::Resource;
use coracle_api::catalog::Subresource;
use coracle_api::codec::media_type::{self, Endpoint, MediaType, PatchType};
use coracle_api::go_text::Quoted;
use coracle_api::names;

use crate::ApiError;
use crate::registry::Scope;
use crate::request::{Request, Target, Verb};
use crate::served::Served;

/// The subresource that a path is about, if it is about one.
pub(super) fn subresource<'r>(
    served: &'r Served,
    target: &Target,
) -> Result<Option<&'r Subresource>, ApiError> {
    let resource = served.resource();

    if target.subresource.is_empty() {
        return Ok(None);
    }

    let found = resource
        .subresources
        .iter()
        .find(|subresource| subresource.name == target.subresource);

    // Only proxies have a path behind the subresource, and those never come here.
    found
        .filter(|_| target.rest.is_empty())
        .map(Some)
        .ok_or_else(|| match served {
            Served::BuiltIn(_) => ApiError::no_such_resource(),
            Served::Custom(..) => ApiError::not_found(resource, &target.name),
        })
}

/// Whether there is such a path at all: objects of namespaces are named below one, others never
/// are.
pub(super) fn check_shape(
    resource: &Resource,
    target: &Target,
    verb: Verb,
) -> Result<(), ApiError> {
    // Collections have a name only from a field selector.
    let named = !target.name.is_empty() && !verb.is_of_collection();
    let placed = !target.namespace.is_empty();
    let is_namespace = resource.group.is_empty() && resource.plural == "namespaces";
    match resource.namespaced {
        true if named && !placed => Err(ApiError::no_such_resource()),
        false if placed && !is_namespace => Err(ApiError::no_such_resource()),
        _ if named => check_name(&target.name),
        _ => Ok(()),
    }
}

/// What is only created has no objects with names.
pub(super) fn check_has_names(resource: &Resource, target: &Target) -> Result<(), ApiError> {
    let named = !target.name.is_empty() && target.subresource.is_empty();
    let is_only_created = resource.verbs.iter().all(|verb| verb == "create");
    match named && is_only_created {
        true => Err(ApiError::no_such_resource()),
        false => Ok(()),
    }
}

/// A name becomes a part of the object's key in the store.
pub(super) fn check_name(name: &str) -> Result<(), ApiError> {
    match names::path_segment_name(name)[..] {
        [] => Ok(()),
        ref wrong => Err(ApiError::bad_request(format!(
            "Name parameter invalid: {}: {}",
            Quoted(name),
            wrong.join(";")
        ))),
    }
}

/// Whether the path has the parts that the verb needs on this resource.
pub(super) fn shape_fits(resource: &Resource, target: &Target, verb: Verb) -> bool {
    let named = !target.name.is_empty();
    match verb {
        Verb::Create => {
            named != target.subresource.is_empty()
                && (!resource.namespaced || !target.namespace.is_empty())
        }
        Verb::DeleteCollection => !resource.namespaced || !target.namespace.is_empty(),
        Verb::Get | Verb::Update | Verb::Patch | Verb::Delete => {
            named && (!resource.namespaced || !target.namespace.is_empty())
        }
        _ => true,
    }
}

/// The type of a patch. Custom resources have no strategic merge patch: their schemas do not define
/// how lists are merged.
pub(super) fn patch_type(request: &Request<'_>, scope: &Scope<'_>) -> Result<PatchType, ApiError> {
    let known = PatchType::of(request.content_type());
    if scope.custom.is_some() {
        return known
            .filter(|known| *known != PatchType::StrategicMerge)
            .ok_or_else(|| {
                ApiError::unsupported_media_type(media_type::Unsupported::CustomPatch.to_string())
            });
    }

    known.ok_or_else(|| {
        let mut error = ApiError::unsupported_media_type("415: Unsupported Media Type");
        error.details = Some(Box::default());
        error
    })
}

/// A first check whether the path has a media type that the client accepts.
pub(super) fn check_produced(request: &Request<'_>) -> Result<(), ApiError> {
    let streams = matches!(request.info.verb, Verb::List | Verb::Watch);
    let mut produced: Vec<&str> = MediaType::all().map(MediaType::as_str).collect();
    if streams {
        produced.extend(MediaType::all().filter_map(MediaType::stream));
    }
    media_type::produces(request.accept(), &produced)
        .map_err(|refused| ApiError::not_acceptable_here(refused.to_string()))
}

/// The forms and shapes of responses about a resource.
pub(super) fn endpoint(served: &Served, subresource: Option<&Subresource>) -> Endpoint {
    if let Served::Custom(..) = served {
        return Endpoint::Custom;
    }
    let is_listed = || served.resource().verbs.iter().any(|verb| verb == "list");
    match subresource.map_or_else(is_listed, |subresource| subresource.has_table) {
        true => Endpoint::BuiltIn,
        false => Endpoint::WithoutTable,
    }
}
