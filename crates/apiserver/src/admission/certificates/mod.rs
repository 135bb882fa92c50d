//! Certificate admission: who may approve and sign requests for a signer, and which subjects are
//! never allowed.
//!
//! Authorization only decides who may write approvals at all. These plugins have the object, so
//! they authorize the verb on the virtual resource `signers` for its signer.

mod approval;
mod attest;
mod signing;
mod subject_restriction;

use coracle_api::Value;
use coracle_api::go_text::Quoted;

pub(super) use approval::CertificateApproval;
pub(super) use attest::ClusterTrustBundleAttest;
pub(super) use signing::CertificateSigning;
pub(super) use subject_restriction::CertificateSubjectRestriction;

use super::Attributes;
use crate::ApiError;
use crate::authz::{self, ResourceTarget};

const GROUP: &str = "certificates.k8s.io";
const REQUESTS: &str = "certificatesigningrequests";

/// The signer that a request is for.
fn signer(request: &Value) -> &str {
    request
        .at(&["spec", "signerName"])
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Refuses users that may not do this for the signer, nor for all signers of its domain. The signer
/// of the old object counts: an update cannot change it.
async fn check(verb: &str, what: &str, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    let Some(old) = attributes.old else {
        return Ok(());
    };
    let name = signer(old);
    if may(verb, name, attributes).await {
        return Ok(());
    }

    let why = format!(
        "user not permitted to {what} requests with signerName {}",
        Quoted(name)
    );

    Err(attributes.forbidden(old, &why))
}

/// Whether the user may do this for the signer, or for all signers of its domain.
async fn may(verb: &str, signer: &str, attributes: &Attributes<'_>) -> bool {
    let domain = signer.split('/').next().unwrap_or_default();
    let user = attributes.cx.user;
    for name in [signer, &format!("{domain}/*")] {
        let target_resource = ResourceTarget {
            group: GROUP,
            version: "*",
            resource: "signers",
            name,
            ..ResourceTarget::default()
        };

        let question = authz::Attributes::on(user, verb, target_resource);
        if attributes.cx.cluster.authorize(question).await {
            return true;
        }
    }

    false
}
