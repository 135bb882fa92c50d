//! `coracle server --no-node`, used with stock kubectl, client libraries and raw requests.
//!
//! Needs what `scripts/test-prereqs.sh` installs.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod access;
mod admission_plugins;
mod backup_and_migration;
mod bad_input;
mod cel_command;
mod cel_manifests;
mod client_libraries;
mod cluster;
mod controllers;
mod custom_resources;
mod decode_command;
mod deep_nesting;
mod dns;
mod etcd_port;
mod fixtures;
mod foreign_kubelet;
mod front_proxies;
mod helm;
mod image_command;
mod kubectl_commands;
mod negotiation;
mod openapi;
mod operator;
mod operator_webhooks;
mod ownership_and_taints;
mod policies;
mod privilege_escalation;
mod programs;
mod scheduler;
mod separate_processes;
mod server;
mod server_under_test;
mod shared_etcd;
mod simulated_nodes;
mod stock_definitions;
mod tables;
mod tokens;
mod upstream_responses;
mod watches;
mod workloads;
mod write_errors;
