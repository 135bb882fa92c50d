//! The binary: it assembles the rooms into processes and commands.
//!
//! `main` reads the command line and hands over to one module per command; nothing else in the workspace decides when
//! the process ends.

mod decode;
mod server;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A complete Kubernetes in one binary.
#[derive(Parser)]
#[command(name = "coracle", version, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a Kubernetes object in another form
    Decode(decode::Decode),
    /// Run a cluster in one process
    Server(server::Server),
}

fn main() -> ExitCode {
    match CommandLine::parse().command {
        Command::Decode(command) => exit_code(decode::run(&command)),
        Command::Server(command) => exit_code(server::run(&command)),
    }
}

fn exit_code<E: std::fmt::Display>(result: Result<(), E>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coracle: {error}");
            ExitCode::FAILURE
        }
    }
}
