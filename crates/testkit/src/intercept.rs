//! A transport on which chosen requests fail.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_client::transport::Body;
use coracle_client::{Transport, TransportError};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is sent, and its response is returned.
    Pass,
    /// It is sent and executed, and its response is lost.
    LoseResponse,
    /// It is answered with 503 Service Unavailable.
    Unavailable,
}

/// Wraps a transport. `outcome` decides about each request and may change it.
pub fn intercept(
    below: Arc<dyn Transport>,
    outcome: impl Fn(&mut Request<Bytes>) -> Outcome + Send + Sync + 'static,
) -> Arc<dyn Transport> {
    Arc::new(Intercepted { below, outcome })
}

struct Intercepted<F> {
    below: Arc<dyn Transport>,
    outcome: F,
}

#[async_trait]
impl<F: Fn(&mut Request<Bytes>) -> Outcome + Send + Sync> Transport for Intercepted<F> {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        match (self.outcome)(&mut request) {
            Outcome::Pass => self.below.send(request).await,
            Outcome::LoseResponse => {
                drop(self.below.send(request).await?);
                Err(TransportError::Lost(
                    io::Error::from(io::ErrorKind::ConnectionReset).into(),
                ))
            }
            Outcome::Unavailable => {
                let mut answer =
                    Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
                *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                Ok(answer)
            }
        }
    }
}
