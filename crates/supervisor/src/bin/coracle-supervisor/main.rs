//! The supervisor of one pod.
//!
//! `coracle-supervisor SANDBOX FOLDER` gets a listening socket as standard input and serves it in
//! one thread ([`server`]): it handles requests, starts processes ([`launch`] in this process,
//! [`init`] in the new one), writes their output to log files ([`output`]) and their exit status to
//! files. `coracle-supervisor pause` is PID 1 of a PID namespace shared by a pod's containers
//! ([`pause`]). `coracle-supervisor keep CGROUPS` is the parent of all of these and holds copies of
//! their descriptors ([`keeper`]).
//!
//! It blocks only in its event loop, and outlives the process that started it. Its state is
//! recorded in the pod's folder ([`folder`]): if it is killed, the next one that is started there
//! takes over.

mod clock;
mod container;
mod folder;
mod init;
mod keeper;
mod launch;
mod output;
mod pause;
mod server;
mod service;
mod step;
mod sys;

use std::process::ExitCode;

/// Coalesces freed memory at once. The system allocator caches small chunks: a supervisor would
/// keep twice the memory that it needs after starting its containers.
#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    let served = match *words {
        [pause::MODE] => return pause::run(),
        [keeper::MODE, ref cgroups @ ..] => keeper::run(cgroups),
        [_, pod] => server::run(pod),
        _ => {
            eprintln!("usage: coracle-supervisor SANDBOX FOLDER | pause | keep CGROUP...");
            return ExitCode::FAILURE;
        }
    };

    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coracle-supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}
