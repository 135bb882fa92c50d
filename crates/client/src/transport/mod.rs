//! How a request reaches a server: over HTTPS ([`Https`]), or directly in the same process.
//!
//! The in-process transport is the server's (`coracle_apiserver::InProcess`): it runs the same
//! authorization and admission as a connection, with an identity that is set when the process is
//! assembled. A component has a [`Client`](crate::Client) and does not know which of the two it
//! uses: a client that accepts [`Trees`] gets bytes from a remote server.

mod account;
mod balanced;
mod body;
mod connection;
mod https;
mod proxy;
mod trees;

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response};

pub use account::ServiceAccountTransport;
pub use balanced::{Balanced, Servers};
pub use body::{Body, BodyError};
pub(crate) use body::{Lines, lines};
pub use connection::RequestBody;
pub use https::{Dialing, Https, Resolve};
pub use trees::{TakesTrees, Trees};

/// Sends a request to a server and returns the answer, whose body may last for hours.
#[async_trait]
pub trait Transport: Send + Sync {
    /// The request's URI is a path with a query; the transport knows where the server is.
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError>;
}

/// Why there was no answer. An error status is an answer.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The server cannot be reached: it has not started yet, or has stopped.
    #[error("cannot connect to {server}")]
    Connect {
        /// The server.
        server: String,
        /// The cause.
        source: io::Error,
    },
    /// The server's address is not known.
    #[error("{0}")]
    Resolve(String),
    /// The connection was lost before the answer.
    #[error("connection lost before the answer")]
    Lost(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The answer did not start in time.
    #[error("request timed out")]
    TimedOut,
    /// The credentials cannot be loaded.
    #[error("cannot load credentials")]
    Credentials(#[source] Box<dyn std::error::Error + Send + Sync>),
}
