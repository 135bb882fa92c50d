//! The body of a request: read up to its limit, and decoded where it holds options.

use bytes::Bytes;
use coracle_api::codec::media_type;
use http_body_util::{BodyExt, Limited};

use crate::ApiError;
use crate::byte_budget::OverBudget;
use crate::registry;
use crate::request::{DeleteOptions, Request, RequestBody};

/// The largest body of a write.
const MAX_BODY: usize = 3 * 1024 * 1024;

/// The object that a create or an update sends.
pub(super) async fn write_body<B: RequestBody>(
    request: &Request<'_>,
    body: B,
) -> Result<registry::Body, ApiError> {
    let media_type = media_type::body(request.content_type())
        .map_err(|refused| ApiError::unsupported_media_type(refused.to_string()))?;
    Ok(registry::Body {
        bytes: read(body).await?,
        media_type,
    })
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
pub(super) async fn delete_options<B: RequestBody>(
    request: &Request<'_>,
    body: B,
) -> Result<DeleteOptions, ApiError> {
    let bytes = read(body).await?;
    if bytes.is_empty() {
        return DeleteOptions::parse(request.query, None);
    }
    let media_type = media_type::body(request.content_type())
        .map_err(|refused| ApiError::unsupported_media_type(refused.to_string()))?;
    let value = registry::Body { bytes, media_type }.delete_options()?;
    DeleteOptions::parse(request.query, Some(&value))
}
