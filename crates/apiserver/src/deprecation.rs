//! Deprecated kinds: every request for one gets a warning, whatever its result.

use crate::ApiError;
use crate::answer::{self, Answer};
use crate::request::Target;
use crate::served::Served;
use crate::status::Reason;

const DEPRECATED: [(&str, &str); 2] = [
    (
        "componentstatuses",
        "v1 ComponentStatus is deprecated in v1.19+",
    ),
    (
        "endpoints",
        "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    ),
];

/// The response to a request, with a deprecation warning about the requested kind.
pub(crate) fn noted(
    target: &Target,
    served: &Served,
    result: Result<Answer, ApiError>,
) -> Result<Answer, ApiError> {
    let Some(warning) = warning(target, served) else {
        return result;
    };
    match result {
        Ok(answer) => Ok(answer::with_first_warning(answer, warning)),
        // The kind was not reached.
        Err(error)
            if matches!(
                error.reason,
                Reason::MethodNotAllowed | Reason::NotAcceptable
            ) =>
        {
            Err(error)
        }
        Err(error) => Err(error.after(vec![warning.to_owned()])),
    }
}

fn warning<'a>(target: &Target, served: &'a Served) -> Option<&'a str> {
    if let Some((_, version)) = served.custom() {
        return version.warning.as_deref();
    }
    builtin_warning(&target.group, &target.resource)
}

/// Whether a built-in API is deprecated.
pub(crate) fn is_deprecated(group: &str, plural: &str) -> bool {
    builtin_warning(group, plural).is_some()
}

fn builtin_warning(group: &str, plural: &str) -> Option<&'static str> {
    let mut found = DEPRECATED.into_iter();
    let found = found.find(|(deprecated, _)| group.is_empty() && plural == *deprecated);
    found.map(|(_, warning)| warning)
}
