//! A component's own port: what every component but the API server serves, in one place.
//!
//! [`connection`] accepts TLS connections with optional client certificates. Who a request is from
//! and what it may do is decided by [`access`]: certificates are verified here, tokens and
//! permissions by reviews of the API server ([`access::Reviews`]). The kubelet serves its API with
//! these two. The other components serve the paths of [`component`]: `/healthz`, `/livez`,
//! `/readyz`, `/metrics`, `/metrics/slis`, `/configz`, `/flagz`, `/statusz`; [`plain`] serves such
//! paths over HTTP, for ports that upstream has without TLS.

pub mod access;
pub mod answer;
pub mod component;
pub mod connection;
pub mod features;
mod health;
pub mod pages;
pub mod plain;
pub mod zpages;

pub use component::Component;
pub use connection::{TlsError, certificate};
pub use health::{Check, Checks, HealthMetrics};
pub use pages::{About, Flag, Settings};
