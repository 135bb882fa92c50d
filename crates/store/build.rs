//! Compiles etcd's API, one set of stubs for client and server, without `protoc`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let files = protox::compile(["rpc.proto"], ["proto"])?;
    tonic_prost_build::configure()
        .bytes(".")
        .emit_rerun_if_changed(false)
        .compile_fds(files)?;
    Ok(())
}
