//! The body of a request: read up to its limit, and decoded where it holds options.

use bytes::Bytes;
use coracle_api::codec::media_type::{self, MediaType};
use http_body_util::{BodyExt, Limited};

use crate::ApiError;
use crate::byte_budget::OverBudget;
use crate::registry;
use crate::request::{DeleteOptions, Request, RequestBody};

/// The largest body of a write.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// The media type of the object that a create or an update sends.
pub(super) fn media_type(request: &Request<'_>) -> Result<MediaType, ApiError> {
    media_type::body(request.content_type())
        .map_err(|refused| ApiError::unsupported_media_type(refused.to_string()))
}

pub(super) async fn read<B: RequestBody>(body: B) -> Result<Bytes, ApiError> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(ApiError::too_large(MAX_BODY))
        }
        Err(error) if error.is::<OverBudget>() => {
            Err(ApiError::too_many_requests(error.to_string()))
        }
        Err(error) => Err(ApiError::bad_request(format!(
            "the body could not be read: {error}"
        ))),
    }
}

/// The options of a delete: its body, or else its query.
pub(super) fn delete_options(
    request: &Request<'_>,
    bytes: Bytes,
) -> Result<DeleteOptions, ApiError> {
    if bytes.is_empty() {
        return DeleteOptions::parse(request.query, None);
    }

    let media_type = media_type(request)?;
    let value = registry::Body { bytes, media_type }.delete_options()?;
    DeleteOptions::parse(request.query, Some(&value))
}
