//! Definitions of other projects with hundreds of rules: gateway-api and argo-workflows, with their own
//! examples. `scripts/fetch-crds.sh` gets them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cluster::{Server, tool};

/// What refusals say, as gateway-api's own tests expect it.
const REFUSED: [&str; 4] = [
    "is invalid",
    "missing required field",
    "denied the request",
    "Invalid value",
];

/// All YAML files in a folder and those below it.
fn manifests(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(manifests(&path));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "yaml")
            && !path.ends_with("kustomization.yaml")
        {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// `-f` with each file.
fn files(paths: &[PathBuf]) -> Vec<String> {
    let each = paths.iter();
    each.flat_map(|path| ["-f".to_owned(), path.display().to_string()])
        .collect()
}

fn with_files<'a>(command: &[&'a str], files: &'a [String]) -> Vec<&'a str> {
    let files = files.iter().map(String::as_str);
    command.iter().copied().chain(files).collect()
}

/// Installs definitions (and policies that come with them), and waits until they are served.
fn install(server: &Server, folder: &Path) {
    let files = files(&manifests(folder));
    server.kubectl(&with_files(&["apply", "--server-side"], &files));
    server.kubectl(&[
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
        "--timeout=60s",
    ]);
}

fn rules(folder: &Path) -> usize {
    let text = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let count = |path| text(path).matches("  rule: ").count();
    manifests(folder).iter().map(count).sum()
}

/// A channel of gateway-api, with the examples of these channels.
fn gateway_api(channel: &str, examples: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let gateway = tool("crds").join("gateway-api");
    let definitions = gateway.join("crd").join(channel);
    assert!(rules(&definitions) > 200);
    install(&server, &definitions);

    for channel in examples {
        let valid = files(&manifests(&gateway.join("examples").join(channel)));
        server.kubectl(&with_files(&["apply"], &valid));

        for path in manifests(&gateway.join("invalid-examples").join(channel)) {
            let said = server.refused(&["apply", "-f", path.to_str().unwrap()]);
            let is_refused = REFUSED.iter().any(|words| said.contains(words));
            assert!(is_refused, "{}: {said}", path.display());
        }
    }

    server.stop();
}

#[test]
fn gateway_api_accepts_and_refuses_its_examples() {
    gateway_api("standard", &["standard"]);
}

#[test]
fn experimental_gateway_api_accepts_and_refuses_its_examples() {
    gateway_api("experimental", &["standard", "experimental"]);
}

#[test]
fn argo_workflows_accepts_its_examples_and_refuses_what_breaks_its_rules() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let argo = tool("crds").join("argo-workflows");
    let definitions = argo.join("crd");
    assert!(rules(&definitions) > 50);
    install(&server, &definitions);

    // Two have no name: it is in the text of an annotation, or below the labels.
    let (nameless, named): (Vec<_>, Vec<_>) = manifests(&argo.join("examples"))
        .into_iter()
        .partition(|path| path.ends_with("k8s-jobs.yaml") || path.ends_with("fun-with-gifs.yaml"));
    assert_eq!(nameless.len(), 2);
    for path in nameless {
        let said = server.refused(&with_files(&["create"], &files(&[path])));
        assert!(said.contains("name or generateName is required"), "{said}");
    }
    server.kubectl(&with_files(&["create", "--dry-run=server"], &files(&named)));

    let refuse = |templates: &str, why: &str| {
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {{name: w}}\n\
             spec: {{entrypoint: main, templates: [{templates}]}}\n"
        );
        let file = folder.path().join("workflow.yaml");
        fs::write(&file, text).unwrap();
        let said = server.refused(&["create", "-f", file.to_str().unwrap()]);
        assert!(said.contains(why), "{said}");
    };
    refuse(
        "{name: main, container: {image: i}, suspend: {}}",
        "template must have at most one template type",
    );
    refuse(
        "{name: main, timeout: 5s, steps: [[{name: s, template: main}]]}",
        "timeout cannot be applied to steps or dag templates",
    );
    refuse(
        "{name: main, container: {image: i}, inputs: {artifacts: [{name: a, path: /a, raw: {data: d}, http: {url: 'http://a'}}]}}",
        "at most one artifact location can be specified",
    );

    server.stop();
}
