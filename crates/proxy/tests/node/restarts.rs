//! A restarted process takes over the rules without an interruption.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::packets::{CLUSTER, HERE};
use crate::rig::{Rig, ask};

#[test]
fn connections_and_rules_survive_and_there_is_no_gap() {
    let mut rig = Rig::new(3);
    let _servers = rig.servers();
    rig.service("web", CLUSTER, &HERE);
    rig.sync();
    let mut held = rig.pods[2].inside(|| TcpStream::connect("10.96.0.10:80").unwrap());
    held.set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let pod = rig.pods.pop().unwrap();

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut times = 0;
            while !done.load(Ordering::Relaxed) {
                ask(&pod, "10.96.0.10:80").unwrap();
                times += 1;
            }
            times
        });

        for number in 0..20 {
            rig.restart();
            rig.service(
                &format!("other{number}"),
                &format!("clusterIPs: [10.96.1.{number}], ports: [{{port: 1}}]"),
                &[],
            );
            rig.sync();
        }

        done.store(true, Ordering::Relaxed);
        assert!(asking.join().unwrap() > 20);
    });

    held.write_all(b"still here\n").unwrap();
    let mut said = String::new();
    let mut buffer = [0; 64];
    while !said.contains("still here") {
        let length = held.read(&mut buffer).unwrap();
        assert!(length > 0);
        said.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
}

#[test]
fn changes_are_small_and_deleted_services_leave_nothing() {
    let mut rig = Rig::new(0);
    for number in 1..=50 {
        let spec = format!("clusterIPs: [10.96.2.{number}], ports: [{{port: 80}}]");
        rig.service(&format!("web{number}"), &spec, &HERE[..2]);
    }

    rig.sync();
    let full = rig.node.run("nft", "list ruleset");
    rig.endpoints("web7", &HERE[..1]);
    assert!(rig.sync() <= 6);

    rig.endpoints("web7", &HERE[..2]);
    rig.sync();
    let sticky = "clusterIPs: [10.96.3.1], ports: [{port: 80}], sessionAffinity: ClientIP";
    rig.service("sticky", sticky, &HERE[..2]);
    rig.sync();
    assert!(rig.node.run("nft", "list ruleset").contains("shop/sticky"));

    rig.set_service("sticky", None);
    rig.endpoints("sticky", &[]);
    rig.sync();

    // Flushed chains are deleted by the next transaction.
    rig.endpoints("web7", &HERE[..1]);
    rig.sync();
    rig.endpoints("web7", &HERE[..2]);
    rig.sync();
    assert_eq!(sorted(&rig.node.run("nft", "list ruleset")), sorted(&full));
}

/// The lines in sorted order, without a chain that stays empty until the next change.
fn sorted(listed: &str) -> Vec<String> {
    let mut elements: Vec<String> = listed
        .replace("elements = {", "")
        .split(['\n', ','])
        .map(|line| line.trim().trim_end_matches([' ', '}']).to_owned())
        .filter(|line| !line.is_empty() && !line.contains("pick-1 {"))
        .collect();
    elements.sort();
    elements
}
