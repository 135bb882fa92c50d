//! A network segment that connects test machines.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::machine::Machine;

/// A bridge in a network namespace of its own.
pub(crate) struct Segment {
    namespace: String,
    machines: AtomicU32,
}

impl Segment {
    pub(crate) fn new() -> Segment {
        static COUNT: AtomicU32 = AtomicU32::new(0);

        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let namespace = format!("coracle-lan-{}-{number}", std::process::id());
        run("ip", &["netns", "add", &namespace]);
        let segment = Segment {
            namespace,
            machines: AtomicU32::new(0),
        };
        segment.run(&["link", "add", "br0", "type", "bridge"]);
        segment.run(&["link", "set", "br0", "up"]);
        segment
    }

    /// A new machine on the segment, and its address.
    pub(crate) fn machine(&self) -> (Machine, String) {
        let number = self.machines.fetch_add(1, Ordering::Relaxed) + 1;
        let (machine, address) = (Machine::unconnected(), format!("198.51.100.{number}"));
        let port = format!("port{number}");
        let ends = [
            "link",
            "add",
            "eth0",
            "netns",
            machine.namespace(),
            "type",
            "veth",
            "peer",
            "name",
            &port,
            "netns",
            &self.namespace,
        ];
        run("ip", &ends);
        self.run(&["link", "set", &port, "master", "br0", "up"]);

        for line in [
            format!("ip address add {address}/24 dev eth0"),
            "ip link set eth0 up".to_owned(),
            "ip route add default via 198.51.100.254".to_owned(),
        ] {
            machine.types(&line);
        }
        (machine, address)
    }

    fn run(&self, arguments: &[&str]) {
        let namespace = format!("--net=/run/netns/{}", self.namespace);
        run(
            "nsenter",
            &[&[namespace.as_str(), "ip"], arguments].concat(),
        );
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        drop(
            Command::new("ip")
                .args(["netns", "delete", &self.namespace])
                .status(),
        );
    }
}

fn run(program: &str, arguments: &[&str]) {
    let status = Command::new(program).args(arguments).status().unwrap();
    assert!(status.success(), "{program} {arguments:?}");
}
