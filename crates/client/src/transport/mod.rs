//! How a request reaches a server: over HTTPS ([`Https`]), or straight into one that runs in the
//! same process.
//!
//! The in-process one is the server's (`coracle_apiserver::InProcess`): it takes the same chain of
//! authorization and admission as a connection, with an identity that whoever assembles the process
//! gives it. A component holds a [`Client`](crate::Client) and cannot tell which of the two it has:
//! whoever takes [`Trees`] instead of bytes gets bytes from a server that is elsewhere.

mod account;
mod body;
mod connection;
mod https;
mod proxy;
mod tls;
mod trees;

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};

pub use account::AsAccount;
pub use body::{Body, BodyError};
pub(crate) use body::{Lines, lines};
pub use https::Https;
pub use tls::{Tls, TlsError, settings as tls_settings};
pub use trees::{TakesTrees, Trees};

/// Carries a request to a server and brings back the answer, whose body may go on for hours.
#[async_trait]
pub trait Transport: Send + Sync {
    /// The request's URI is a path with a query; the transport knows where the server is.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError>;
}

/// Why no answer came. Refusals are answers.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// Nobody is there: the server has not started yet, or has ended.
    #[error("no connection to {server}")]
    Connect {
        /// Who was to be reached.
        server: String,
        /// What the attempt came to.
        source: io::Error,
    },
    /// A connection was lost before the answer began.
    #[error("the connection was lost")]
    Lost(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer did not begin in time.
    #[error("no answer in time")]
    TimedOut,
    /// The credentials to send could not be had.
    #[error("no credentials")]
    Credentials(#[source] Box<dyn std::error::Error + Send + Sync>),
}
