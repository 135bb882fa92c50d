//! The released bytes of version 1: running supervisors speak them, and files on disk contain them.
//!
//! `version-1.txt` and `keeper-1.txt` (messages of the keeper) never change. A request or record
//! with other fields is a new one, with its own tag and in a later version of the protocol.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

use std::collections::BTreeMap;
use std::fmt::Debug;

use coracle_supervisor::protocol::*;

/// Messages and records by name, in hexadecimal.
static FROZEN: &str = concat!(include_str!("version-1.txt"), include_str!("keeper-1.txt"));

#[test]
fn the_bytes_of_version_1_never_change() {
    let mut seen = FrozenMessages {
        frozen: frozen(),
        missing: String::new(),
    };

    for (number, request) in (7..).zip(requests()) {
        let name = format!("request {}", name_of_request(&request));
        seen.check(&name, &FromRuntime { number, request });
    }

    for (number, reply) in (7..).zip(replies()) {
        let name = format!("reply {}", name_of_reply(&reply));
        seen.check(&name, &FromSupervisor { number, reply });
    }

    for failure in failures() {
        let name = format!("failure {}", name_of_failure(&failure));
        seen.check(&name, &failure);
    }

    for message in to_keeper() {
        seen.check(
            &format!("to keeper {}", name_of_message(&message)),
            &message,
        );
    }

    for message in from_keeper() {
        seen.check(
            &format!("from keeper {}", name_of_answer(&message)),
            &message,
        );
    }

    seen.check("record exit", &exit());
    seen.check("record held", &held());

    for (number, pid) in pids().into_iter().enumerate() {
        seen.check(&format!("pid {number}"), &pid);
    }

    assert!(seen.missing.is_empty(), "not frozen yet:\n{}", seen.missing);
    assert!(
        seen.frozen.is_empty(),
        "frozen but no longer in the protocol: {:?}",
        seen.frozen.keys()
    );
}

struct FrozenMessages {
    frozen: BTreeMap<String, Vec<u8>>,
    missing: String,
}

impl FrozenMessages {
    fn check<T: Wire + PartialEq + Debug>(&mut self, name: &str, value: &T) {
        let bytes = encode(value);
        match self.frozen.remove(name) {
            Some(frozen) => {
                assert_eq!(decode::<T>(&frozen).as_ref(), Ok(value), "{name} is read");
                assert_eq!(bytes, frozen, "{name} is written");
            }
            None => self.missing += &format!("{name}: {}\n", hex(&bytes)),
        }
    }
}

fn frozen() -> BTreeMap<String, Vec<u8>> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let line = |line: &str| {
        let (name, text) = line.split_once(": ").unwrap();
        (
            name.to_owned(),
            text.as_bytes().chunks(2).map(byte).collect(),
        )
    };
    FROZEN.lines().map(line).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn requests() -> Vec<Request> {
    let container = text("c");
    let join = Join::V2 { folder: text("/g") };
    let exec = ExecSpec {
        container: container.clone(),
        process: process(),
        join,
    };

    vec![
        Request::Hello {},
        Request::Create {
            spec: container_spec(),
        },
        Request::Start {
            container: container.clone(),
        },
        Request::Signal {
            container: container.clone(),
            signal: 15,
        },
        Request::Exec { spec: exec },
        Request::KillExec { exec: 9 },
        Request::Attach {
            container: container.clone(),
            stdout: true,
            stderr: false,
        },
        Request::CloseStdin {
            container: container.clone(),
        },
        Request::ReopenLog {
            container: container.clone(),
        },
        Request::Delete {
            container: container.clone(),
        },
        Request::Pause {
            join: Join::V1 {
                tasks: vec![text("/t")],
            },
        },
        Request::Quit {},
        Request::ReturnTerminal { container },
    ]
}

/// A request that is added does not compile without a name here.
fn name_of_request(request: &Request) -> &'static str {
    match request {
        Request::Hello {} => "hello",
        Request::Create { .. } => "create",
        Request::Start { .. } => "start",
        Request::Signal { .. } => "signal",
        Request::Exec { .. } => "exec",
        Request::KillExec { .. } => "kill exec",
        Request::Attach { .. } => "attach",
        Request::CloseStdin { .. } => "close stdin",
        Request::ReopenLog { .. } => "reopen log",
        Request::Delete { .. } => "delete",
        Request::Pause { .. } => "pause",
        Request::Quit {} => "quit",
        Request::ReturnTerminal { .. } => "return terminal",
    }
}

fn replies() -> Vec<Reply> {
    let report = |phase| ContainerReport {
        id: text("c"),
        pid: 4,
        phase,
        dropped_lines: 3,
    };

    let phases = [
        Phase::Created {},
        Phase::Running {},
        Phase::Exited { exit: exit() },
    ];

    vec![
        Reply::Welcome {
            version: 1,
            containers: phases.map(report).to_vec(),
            pause: Some(5),
        },
        Reply::Done {},
        Reply::Failed {
            failure: Failure::WrongPhase { text: text("w") },
        },
        Reply::Created {
            pid: 6,
            warnings: vec![text("w")],
        },
        Reply::ExecStarted { pid: 7 },
        Reply::ExecExited { code: -1 },
        Reply::Attached { terminal: true },
        Reply::Exited {
            container: text("c"),
            exit: exit(),
        },
    ]
}

fn name_of_reply(reply: &Reply) -> &'static str {
    match reply {
        Reply::Welcome { .. } => "welcome",
        Reply::Done {} => "done",
        Reply::Failed { .. } => "failed",
        Reply::Created { .. } => "created",
        Reply::ExecStarted { .. } => "exec started",
        Reply::ExecExited { .. } => "exec exited",
        Reply::Attached { .. } => "attached",
        Reply::Exited { .. } => "exited",
    }
}

fn failures() -> Vec<Failure> {
    vec![
        Failure::NoSuchContainer {},
        Failure::WrongPhase { text: text("w") },
        Failure::Step {
            text: text("s"),
            errno: 2,
        },
    ]
}

fn name_of_failure(failure: &Failure) -> &'static str {
    match failure {
        Failure::NoSuchContainer {} => "no such container",
        Failure::WrongPhase { .. } => "wrong phase",
        Failure::Step { .. } => "step",
    }
}

fn pids() -> Vec<Pid> {
    vec![
        Pid::Own {},
        Pid::Host {},
        Pid::Pod {},
        Pid::Container { id: text("c") },
    ]
}

fn exit() -> Exit {
    Exit {
        code: 137,
        at: 1_794_812_049_123_456_789,
        oom_kills: 2,
        unknown: true,
    }
}

fn held() -> Held {
    Held {
        id: text("c"),
        pid: 4,
        born: 5,
        running: true,
        terminal: false,
        join: Join::V1 {
            tasks: vec![text("/t")],
        },
        shares_pids: true,
        log: Some(text("/l")),
        exit_file: text("/e"),
        oom: Some(OomCounter {
            file: text("/o"),
            key: text("k"),
        }),
    }
}

fn process() -> Process {
    Process {
        args: vec![text("a"), text("b")],
        env: vec![text("E=1")],
        cwd: text("/w"),
        uid: 1,
        gid: 2,
        groups: vec![3, 4],
        capabilities: Capabilities {
            bounding: 5,
            permitted: 6,
            inheritable: 7,
            ambient: 8,
        },
        no_new_privileges: true,
        seccomp: vec![vec![1, 2, 3], vec![4]],
        oom_score_adj: Some(-998),
        limits: vec![ResourceLimit {
            resource: 7,
            soft: 8,
            hard: 9,
        }],
        terminal: false,
    }
}

fn mounts() -> Vec<MountSpec> {
    let bind = Bind {
        source: text("/s"),
        target: text("/t"),
        recursive: true,
        readonly: false,
        recursive_readonly: true,
        propagation: Propagation::Slave {},
        attributes: 10,
    };

    let filesystem = Filesystem {
        kind: text("proc"),
        target: text("/proc"),
        options: vec![(text("o"), text("v"))],
        attributes: 11,
        seal: true,
    };

    let link = MountSpec::Link {
        path: text("/p"),
        target: text("/q"),
    };

    vec![
        MountSpec::Bind { bind },
        MountSpec::New { filesystem },
        link,
    ]
}

fn belongings() -> Belongings {
    Belongings {
        owner: text("c"),
        pid: 7,
        terminal: true,
    }
}

fn to_keeper() -> Vec<ToKeeper> {
    vec![
        ToKeeper::Hold {
            belongings: belongings(),
        },
        ToKeeper::Release { owner: text("c") },
        ToKeeper::Return {},
        ToKeeper::Spawn {
            owner: text("s"),
            words: vec![text("w"), text("x")],
        },
        ToKeeper::How { owner: text("c") },
    ]
}

fn name_of_message(message: &ToKeeper) -> &'static str {
    match message {
        ToKeeper::Hold { .. } => "hold",
        ToKeeper::Release { .. } => "release",
        ToKeeper::Return {} => "return",
        ToKeeper::Spawn { .. } => "spawn",
        ToKeeper::How { .. } => "how",
    }
}

fn from_keeper() -> Vec<FromKeeper> {
    vec![
        FromKeeper::Released { left: 7 },
        FromKeeper::Returned {
            belongings: belongings(),
        },
        FromKeeper::Done { pid: 7 },
        FromKeeper::Spawned { pid: 7 },
        FromKeeper::Failed { errno: 2 },
        FromKeeper::Ended { code: Some(137) },
    ]
}

fn name_of_answer(message: &FromKeeper) -> &'static str {
    match message {
        FromKeeper::Released { .. } => "released",
        FromKeeper::Returned { .. } => "returned",
        FromKeeper::Done { .. } => "done",
        FromKeeper::Spawned { .. } => "spawned",
        FromKeeper::Failed { .. } => "failed",
        FromKeeper::Ended { .. } => "ended",
    }
}

fn container_spec() -> ContainerSpec {
    let namespaces = Namespaces {
        network: Some(text("/n")),
        ipc: None,
        uts: Some(text("/u")),
        pid: Pid::Container { id: text("d") },
    };

    let path = text("/dev/d");
    ContainerSpec {
        id: text("c"),
        process: process(),
        rootfs: text("/r"),
        readonly_root: true,
        propagation: Propagation::Shared {},
        namespaces,
        join: Join::V2 { folder: text("/g") },
        mounts: mounts(),
        devices: vec![Device {
            path,
            kind: b'c',
            major: 1,
            minor: 2,
            mode: 0o666,
            uid: 3,
            gid: 4,
        }],
        masked: vec![text("/m")],
        readonly: vec![text("/ro")],
        stdin: true,
        log: Some(text("/l")),
        exit_file: text("/e"),
        oom: Some(OomCounter {
            file: text("/o"),
            key: text("k"),
        }),
    }
}
