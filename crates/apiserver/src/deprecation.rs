//! Deprecated kinds: every request for one gets a warning, whatever its result.

use std::borrow::Cow;

use coracle_api::catalog::Deprecated;

use crate::ApiError;
use crate::answer::{self, Answer};
use crate::served::Served;
use crate::status::Reason;

/// The response to a request, with a deprecation warning about the requested kind.
pub(crate) fn noted(served: &Served, result: Result<Answer, ApiError>) -> Result<Answer, ApiError> {
    let Some(warning) = warning(served) else {
        return result;
    };
    match result {
        Ok(answer) => Ok(answer::with_first_warning(answer, &warning)),
        // The kind was not reached.
        Err(error)
            if matches!(
                error.reason,
                Reason::MethodNotAllowed | Reason::NotAcceptable
            ) =>
        {
            Err(error)
        }
        Err(error) => Err(error.after(vec![warning.into_owned()])),
    }
}

fn warning(served: &Served) -> Option<Cow<'_, str>> {
    match served {
        Served::Custom(custom, version) => {
            let warning = custom.versions[*version].warning.as_deref();
            warning.map(Cow::Borrowed)
        }
        Served::BuiltIn(own) => {
            let deprecated = own.resource.deprecated.as_ref()?;
            Some(Cow::Owned(text(
                &own.kind.api_version(),
                &own.kind.name,
                deprecated,
            )))
        }
    }
}

/// In upstream's words.
fn text(api_version: &str, kind: &str, deprecated: &Deprecated) -> String {
    let mut text = format!(
        "{api_version} {kind} is deprecated in {}+",
        deprecated.since
    );
    if !deprecated.removed.is_empty() {
        text += &format!(", unavailable in {}+", deprecated.removed);
    }
    if !deprecated.replacement.is_empty() {
        text += &format!("; use {}", deprecated.replacement);
    }
    text
}

#[cfg(test)]
mod tests {
    use coracle_api::catalog::BUILTIN;

    use super::*;
    use crate::served::BuiltIn;

    #[test]
    fn warnings_name_releases_and_replacements() {
        let check = |group: &str, version: &str, plural: &str, expected: &str| {
            let resource = BUILTIN.resource(group, version, plural).unwrap();
            let served = Served::BuiltIn(BuiltIn::of(resource));
            assert_eq!(warning(&served).as_deref(), Some(expected));
        };

        check(
            "",
            "v1",
            "componentstatuses",
            "v1 ComponentStatus is deprecated in v1.19+",
        );
        check(
            "",
            "v1",
            "endpoints",
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        );
        check(
            "networking.k8s.io",
            "v1beta1",
            "ipaddresses",
            "networking.k8s.io/v1beta1 IPAddress is deprecated in v1.34+, unavailable in v1.37+",
        );
        check(
            "storage.k8s.io",
            "v1beta1",
            "volumeattributesclasses",
            "storage.k8s.io/v1beta1 VolumeAttributesClass is deprecated in v1.34+, unavailable in v1.37+; use \
             storage.k8s.io/v1 VolumeAttributesClass",
        );
    }
}
