//! What all crates share, below them: locks that go on after a panic ([`sync`]), texts of errors
//! with their causes ([`error_chain`]), addresses and their errors ([`net`]). With the feature
//! `tls`: TLS configurations of clients and servers (`tls`), and connections of clients (`dial`).
//! Knows nothing of Kubernetes.

#[cfg(feature = "tls")]
pub mod dial;
mod error;
pub mod net;
pub mod sync;
#[cfg(feature = "tls")]
pub mod tls;

pub use error::error_chain;
