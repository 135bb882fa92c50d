//! A way to a server on which chosen requests come to grief.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use coracle_client::transport::Body;
use coracle_client::{Transport, TransportError};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is passed on, and its answer comes back.
    Passes,
    /// It is passed on and carried out, and its answer is lost.
    LosesItsAnswer,
    /// The server is said to be unable to answer it.
    IsUnavailable,
}

/// Asks of every request what becomes of it; whoever is asked may change it.
pub fn intercept(
    below: Arc<dyn Transport>,
    fate: impl Fn(&mut Request<Bytes>) -> Fate + Send + Sync + 'static,
) -> Arc<dyn Transport> {
    Arc::new(Intercepted { below, fate })
}

struct Intercepted<F> {
    below: Arc<dyn Transport>,
    fate: F,
}

#[async_trait]
impl<F: Fn(&mut Request<Bytes>) -> Fate + Send + Sync> Transport for Intercepted<F> {
    async fn send(&self, mut request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        match (self.fate)(&mut request) {
            Fate::Passes => self.below.send(request).await,
            Fate::LosesItsAnswer => {
                drop(self.below.send(request).await?);
                Err(TransportError::Lost(
                    io::Error::from(io::ErrorKind::ConnectionReset).into(),
                ))
            }
            Fate::IsUnavailable => {
                let mut answer =
                    Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
                *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                Ok(answer)
            }
        }
    }
}
