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
    let found = DEPRECATED
        .into_iter()
        .find(|(plural, _)| target.group.is_empty() && target.resource == *plural);
    found.map(|(_, warning)| warning)
}
