//! Containers of `crun` and `runc`, started from a bundle.

use std::fs;
use std::path::Path;
use std::process::Command;

use tokio::time::Instant;

use crate::{common, milliseconds};

/// A bundle whose container sleeps.
pub(crate) fn make(bundle: &Path) {
    common::unpack_busybox(&bundle.join("rootfs"));
    let done = Command::new("runc")
        .arg("spec")
        .current_dir(bundle)
        .status()
        .expect("runc is installed");
    assert!(done.success());

    let path = bundle.join("config.json");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("\"terminal\": true", "\"terminal\": false");
    fs::write(&path, text.replacen("\"sh\"", "\"sleep\", \"1000\"", 1)).unwrap();
}

/// How long the bundle takes until it runs, and a command inside until it has ended.
pub(crate) fn measure(program: &str, folder: &Path, bundle: &Path, run: usize) -> (f64, f64) {
    let id = format!("coracle-bench-{program}-{run}");
    let state = folder.join(program);

    let call = |args: &[&str]| {
        let begin = Instant::now();
        let done = Command::new(program)
            .arg("--root")
            .arg(&state)
            .args(args)
            .current_dir(bundle)
            .status();

        assert!(
            done.expect("runc and crun are installed").success(),
            "{program} {args:?}"
        );

        milliseconds(begin)
    };
    let started = call(&["run", "--detach", &id]);

    let executed = call(&["exec", &id, "true"]);
    call(&["delete", "--force", &id]);

    (started, executed)
}

/// Runs a program that must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output();
    let output =
        output.unwrap_or_else(|error| panic!("{program}: {error}; see scripts/test-prereqs.sh"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}
