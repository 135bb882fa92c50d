//! The row of a CertificateSigningRequest.

use coracle_api::time::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use crate::print::Row;
use crate::print::cells::{NONE, age, name, or};

pub(super) fn print_row(request: &CertificateSigningRequest, now: Timestamp) -> Row {
    let spec = &request.spec;
    let lasts = spec.expiration_seconds.map(|seconds| {
        Timestamp::from_unix(i64::from(seconds), 0)
            .since(Timestamp::from_unix(0, 0))
            .human()
            .to_string()
    });

    row![
        name(&request.metadata),
        age(&request.metadata, now),
        or(Some(&spec.signer_name), NONE),
        spec.username.as_deref().unwrap_or_default(),
        lasts.unwrap_or_else(|| NONE.to_string()),
        condition(request)
    ]
}

fn condition(request: &CertificateSigningRequest) -> String {
    let status = request.status.as_ref();
    let has = |kind: &str| {
        let mut conditions = status
            .iter()
            .flat_map(|status| status.conditions.iter().flatten());
        conditions.any(|condition| condition.type_ == kind)
    };

    let mut text = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_string();

    if has("Failed") {
        text.push_str(",Failed");
    }

    if status
        .and_then(|status| status.certificate.as_ref())
        .is_some_and(|issued| !issued.0.is_empty())
    {
        text.push_str(",Issued");
    }

    text
}
