//! Open file limits of the server and of containers.

use crate::machine::{Machine, PATIENCE};
use crate::pods::shell;

/// The server takes all descriptors that it may have, for itself alone.
#[test]
fn containers_have_the_limit_of_open_files_that_the_server_was_started_with() {
    let machine = Machine::new();
    machine.import_tools();
    machine.begin_after("ulimit -Sn 2000; ulimit -Hn 4000", &[]);
    assert!(
        machine.is_ready_within(PATIENCE),
        "the server does not get ready"
    );

    machine.apply(&[shell(
        "counting",
        "ulimit -Sn; ulimit -Hn; exec sleep 100000",
    )]);

    machine.until("logs counting", |log| log.lines().count() == 2);
    assert_eq!(machine.kubectl("logs counting"), "2000\n4000\n");

    let added = [
        "exec",
        "counting",
        "--",
        "sh",
        "-c",
        "ulimit -Sn; ulimit -Hn",
    ];

    assert_eq!(
        String::from_utf8_lossy(&machine.try_kubectl(&added).stdout),
        "2000\n4000\n"
    );

    let server = machine.server_pid().unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{server}/limits")).unwrap();
    let open_files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"))
        .unwrap();
    let numbers: Vec<&str> = open_files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers, ["4000", "4000"]);

    machine.stop_and_reset();
    machine.has_nothing();
}
