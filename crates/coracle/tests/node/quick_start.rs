//! The quick start of the README and the tour of docs/install.md: runs their commands as written
//! there.

use std::fs;
use std::path::Path;

use crate::machine::Machine;

/// The quick start and the tour, line by line: a pod; then a Deployment behind a Service, reached by its address from the
/// machine and by its name from a pod; logs, a command, `why`; then all of it is deleted.
#[test]
fn the_quick_start_and_the_tour_work() {
    let machine = Machine::new();
    machine.start();

    let quick_start = commands("README.md", "## Quick start");
    assert_eq!(quick_start.len(), 2, "{quick_start:?}");
    for line in &quick_start {
        machine.types(line);
    }
    assert_eq!(
        machine.kubectl("get pods -o jsonpath={.items[*].status.phase}"),
        "Running"
    );
    machine.kubectl("delete pods --all");

    let lines = commands("docs/install.md", "## A tour");
    assert!(lines.len() > 10, "{lines:?}");
    let said: Vec<String> = lines.iter().map(|line| machine.types(line)).collect();
    let of = |words: &str| &said[lines.iter().position(|line| line.contains(words)).unwrap()];
    assert!(of("curl").contains("\"host\":\"echo-"), "{}", of("curl"));
    assert!(
        of("logs visitor").contains("\"host\":\"echo-"),
        "{}",
        of("logs visitor")
    );
    assert!(of("why").contains("deployment/echo"), "{}", of("why"));

    machine.until("get pods -o name", str::is_empty);
    let port = machine.kubectl("get service kubernetes -o jsonpath={.spec.ports[0].port}");
    assert_eq!(port, "443");
}

/// The commands of a section of a page, without those that start the cluster.
fn commands(page: &str, heading: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let text = fs::read_to_string(page).unwrap();
    let section = text
        .split(heading)
        .nth(1)
        .unwrap()
        .split("\n## ")
        .next()
        .unwrap();
    let typed = section.lines().filter_map(|line| line.strip_prefix("    "));
    typed
        .filter(|line| !line.starts_with("make "))
        .map(str::to_owned)
        .collect()
}

/// Ports of the node lead to Services too; a pod that ends is started again; a server that was
/// killed finds its pods as they were.
#[test]
fn pods_outlive_the_server() {
    let machine = Machine::new();
    machine.start();
    machine.kubectl("create deployment echo --image=coracle.local/echo --replicas=2");
    machine.kubectl("expose deployment echo --port=80 --target-port=8080 --type=NodePort");
    machine.kubectl("rollout status deployment/echo --timeout=300s");
    let port = machine.kubectl("get service echo -o jsonpath={.spec.ports[0].nodePort}");

    let url = format!("http://192.0.2.2:{port}/");
    let answers = || {
        machine.run(
            "curl",
            &[
                "--silent",
                "--fail",
                "--retry",
                "3",
                "--max-time",
                "5",
                &url,
            ],
        )
    };
    assert!(answers().contains("echo-"));

    let containers = "get pods -o jsonpath={.items[*].status.containerStatuses[*].containerID}";
    let before = machine.kubectl(containers);
    machine.kill_server();
    let url = format!("http://192.0.2.2:{port}/");
    let alone = machine.run("curl", &["--silent", "--fail", "--max-time", "5", &url]);
    assert!(
        alone.contains("echo-"),
        "Services answer without the server"
    );

    machine.start();
    machine.until(
        "get nodes -o jsonpath={.items[0].status.conditions[?(@.type=='Ready')].status}",
        |ready| ready == "True",
    );

    assert_eq!(machine.kubectl(containers), before);

    let restarts = machine
        .kubectl("get pods -o jsonpath={.items[*].status.containerStatuses[*].restartCount}");
    assert_eq!(restarts, "0 0");

    machine.stop_server();
}
