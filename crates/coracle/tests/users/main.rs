//! `coracle server --no-node` as its users see it: people with kubectl, programs with client
//! libraries.
//!
//! Needs what `scripts/test-prereqs.sh` installs.

#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod access;
mod answers;
mod apart;
mod bad_input;
mod castle;
mod clients;
mod cluster;
mod controllers;
mod custom_resources;
mod deep;
mod dns;
mod etcd_port;
mod fixtures;
mod helm;
mod intruders;
mod keeping;
mod life;
mod negotiation;
mod openapi;
mod operator;
mod scheduler;
mod server;
mod shared_etcd;
mod simulated;
mod tables;
mod tokens;
mod upkeep;
mod walk;
mod watching;
mod writes;
