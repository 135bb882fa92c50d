//! Panic recovery: a panic while one request is handled becomes a 500 response and a log line, and
//! does not affect other requests.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use http::{HeaderValue, Method, StatusCode, Uri};
use tracing::error;

use super::plain_text;
use crate::answer::Answer;

type Panic = Box<dyn Any + Send>;

/// The work itself and no wrapper that holds it a second time: there is one for every request.
pub(super) fn caught<T>(work: impl Future<Output = T>) -> impl Future<Output = Result<T, Panic>> {
    // What a panic leaves half done is the request's own; what requests share is behind locks that
    // survive it.
    AssertUnwindSafe(work).catch_unwind()
}

pub(super) fn answer(panic: &Panic, method: &Method, uri: &Uri, audit_id: &HeaderValue) -> Answer {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or_default();
    error!(%method, %uri, ?audit_id, panic = text, "request handler panicked");
    let text = "This request caused apiserver to panic. Look in the logs for details.\n";
    plain_text(StatusCode::INTERNAL_SERVER_ERROR, text)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test]
    async fn a_panic_is_one_answer() {
        let panic = caught(async { panic!("on purpose {}", 1) })
            .await
            .err()
            .unwrap();

        let answer = answer(
            &panic,
            &Method::GET,
            &Uri::from_static("/"),
            &HeaderValue::from_static("id"),
        );
        assert_eq!(answer.status(), 500);

        let text = answer.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(
            text,
            "This request caused apiserver to panic. Look in the logs for details.\n"
        );
    }
}
