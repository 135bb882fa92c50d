//! Builds the supervisor executable, which is embedded in this crate.
//!
//! It is static and not relocatable: relocated pages are private to every process, and there is one
//! process per pod. This needs other flags than the rest of the workspace, so it has its own target
//! directory.

#![expect(
    clippy::disallowed_methods,
    reason = "build scripts are configured by environment variables"
)]

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let supervisor = Path::new(&env::var("CARGO_MANIFEST_DIR")?)
        .join("../supervisor")
        .canonicalize()?;
    println!(
        "cargo::rerun-if-changed={}",
        supervisor.join("src").display()
    );

    println!(
        "cargo::rerun-if-changed={}",
        supervisor.join("Cargo.toml").display()
    );

    let (target, out) = (env::var("TARGET")?, env::var("OUT_DIR")?);
    let folder = Path::new(&out).join("supervisor");
    let mut cargo = Command::new(env::var("CARGO")?);

    // Flags and targets of this build do not apply to that program.
    for (name, _) in env::vars() {
        let of_cargo = name.starts_with("CARGO_")
            && !matches!(name.as_str(), "CARGO_HOME" | "CARGO_NET_OFFLINE");
        if of_cargo
            || matches!(
                name.as_str(),
                "RUSTFLAGS" | "RUSTC_WRAPPER" | "RUSTC_WORKSPACE_WRAPPER" | "TARGET"
            )
        {
            cargo.env_remove(name);
        }
    }

    let flags = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"].join("\x1f");
    let built = cargo
        .current_dir(&supervisor)
        .args([
            "build",
            "--quiet",
            "--locked",
            "--package",
            "coracle-supervisor",
            "--bin",
            "coracle-supervisor",
        ])
        .args([
            "--profile",
            "supervisor",
            "--target",
            &target,
            "--target-dir",
        ])
        .arg(&folder)
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .status()?;

    if !built.success() {
        return Err("cannot build coracle-supervisor".into());
    }

    let program = folder
        .join(&target)
        .join("supervisor")
        .join("coracle-supervisor");
    println!("cargo::rustc-env=CORACLE_SUPERVISOR={}", program.display());

    Ok(())
}
