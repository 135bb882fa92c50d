//! CertificateApproval: approving requires the right to approve for the signer.

use async_trait::async_trait;
use coracle_api::Value;
use coracle_kinds::Part;

use super::super::{Attributes, Plugin};
use super::{GROUP, REQUESTS, check};
use crate::ApiError;

pub(in crate::admission) struct CertificateApproval;

#[async_trait]
impl Plugin for CertificateApproval {
    async fn validate(
        &self,
        _: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        if !attributes.is_of(GROUP, REQUESTS) || attributes.cx.part != Part::Approval {
            return Ok(());
        }
        check("approve", "approve", attributes).await
    }
}
