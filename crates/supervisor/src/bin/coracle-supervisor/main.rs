//! The supervisor of one pod.
//!
//! `coracle-supervisor SANDBOX CGROUPS` joins its cgroups by the files that are named, is given a listening socket as
//! its standard input, and serves it in one thread
//! ([`server`]): requests come in, processes are made ([`launch`] in this process, [`init`] in the new one), what they
//! print goes into logs ([`output`]), how they end goes into files. `coracle-supervisor pause` is the first process of
//! a PID namespace that a pod's containers share ([`pause`]).
//!
//! It never blocks but in its event loop, and does not end when whoever started it does.

mod clock;
mod container;
mod init;
mod launch;
mod output;
mod pause;
mod server;
mod step;
mod sys;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|mode| mode == pause::MODE) {
        return pause::run();
    }
    match server::run(args.get(2..).unwrap_or_default()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coracle-supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}
