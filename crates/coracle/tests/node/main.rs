//! A whole cluster on one machine, used with stock kubectl: pods, Services, DNS, logs, commands.
//! Each test has its own network namespace without a route to outside, and its own data directory;
//! tests run in parallel. They need root, as a node does.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod cluster_command;
mod cni;
mod ctr_and_image_commands;
mod disk_failures;
mod failing_pods;
mod hostile_pods;
mod inventory;
mod kubectl_commands;
mod machine;
mod machine_cgroup;
mod metrics;
mod networks;
mod no_default_route;
mod open_file_limit;
mod pod_churn;
mod pod_lifecycle;
mod pods;
#[path = "../../../testkit/src/program.rs"]
mod program;
mod quick_start;
mod random;
mod registries;
mod registry;
mod resource_exhaustion;
mod segment;
mod server_killed;
mod several_nodes;
mod stop_command;
mod tools_image;
mod traffic;
