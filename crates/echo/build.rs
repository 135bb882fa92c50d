//! Builds coracle-echo a second time, static and not relocatable: its image contains nothing else,
//! no libraries.
//!
//! It uses only the standard library, so rustc alone can build it.

#![expect(
    clippy::disallowed_methods,
    reason = "build scripts are configured by environment variables"
)]

use std::env;
use std::error::Error;
use std::path::Path;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/bin");
    let program = Path::new(&env::var("OUT_DIR")?).join("echo");
    let flags = [
        "target-feature=+crt-static",
        "relocation-model=static",
        "opt-level=z",
        "panic=abort",
        "strip=symbols",
    ];

    let built = Command::new(env::var("RUSTC")?)
        .args([
            "--edition",
            "2024",
            "--crate-name",
            "coracle_echo_program",
            "--crate-type",
            "bin",
        ])
        .args(["--target", &env::var("TARGET")?, "--cap-lints", "allow"])
        .args(flags.map(|flag| format!("-C{flag}")))
        .arg("src/bin/coracle-echo/main.rs")
        .arg("-o")
        .arg(&program)
        // The flags of this build do not apply to that program.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()?;

    if !built.status.success() {
        return Err(format!(
            "cannot build coracle-echo: {}",
            String::from_utf8_lossy(&built.stderr)
        )
        .into());
    }

    println!("cargo::rustc-env=CORACLE_ECHO={}", program.display());

    Ok(())
}
