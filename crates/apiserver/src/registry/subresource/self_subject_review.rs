//! SelfSubjectReview: the user of the request.

use coracle_api::time::Time;
use coracle_api::{Map, Value};
use coracle_kinds::Part;
use coracle_kinds::authentication::user_info;
use http::StatusCode;

use super::review::Review;
use super::{Call, Reply};
use crate::ApiError;

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let review = Review::of(call, Part::Main).await?;
    review.validate().await?;
    let mut metadata = Map::new();
    metadata.insert("creationTimestamp", Time((call.registry.now)()).text());
    let mut status = Map::new();
    status.insert("userInfo", user_info(&call.scope.caller.user));

    // The response does not repeat the request.
    let mut object = Map::new();
    object.insert("apiVersion", call.scope.kind.api_version());
    object.insert("kind", call.scope.kind.name.clone());
    object.insert("metadata", metadata);
    object.insert("status", status);

    Ok(Reply {
        code: StatusCode::CREATED,
        object: Value::Object(object),
        warnings: review.warnings,
    })
}
