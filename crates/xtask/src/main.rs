//! Chores of the repository. `cargo xtask tidy` and `cargo xtask licences` read their input (files,
//! or `cargo metadata`), check it in pure functions, and return findings: what is wrong, where, and
//! what to do. `main` prints them and fails if there are any. `cargo xtask sbom` and `cargo xtask
//! notices` print what belongs to a release.

mod finding;
mod licences;
mod metadata;
mod shipped;
mod tidy;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use finding::{ChoreError, Finding};

const USAGE: &str = "usage: cargo xtask COMMAND

  tidy            check crate dependencies, lengths, recursion, links, forbidden code
  licences        check licences of all dependencies, and banned crates
  sbom TARGET     print what a release for the target consists of, in CycloneDX's JSON
  notices TARGET  print the packages of others in it, and the texts of their licences";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let found = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy::check(&root()),
        ["licences"] => licences::check(&root()),
        ["sbom", target] => return print(shipped::sbom(&root(), target)),
        ["notices", target] => return print(shipped::notices(&root(), target)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };

    let findings = match found {
        Ok(findings) => findings,
        Err(error) => return fail(&error),
    };

    report(&arguments[0], &findings)
}

fn print(text: Result<String, ChoreError>) -> ExitCode {
    match text.map(|text| io::stdout().write_all(text.as_bytes())) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("xtask: cannot print: {error}");
            ExitCode::FAILURE
        }
        Err(error) => fail(&error),
    }
}

fn fail(error: &ChoreError) -> ExitCode {
    eprintln!("xtask: {error}");
    ExitCode::FAILURE
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
