//! The supervisor of one pod.
//!
//! `coracle-supervisor SANDBOX FOLDER CGROUPS` joins its cgroups by the files that are named, is given a listening socket
//! as its standard input, and serves it in one thread
//! ([`server`]): requests come in, processes are made ([`launch`] in this process, [`init`] in the new one), what they
//! print goes into logs ([`output`]), how they end goes into files. `coracle-supervisor pause` is the first process of
//! a PID namespace that a pod's containers share ([`pause`]).
//!
//! It never blocks but in its event loop, and does not end when whoever started it does. What it holds is written down
//! in the pod's folder ([`place`]): if it is killed, the next one that is started there takes over.

mod clock;
mod container;
mod init;
mod launch;
mod output;
mod pause;
mod place;
mod server;
mod step;
mod sys;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    if args.get(1).is_some_and(|mode| mode == pause::MODE) {
        return pause::run();
    }
    let Some((pod, cgroups)) = args.get(2..).and_then(<[String]>::split_first) else {
        eprintln!("coracle-supervisor: a sandbox, a folder and cgroups are wanted");
        return ExitCode::FAILURE;
    };
    match server::run(pod, cgroups) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coracle-supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}
