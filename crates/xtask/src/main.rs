//! Chores of the repository: `cargo xtask tidy` and `cargo xtask licences`. Each chore reads its
//! input (files, or `cargo metadata`), checks it in pure functions, and returns findings: what is
//! wrong, where, and what to do. `main` prints them and fails if there are any.

mod finding;
mod licences;
mod metadata;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use finding::Finding;

const USAGE: &str = "usage: cargo xtask COMMAND

  tidy        check crate dependencies, lengths, recursion, links, forbidden code
  licences    check licences of all dependencies, and banned crates";

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
            eprintln!("{chore}: {count} findings");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository that cargo was called in. Read at run time: a path compiled in would
/// be wrong when two checkouts share a target directory.
fn root() -> PathBuf {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").expect("`cargo xtask` sets it");
    Path::new(&own)
        .ancestors()
        .nth(2)
        .expect("the crate is at crates/xtask")
        .to_path_buf()
}
