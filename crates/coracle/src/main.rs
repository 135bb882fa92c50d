//! The `coracle` binary: assembles the crates into processes and commands.
//!
//! `main` parses the command line and calls one module per command. Nothing else in the workspace
//! ends the process.

mod administrator;
mod agent;
mod bench;
mod cel;
mod certificates;
mod cluster;
mod component_port;
mod controllers;
mod ctr;
mod decode;
mod dns;
mod etcd;
mod host;
mod image;
mod instance;
mod json_log;
mod kube_apiserver;
mod kube_controller_manager;
mod kube_proxy;
mod kube_scheduler;
mod kubectl;
mod kubelet;
mod names;
mod node_command;
mod node_runtime;
mod parent;
mod process;
mod resolv_conf;
mod running;
mod server;
mod settings;
mod simulated_nodes;
mod storage;
mod store;
mod teardown;
mod token;
mod why;
mod world;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use coracle_base::error_chain;
use tikv_jemallocator::Jemalloc;

/// A background thread returns freed memory to the kernel within seconds; small buffers, of which
/// every request needs a few, stay cached.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// A complete Kubernetes in one binary.
#[derive(Parser)]
#[command(name = "coracle", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Join a cluster and run a node of it
    #[command(disable_help_flag = true)]
    Agent(settings::Arguments),
    /// Benchmark an API server
    Bench(bench::Bench),
    /// Evaluate a CEL expression against objects from files
    Cel(cel::Cel),
    /// Create and manage clusters of several nodes on this machine
    Cluster(cluster::ClusterCommand),
    /// List and inspect pods and containers of this node
    Ctr(ctr::Ctr),
    /// Convert Kubernetes objects between JSON, YAML and protobuf
    Decode(decode::Decode),
    /// Run the cluster DNS server
    #[command(disable_help_flag = true)]
    Dns(settings::Arguments),
    /// Run the embedded store alone, with etcd's API and flags
    #[command(disable_help_flag = true)]
    Etcd(settings::Arguments),
    /// Import, pull, list, remove and inspect images of a node
    Image(image::Image),
    /// Run the API server alone, with upstream's flags
    #[command(disable_help_flag = true)]
    KubeApiserver(settings::Arguments),
    /// Run the service proxy alone, with upstream's flags
    #[command(disable_help_flag = true)]
    KubeProxy(settings::Arguments),
    /// Run the scheduler alone, with upstream's flags
    #[command(disable_help_flag = true)]
    KubeScheduler(settings::Arguments),
    /// Run the controllers alone, with upstream's flags
    #[command(disable_help_flag = true)]
    KubeControllerManager(settings::Arguments),
    /// Run the host's kubectl against the cluster of this machine
    Kubectl(kubectl::Kubectl),
    /// Run the kubelet alone, with upstream's flags
    #[command(disable_help_flag = true)]
    Kubelet(settings::Arguments),
    /// Drain and remove nodes
    Node(node_command::Node),
    /// Delete the cluster of this machine and all its data
    Reset(teardown::Reset),
    /// Run a cluster in one process
    #[command(disable_help_flag = true)]
    Server(settings::Arguments),
    /// Run simulated nodes for another cluster
    SimulatedNodes(simulated_nodes::SimulatedNodes),
    /// Stop the server and the pods of this machine's cluster
    Stop(teardown::Stop),
    /// Back up, restore, migrate and check the embedded store
    Store(store::Store),
    /// Create, list and delete the tokens with which nodes join
    Token(token::Token),
    /// Explain what happened to an object and what it waits for
    Why(why::Why),
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let program = names::called(&arguments).unwrap_or("coracle");

    match CommandLine::parse_from(names::command_line(arguments)).command {
        Command::Agent(command) => exit_code(program, agent::run(&command)),
        Command::Bench(command) => exit_code(program, bench::run(&command)),
        Command::Cel(command) => exit_code(program, cel::run(&command)),
        Command::Cluster(command) => exit_code(program, cluster::run(&command)),
        Command::Ctr(command) => {
            let done = ctr::run(command);
            let command_exit = done.as_ref().err().and_then(ctr::CtrError::command_exit);
            let code = exit_code(program, done);
            command_exit.map_or(code, ExitCode::from)
        }
        Command::Decode(command) => exit_code(program, decode::run(&command)),
        Command::Dns(command) => exit_code(program, dns::run(&command)),
        Command::Etcd(command) => exit_code(program, etcd::run(&command)),
        Command::Image(command) => exit_code(program, image::run(&command)),
        Command::KubeApiserver(command) => exit_code(program, kube_apiserver::run(&command)),
        Command::KubeProxy(command) => exit_code(program, kube_proxy::run(&command)),
        Command::KubeScheduler(command) => exit_code(program, kube_scheduler::run(&command)),
        Command::KubeControllerManager(command) => {
            exit_code(program, kube_controller_manager::run(&command))
        }
        Command::Kubectl(command) => exit_code(program, kubectl::run(&command)),
        Command::Kubelet(command) => exit_code(program, kubelet::run(&command)),
        Command::Node(command) => exit_code(program, node_command::run(&command)),
        Command::Reset(command) => exit_code(program, teardown::reset(&command)),
        Command::Server(command) => exit_code(program, server::run(&command)),
        Command::SimulatedNodes(command) => exit_code(program, simulated_nodes::run(&command)),
        Command::Stop(command) => exit_code(program, teardown::stop(&command)),
        Command::Store(command) => exit_code(program, store::run(&command)),
        Command::Token(command) => exit_code(program, token::run(&command)),
        Command::Why(command) => exit_code(program, why::run(&command)),
    }
}

/// Prints an error with its chain of causes.
fn exit_code<E: std::error::Error>(program: &str, result: Result<(), E>) -> ExitCode {
    let Err(error) = result else {
        return ExitCode::SUCCESS;
    };
    eprintln!("{program}: {}", error_chain(&error));
    ExitCode::FAILURE
}
