//! `coracle ctr` and `coracle image` on a node, without the API.

use std::fs;

use serde_json::Value;

use crate::machine::{Machine, eventually};
use crate::registry::Registry;
use crate::tools_image::{TOOLS, save_tools};

/// An archive in the preload folder is an image that pods run, whatever else lies there. `coracle
/// ctr` and `coracle image` see what there is, with a server and without.
#[test]
fn ctr_and_image_commands_work_without_the_api() {
    let machine = Machine::new();
    let preload = machine.data_dir().join("preload");
    fs::create_dir_all(&preload).unwrap();
    save_tools(&preload.join("tools.tar"));

    fs::write(preload.join("broken.tar"), "no archive").unwrap();
    let nothing = machine.coracle(&["ctr", "ps"]).output().unwrap();
    let complaint = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(
        !nothing.status.success() && complaint.contains("no cluster in this data directory"),
        "{complaint}"
    );

    machine.start();
    machine.types(&format!(
        "coracle kubectl run printer --image={TOOLS} --command -- sh -c 'seq 1 3; echo oops >&2; exec sleep 100000'"
    ));
    machine.until("get pod printer -o jsonpath={.status.phase}", |phase| {
        phase == "Running"
    });

    machine.until("logs printer", |log| log.lines().count() == 4);
    inspect(&machine);
    assert!(
        machine
            .types("coracle image ls")
            .contains("example.test/tools")
    );

    import_and_pull_images(&machine);

    // What comes into the folder while the server runs is an image as well.
    machine.types(&format!("coracle image rm {TOOLS}"));
    fs::copy(preload.join("tools.tar"), preload.join("again.tar")).unwrap();
    eventually("the image is there again", || {
        match machine.types("coracle image ls") {
            table if table.contains("example.test/tools") => Ok(()),
            table => Err(table),
        }
    });

    machine.kill_server();

    // What runs goes on without a server, and can be looked into.
    inspect(&machine);
    import_and_pull_images(&machine);
    machine.start();
    machine.kubectl("delete pod printer --timeout=300s");
    eventually("nothing runs", || match machine.types("coracle ctr ps") {
        table if table.contains("printer") => Err(table),
        _ => Ok(()),
    });

    machine.stop_and_reset();
}

fn inspect(machine: &Machine) {
    let pods = machine.types("coracle ctr pods");
    let line = pods
        .lines()
        .find(|line| line.ends_with("printer"))
        .unwrap_or_else(|| panic!("{pods}"));
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(&words[1..], ["Ready", "default", "printer"]);

    let containers = machine.types("coracle ctr ps");
    let line = containers.lines().find(|line| line.contains("printer"));
    let line = line.unwrap_or_else(|| panic!("{containers}"));
    assert!(line.contains("Running") && line.ends_with(TOOLS), "{line}");

    let id = line.split_whitespace().next().unwrap();
    assert_eq!(
        machine.types(&format!("coracle ctr logs {id}")),
        "1\n2\n3\n"
    );

    assert_eq!(
        machine.types(&format!("coracle ctr logs {id} 2>&1 >/dev/null")),
        "oops\n"
    );

    let said = machine.types(&format!(
        "echo word | coracle ctr exec -i {id} sh -c 'read it; echo inside $it'"
    ));
    assert_eq!(said, "inside word\n");

    let failed = machine
        .coracle(&["ctr", "exec", id, "sh", "-c", "exit 7"])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(
        failed.status.code() == Some(7) && complaint.contains("exit code 7"),
        "{complaint}"
    );

    assert!(
        machine
            .types(&format!("coracle ctr inspect {id}"))
            .contains(TOOLS)
    );

    assert!(
        machine
            .types(&format!("coracle ctr inspect {}", words[0]))
            .contains("printer")
    );
}

/// Images are imported and removed, with and without a running server.
fn import_and_pull_images(machine: &Machine) {
    let shown: Value =
        serde_json::from_str(&machine.types(&format!("coracle image inspect {TOOLS}"))).unwrap();
    let id = shown["id"].as_str().unwrap().to_owned();

    // In use by a container: its name goes, what the container stands on stays.
    assert_eq!(
        machine.types(&format!("coracle image rm {TOOLS}")).trim(),
        id
    );

    assert!(
        !machine
            .types("coracle image ls")
            .contains("example.test/tools")
    );

    let archive = machine.data_dir().join("preload/tools.tar");
    let imported = machine.types(&format!("coracle image import {}", archive.display()));
    assert_eq!(imported.trim(), format!("{TOOLS} {id}"));

    let registry = Registry::start(machine);
    registry.push(machine, &archive, "team/tools:2");

    let pulled = machine.types("coracle image pull 127.0.0.1:5000/team/tools:2");
    assert_eq!(pulled.trim(), format!("127.0.0.1:5000/team/tools:2 {id}"));
    assert!(
        machine
            .types("coracle image ls")
            .contains("127.0.0.1:5000/team/tools")
    );

    drop(registry);
}
