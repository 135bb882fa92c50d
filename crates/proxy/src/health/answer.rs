//! A response of a health port.

use http::header::X_CONTENT_TYPE_OPTIONS;
use http::{HeaderValue, StatusCode};

/// A response.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: String,
}

impl From<Answer> for coracle_serving::answer::Answer {
    fn from(answer: Answer) -> coracle_serving::answer::Answer {
        let mut response = coracle_serving::answer::json(answer.body);
        *response.status_mut() = answer.status;
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        for (name, value) in answer.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(name, value);
            }
        }
        response
    }
}
