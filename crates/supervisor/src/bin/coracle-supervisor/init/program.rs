//! Looks up the program in PATH and execs it.

use std::convert::Infallible;

use coracle_supervisor::protocol::Process;
use rustix::io::Errno;

use crate::step::StepError;
use crate::sys;

/// The default PATH.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Execs the program. The error texts are those of other runtimes.
pub(super) fn exec_program(process: &Process) -> Result<Infallible, StepError> {
    let Some(name) = process.args.first() else {
        return Err(StepError::new("exec: no command", Errno::INVAL));
    };
    if name.contains('/') {
        let errno = sys::execve(name, &process.args, &process.env);
        return Err(match errno {
            Errno::NOENT => StepError::new(format!("exec: {name:?}: stat {name}"), errno),
            errno => StepError::new(format!("exec: {name:?}"), errno),
        });
    }

    let path = process
        .env
        .iter()
        .rev()
        .find_map(|variable| variable.strip_prefix("PATH="))
        .unwrap_or(USUAL_PATH);

    let mut refusal = None;
    for folder in path.split(':') {
        let folder = if folder.is_empty() { "." } else { folder };
        match sys::execve(&format!("{folder}/{name}"), &process.args, &process.env) {
            Errno::NOENT | Errno::NOTDIR => {}
            errno => refusal = refusal.or(Some(errno)),
        }
    }

    Err(match refusal {
        Some(errno) => StepError::new(format!("exec: {name:?}"), errno),
        None => StepError::new(
            format!("exec: {name:?}: executable file not found in $PATH"),
            Errno::NOENT,
        ),
    })
}
