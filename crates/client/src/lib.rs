//! How a program talks to a Kubernetes cluster.
//!
//! A [`Client`] sends requests through a [`transport`]: HTTPS as a kubeconfig or a pod's account
//! says ([`config`]), or straight into a server of the same process. [`Access`] makes the requests:
//! get, list, watch, create, update, patch, delete, of any [`Resource`] as a tree, or of a built-in
//! kind as a typed struct ([`TypedAccess`]); [`discovery`] tells which resources there are.
//! Refusals are [`Status`]es.
//!
//! What a component needs besides: [`Informers`] hold a part of the cluster's state in memory and
//! tell of changes; a [`WorkQueue`] says what is to be looked at next; [`Expectations`] keep a
//! controller from acting twice on an old view; [`ownership`] says whose an object is; a
//! [`Recorder`] tells people; an [`Election`] lets one of many work; the [`Journal`] remembers what
//! was done to each object. Tasks have owners ([`Tasks`]), clock and dice are handed in
//! ([`World`]), and nothing in here polls.
#![warn(missing_docs)]

pub mod access;
mod client;
pub mod config;
pub mod discovery;
pub mod election;
mod error;
pub mod events;
pub mod expectations;
pub mod informer;
mod journal;
mod key;
pub mod limit;
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
pub use discovery::{Discovery, Mapper, Mapping, MappingError};
pub use election::Election;
pub use error::Error;
pub use events::{EventType, Happening, ObjectReference, Recorder, SeriesRecorder};
pub use expectations::Expectations;
pub use informer::{
    Cached, Change, Informer, Informers, Metadata, Projection, Selection, Subscription, Typed,
    Whole,
};
pub use journal::{Journal, Stage};
pub use key::{NotAKey, ObjectKey};
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
