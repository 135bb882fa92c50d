//! The supervisor of one pod.
//!
//! `coracle-supervisor SANDBOX FOLDER` is given a listening socket as its standard input, and
//! serves it in one thread ([`server`]): requests come in, processes are made ([`launch`] in this
//! process, [`init`] in the new one), what they print goes into logs ([`output`]), how they end
//! goes into files. `coracle-supervisor pause` is the first process of a PID namespace that a pod's
//! containers share ([`pause`]). `coracle-supervisor keep CGROUPS` is the parent of all of these,
//! and holds what a runtime that may be killed holds of them ([`keeper`]).
//!
//! It never blocks but in its event loop, and does not end when whoever started it does. What it
//! holds is written down in the pod's folder ([`place`]): if it is killed, the next one that is
//! started there takes over.

mod clock;
mod container;
mod init;
mod keeper;
mod launch;
mod output;
mod pause;
mod place;
mod server;
mod service;
mod step;
mod sys;

use std::process::ExitCode;

/// What is freed is at once one piece with what lies beside it, and taken again. The system's
/// allocator keeps small pieces aside: a supervisor that has started its containers would keep
/// twice what it needs.
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
            eprintln!("coracle-supervisor: a sandbox and a folder are wanted");
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
