//! TokenReview: authenticates a token.

use coracle_api::{Map, Value};
use coracle_kinds::Part;
use coracle_kinds::authentication::user_info;

use super::review::Review;
use super::{Call, Reply};
use crate::ApiError;

pub(super) async fn create(call: &Call<'_>) -> Result<Reply, ApiError> {
    let mut review = Review::of(call, Part::Main).await?;
    let token = review
        .object
        .at(&["spec", "token"])
        .and_then(Value::as_str)
        .unwrap_or_default();

    if token.is_empty() {
        let refused = ApiError::bad_request("token is required for TokenReview in authentication");
        return Err(refused.after(review.warnings));
    }

    review.validate().await?;
    let audiences = review
        .object
        .at(&["spec", "audiences"])
        .and_then(Value::as_array)
        .unwrap_or_default();

    let audiences: Vec<String> = audiences
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_string)
        .collect();

    let mut status = Map::new();
    match call
        .registry
        .access
        .tokens
        .review(token, &audiences, (call.registry.now)())
    {
        Ok(found) => {
            status.insert("authenticated", true);
            status.insert("user", user_info(&found.user));

            if !found.audiences.is_empty() {
                status.insert(
                    "audiences",
                    found
                        .audiences
                        .iter()
                        .map(Value::string)
                        .collect::<Vec<_>>(),
                );
            }
        }
        Err(why) => {
            status.insert("user", Value::object());
            status.insert("error", why);
        }
    }

    review
        .object
        .as_object_mut()
        .expect("it was decoded as an object")
        .insert("status", status);

    Ok(review.reply())
}
