//! Builds the program once more, static and without relocations: it is alone in its image, where no
//! library is.
//!
//! It uses nothing but the standard library, so the compiler alone does.

#![expect(
    clippy::disallowed_methods,
    reason = "a build script is told everything by its environment"
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
        // What this build is told about flags is not meant for that program.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()?;

    if !built.status.success() {
        return Err(format!(
            "the echo cannot be built: {}",
            String::from_utf8_lossy(&built.stderr)
        )
        .into());
    }

    println!("cargo::rustc-env=CORACLE_ECHO={}", program.display());

    Ok(())
}
