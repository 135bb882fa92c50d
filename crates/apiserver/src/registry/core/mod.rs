//! Kinds of the core group.

pub(super) mod claim;
pub(super) mod config_map;
pub(super) mod endpoints;
pub(super) mod event;
pub(super) mod limit_range;
pub(super) mod namespace;
pub(super) mod node;
pub(super) mod persistent_volume;
pub(super) mod persistent_volume_claim;
pub(super) mod pod;
pub(super) mod pod_template;
pub(super) mod replication_controller;
pub(super) mod resource_quota;
pub(super) mod secret;
pub(super) mod service;
pub(super) mod service_account;
pub(super) mod token_request;
