//! CertificateSigning: writing a certificate or a failed condition requires the right to sign for
//! the signer.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::Part;

use super::super::{Attributes, Plugin};
use super::{GROUP, REQUESTS, check};
use crate::ApiError;

pub(in crate::admission) struct CertificateSigning;

#[async_trait]
impl Plugin for CertificateSigning {
    async fn validate(
        &self,
        new: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        if !attributes.is_of(GROUP, REQUESTS) || attributes.cx.part != Part::Status {
            return Ok(());
        }
        let (Some(new), Some(old)) = (new, attributes.old) else {
            return Ok(());
        };
        let same = |name: &str| new.at(&["status", name]) == old.at(&["status", name]);
        if same("certificate") && same("conditions") {
            return Ok(());
        }
        check("sign", "sign", attributes).await
    }
}
