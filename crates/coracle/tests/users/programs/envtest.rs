//! envtest with links as its assets: the suite of `tests/clients/envtest`, which passes with
//! upstream's programs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::Links;
use crate::cluster::tool;
use crate::simulated_nodes::until;

/// The suite with its assets; what it writes goes to `folder`.
fn suite(links: &Links, folder: &Path) -> Command {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/envtest");
    let mut command = Command::new(tool("envtest"));
    command
        .current_dir(sources)
        .env("KUBEBUILDER_ASSETS", links.path())
        .env("TMPDIR", folder);
    command
}

fn assert_passes(output: &Output) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{out}\n{error}");
}

#[test]
fn a_suite_passes() {
    let (links, folder) = (Links::new(), tempfile::tempdir().unwrap());
    let output = suite(&links, folder.path()).output().unwrap();
    assert_passes(&output);
    assert_eq!(links.running(), Vec::<String>::new());
}

#[test]
fn controllers_run_where_a_suite_asks_for_them() {
    let (links, folder) = (Links::new(), tempfile::tempdir().unwrap());
    let mut command = suite(&links, folder.path());
    command
        .env(
            "CONTROLLERS",
            "garbage-collector-controller,namespace-controller",
        )
        .args(["-test.run", "TestControllersRunOnRequest"]);
    assert_passes(&command.output().unwrap());
}

/// envtest's own files stay: what the test wrote, the test must remove.
#[test]
fn a_killed_test_leaves_no_process_and_no_data() {
    let (links, folder) = (Links::new(), tempfile::tempdir().unwrap());
    let mut command = suite(&links, folder.path());
    let mut suite = command
        .env("HANG", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(suite.stdout.take().unwrap()).lines();
    let reached = lines.map_while(Result::ok).any(|line| line == "hanging");
    assert!(reached, "the suite has ended");
    assert_eq!(links.running().len(), 2, "{:?}", links.running());

    suite.kill().unwrap();
    suite.wait().unwrap();
    until("nothing runs", || links.running().is_empty());
    let left = std::fs::read_dir(folder.path()).unwrap().flatten();
    let stores = left.filter(|entry| entry.path().join("store").exists());
    assert_eq!(stores.count(), 0, "a store is left");
}
