//! An HTTP echo server, and small commands to try out a cluster. It uses only the standard library,
//! since it is the only file of its image.
#![expect(
    clippy::print_stdout,
    reason = "the result of a command goes to standard output"
)]

mod fetch;
mod json;
mod serve;
mod sys;

use std::collections::TryReserveError;
use std::net::ToSocketAddrs;
use std::process::{Command, ExitCode};
use std::time::Duration;

/// How long `processes` waits before it tries again.
const RETRY: Duration = Duration::from_millis(10);

const USAGE: &str = "usage: echo [serve [PORT] | resolve NAME | fetch URL | sleep SECONDS | exit CODE | memory BYTES [SECONDS] | processes]
  serve      answers each HTTP request with its details as JSON (default port 8080)
  resolve    prints the IP addresses of a name
  fetch      prints the response body of an http:// URL
  sleep      sleeps for SECONDS
  exit       exits with CODE
  memory     allocates memory (64Mi, 1Gi) and holds it for SECONDS or until it is terminated
  processes  starts processes until a limit is hit and keeps them";

/// Why a command failed.
enum Failure {
    Usage,
    Message(String),
}

fn main() -> ExitCode {
    // The kernel ignores signals to PID 1 of a container that it does not handle.
    sys::exit_on_signal();
    let arguments: Vec<String> = std::env::args().skip(1).collect();

    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(code) => code,
        Err(Failure::Message(text)) => {
            eprintln!("echo: {text}");
            ExitCode::FAILURE
        }
        Err(Failure::Usage) => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn run(words: &[&str]) -> Result<ExitCode, Failure> {
    match *words {
        [] | ["serve"] => serve::run(8080).map_err(failed)?,
        ["serve", port] => serve::run(port.parse().map_err(|_| Failure::Usage)?).map_err(failed)?,
        ["resolve", name] => {
            for address in resolve(name).map_err(failed)? {
                println!("{address}");
            }
        }
        ["fetch", url] => {
            let response = fetch::fetch(url).map_err(failed)?;
            print!("{}", response.body);
            if !response.is_success() {
                return Err(Failure::Message(format!(
                    "{url} returned {}",
                    response.status
                )));
            }
        }
        ["sleep", seconds] => std::thread::sleep(duration(seconds)?),
        ["exit", code] => {
            return Ok(ExitCode::from(
                code.parse::<u8>().map_err(|_| Failure::Usage)?,
            ));
        }
        ["memory", size] => use_memory(size, None)?,
        ["memory", size, seconds] => use_memory(size, Some(duration(seconds)?))?,
        ["processes"] => start_processes()?,
        _ => return Err(Failure::Usage),
    }

    Ok(ExitCode::SUCCESS)
}

/// The addresses of a name, each once, in the order in which the resolver gives them.
fn resolve(name: &str) -> std::io::Result<Vec<std::net::IpAddr>> {
    let mut found = Vec::new();
    for address in (name, 0).to_socket_addrs()? {
        if !found.contains(&address.ip()) {
            found.push(address.ip());
        }
    }
    Ok(found)
}

/// Allocates and touches memory, and holds it.
fn use_memory(size: &str, long: Option<Duration>) -> Result<(), Failure> {
    let bytes = bytes(size).ok_or(Failure::Usage)?;
    let mut held: Vec<u8> = Vec::new();
    held.try_reserve_exact(bytes)
        .map_err(|error: TryReserveError| failed(error))?;
    held.resize(bytes, 1);
    println!("{} bytes in use", held.len());

    match long {
        Some(long) => std::thread::sleep(long),
        None => loop {
            std::thread::park();
        },
    }

    Ok(())
}

/// Starts processes that keep running, and keeps trying when no more can be started.
fn start_processes() -> Result<(), Failure> {
    let program = std::env::current_exe().map_err(failed)?;
    let mut children = Vec::new();
    let mut limit_met = false;

    loop {
        match Command::new(&program).args(["sleep", "100000"]).spawn() {
            Ok(child) => children.push(child),
            Err(error) => {
                if !limit_met {
                    println!("no more processes after {}: {error}", children.len());
                }
                limit_met = true;
                std::thread::sleep(RETRY);
            }
        }
    }
}

/// A number of bytes: plain, or with Ki, Mi or Gi.
fn bytes(text: &str) -> Option<usize> {
    let units = [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))
        .unwrap_or((text, 1));
    number.parse::<usize>().ok()?.checked_mul(unit)
}

fn duration(seconds: &str) -> Result<Duration, Failure> {
    seconds
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or(Failure::Usage)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Message(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_as_quantities() {
        let check =
            |text: &str, expected: Option<usize>| assert_eq!(bytes(text), expected, "{text}");
        check("100", Some(100));
        check("64Mi", Some(64 << 20));
        check("1Gi", Some(1 << 30));
        check("x", None);
        check("99999999999999999Gi", None);
    }
}
