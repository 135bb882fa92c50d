//! Chores of the repository: `cargo xtask tidy` and `cargo xtask licences`.
//!
//! Each chore gathers what it looks at (files, or what `cargo metadata` tells), judges it in pure
//! functions, and returns findings: what is wrong, where, and what to do. `main` prints them and
//! fails if there are any.

mod finding;
mod licences;
mod metadata;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use finding::Finding;

const USAGE: &str = "usage: cargo xtask COMMAND

  tidy        crate dependencies, long places, dead links, words that may not stay
  licences    licences of all dependencies, and crates that are banned";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let found = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::check(&root()),
        ["licences"] => licences::check(&root()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };

    let findings = match found {
        Ok(findings) => findings,
        Err(error) => {
            eprintln!("xtask: {error}");
            return ExitCode::FAILURE;
        }
    };

    report(&arguments[0], &findings)
}

fn report(chore: &str, findings: &[Finding]) -> ExitCode {
    for finding in findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => ExitCode::SUCCESS,
        count => {
            eprintln!("{chore}: {count} found");
            ExitCode::FAILURE
        }
    }
}

/// The top of the checkout that cargo was called in. Asked when it runs: a program that remembered
/// where it was built would look at another checkout wherever two of them share a target directory.
fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").expect("`cargo xtask` sets it");
    Path::new(&own)
        .ancestors()
        .nth(2)
        .expect("the crate is at crates/xtask")
        .to_path_buf()
}
