//! CertificateSubjectRestriction: no `kubernetes.io/kube-apiserver-client` certificate with the
//! group `system:masters`.

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use coracle_api::Value;
use coracle_api::certificate_subject::CertificateSubject;
use coracle_kinds::Part;
use rustls::pki_types::CertificateSigningRequestDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

use super::super::{Attributes, Plugin};
use super::{GROUP, REQUESTS, signer};
use crate::ApiError;

const CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
const MASTERS: &str = "system:masters";

pub(in crate::admission) struct CertificateSubjectRestriction;

#[async_trait]
impl Plugin for CertificateSubjectRestriction {
    async fn validate(
        &self,
        new: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(request) = new.filter(|new| {
            attributes.is_of(GROUP, REQUESTS)
                && attributes.cx.part == Part::Main
                && signer(new) == CLIENTS
        }) else {
            return Ok(());
        };

        match is_for_masters(request) {
            None => Err(attributes.forbidden(request, "failed to parse CSR")),
            Some(false) => Ok(()),
            Some(true) => {
                let why = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
                Err(attributes.forbidden(request, why))
            }
        }
    }
}

/// Whether the subject of a request is of the group that may do anything; `None`: it cannot be
/// read.
fn is_for_masters(request: &Value) -> Option<bool> {
    let pem = STANDARD
        .decode(request.at(&["spec", "request"])?.as_str()?)
        .ok()?;
    let der = CertificateSigningRequestDer::from_pem_slice(&pem).ok()?;
    let (_, read) = X509CertificationRequest::from_der(&der).ok()?;
    let subject = read.certification_request_info.subject.as_raw();
    let subject = CertificateSubject::from_der(subject).ok()?;
    Some(subject.organizations.iter().any(|group| group == MASTERS))
}
