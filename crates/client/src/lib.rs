//! The Kubernetes client.
//!
//! A [`Client`] sends requests through a [`transport`]: HTTPS as configured by a kubeconfig or a
//! pod's service account ([`config`]), or directly to a server in the same process. [`Access`]
//! sends get, list, watch, create, update, patch and delete requests for any [`Resource`] as a
//! tree, or for a built-in kind as a typed struct ([`TypedAccess`]); [`discovery`] lists the
//! resources of a server. Error answers are [`Status`]es.
//!
//! For components: [`Informers`] cache a part of the cluster's state and report changes; a
//! [`WorkQueue`] holds the keys to reconcile; [`Expectations`] keep a controller from acting twice
//! on an old view; [`ownership`] decides about adoption and release; a [`Recorder`] records events;
//! an [`Election`] elects a leader; the [`Journal`] records what was done to each object. Tasks
//! have owners ([`Tasks`]), clock and random source are passed in ([`World`]), and nothing here
//! polls.
#![warn(missing_docs)]

pub mod access;
mod client;
pub mod config;
mod connection_limit;
pub mod discovery;
pub mod election;
mod error;
pub mod events;
pub mod expectations;
mod front_proxy;
pub mod informer;
mod journal;
mod key;
pub mod limit;
mod metrics;
mod options;
pub mod ownership;
mod patch;
pub mod queue;
mod repeats;
mod resource;
pub mod retry;
mod skim;
mod status;
mod tasks;
pub mod transport;
mod watch;
mod world;

pub use access::{Access, Brief, Deleted, List, TypedAccess, TypedList, Written};
pub use client::Client;
pub use config::{Config, ConfigError, Environment};
pub use connection_limit::{ConnectionLimit, ConnectionPermit};
pub use discovery::{Discovery, Mapper, Mapping, MappingError};
pub use election::Election;
pub use error::Error;
pub use events::{EventType, ObjectReference, Recorder, SeriesEvent, SeriesRecorder};
pub use expectations::Expectations;
pub use front_proxy::{ProxiedUser, ProxyHeaders};
pub use informer::{
    Cached, Change, Informer, Informers, Metadata, Projection, Selection, Subscription, Typed,
    Whole,
};
pub use journal::{Journal, Stage};
pub use key::{InvalidKey, ObjectKey};
pub use options::{DeleteOptions, ListOptions, Preconditions, Propagation};
pub use patch::Patch;
pub use queue::{Job, QueueKey, WorkQueue};
pub use repeats::Repeats;
pub use resource::Resource;
pub use status::{Cause, Status};
pub use tasks::Tasks;
pub use transport::{Transport, TransportError};
pub use watch::{Watch, WatchEvent};
pub use world::World;
