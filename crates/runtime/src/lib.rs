//! The container runtime: the service behind the container runtime interface, in this process.

pub mod ports;

pub use ports::{ImageConfig, ImageForContainer, RootFs, RootFsError, RootFsUsage};
