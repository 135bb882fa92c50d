//! Compiles the container runtime interface without `protoc`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["api.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .build_server(false)
        .bytes(".")
        .emit_rerun_if_changed(false)
        .compile_fds(files)?;
    Ok(())
}
