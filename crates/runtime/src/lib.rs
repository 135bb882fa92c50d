//! The container runtime: the service behind the container runtime interface, in this process.

pub mod images;
pub mod ports;
pub mod rootfs;

pub use ports::{ImageConfig, ImageForContainer, RootFs, RootFsError, RootFsUsage};
