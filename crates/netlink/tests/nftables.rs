//! What the kernel makes of batches, in network namespaces.
#![expect(clippy::unwrap_used, reason = "what fails here is the test")]

mod namespaces;

use std::io::Write as _;
use std::process::{Command as Program, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coracle_netlink::Version;
use coracle_netlink::nftables::{
    self, Batch, ChainKind, Command, Data, Direction, Element, End, Family, Field, Hook, Nftables,
    NftablesError, Point, Protocol, Rule, Set, SetKind, Statement, Table, Test, Type, Value,
    Verdict, Watch,
};
use coracle_netlink::route::{Connection, Peer};
use ipnet::IpNet;
use namespaces::Namespace;

/// Every statement, in each family, is what the program `nft` makes of its text.
#[test]
fn the_kernel_gets_what_the_text_says() {
    let (ours, theirs) = (Namespace::new(), Namespace::new());
    for (family, versions) in [
        (Family::Ip(Version::V4), &[Version::V4][..]),
        (Family::Ip(Version::V6), &[Version::V6]),
        (Family::Inet, &Version::BOTH),
    ] {
        let table = table(family, "every");
        let mut batch = Batch::new();
        batch.replace_table(&table);
        let mut rules: Vec<Rule> = versions
            .iter()
            .flat_map(|version| rules(*version))
            .collect();
        // It goes without saying in tables of one version.
        if family != Family::Inet {
            for rule in &mut rules {
                rule.statements
                    .retain(|statement| !matches!(statement, Statement::Version(_)));
            }
        }
        for version in versions {
            sets(&mut batch, &table, *version);
        }
        chains(&mut batch, &table, rules);

        ours.inside(|| apply(&batch).unwrap());
        theirs.inside(|| run_nft(&batch.to_string()));
        assert_eq!(
            ours.run("nft", "list ruleset"),
            theirs.run("nft", "list ruleset")
        );
        assert!(ours.run("nft", "list ruleset").contains("numgen random"));
    }
}

#[test]
fn a_refusal_names_the_command_and_nothing_is_changed() {
    Namespace::new().inside(|| {
        let table = table(Family::Ip(Version::V4), "t");
        let mut batch = Batch::new();
        batch.push(&table, Command::AddTable);
        add_chain(&mut batch, &table, "c");
        add_rule(
            &mut batch,
            &table,
            [Statement::InSet(
                vec![Field::Source(Version::V4)],
                Test::Is,
                "missing".to_owned(),
            )],
        );
        let text = error_text(apply(&batch));
        assert!(
            text.starts_with(
                "the kernel refused the nftables command `add rule ip t c ip saddr @missing`"
            ),
            "{text}"
        );
        assert!(!has(&table));

        // One of many elements.
        let mut batch = with_ports(&table, 0..20_000);
        let wrong = Element {
            key: vec![Value::Port(1), Value::Port(2), Value::Port(3)],
            data: None,
        };
        batch.push(&table, add_elements("ports", vec![port(7), wrong, port(8)]));
        let text = error_text(apply(&batch));
        assert!(
            text.contains("add element ip t ports { 1 . 2 . 3 }"),
            "{text}"
        );
        assert!(!has(&table));

        let mut batch = Batch::new();
        batch.push(
            &table,
            Command::DeleteChain {
                name: "c".to_owned(),
            },
        );
        assert!(apply(&batch).unwrap_err().is_absent());
    });
}

/// A batch is far larger than a socket's buffer, and so are its refusals.
#[test]
fn large_batches_are_applied_as_a_whole() {
    let namespace = Namespace::new();
    namespace.inside(|| {
        let table = table(Family::Ip(Version::V4), "t");
        apply(&with_ports(&table, 0..60_000)).unwrap();

        let mut batch = Batch::new();
        for number in 0..20_000 {
            let name = format!("missing{number}");
            batch.push(&table, Command::DeleteChain { name });
        }
        let text = error_text(apply(&batch));
        assert!(text.contains("delete chain ip t missing0`"), "{text}");

        // The socket is usable afterwards.
        let mut nftables = Nftables::open().unwrap();
        assert!(nftables.apply(&batch).unwrap_err().is_absent());
        nftables.apply(&with_ports(&table, 60_000..60_001)).unwrap();
        assert!(nftables.has_table(&table).unwrap());
    });

    let listed = namespace.run("nft", "list set ip t ports");
    assert_eq!(listed.matches(',').count(), 60_000);
}

#[test]
fn a_change_by_another_process_is_noticed_by_its_generation() {
    Namespace::new().inside(|| {
        let (ours, theirs) = (
            table(Family::Ip(Version::V4), "ours"),
            table(Family::Ip(Version::V4), "theirs"),
        );
        let mut nftables = Nftables::open().unwrap();
        let mut batch = Batch::new();
        batch.push(&ours, Command::AddTable);

        let before = nftables.generation().unwrap();
        apply(&with_ports(&theirs, 0..1)).unwrap();
        assert!(matches!(
            nftables.apply_at(&batch, before),
            Err(NftablesError::Stale)
        ));
        assert!(!has(&ours));

        let now = nftables.generation().unwrap();
        nftables.apply_at(&batch, now).unwrap();
        assert!(has(&ours));
    });
}

/// Several processes change their own tables, and others list rules meanwhile.
#[test]
fn concurrent_changes_do_not_disturb_each_other() {
    let namespace = Namespace::new();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let lister = scope.spawn(|| {
            namespace.inside(|| {
                let mut nftables = Nftables::open().unwrap();
                while !done.load(Ordering::Relaxed) {
                    let rules = nftables.rules(&table(Family::Inet, "t0"), "c").unwrap();
                    assert!(rules.is_empty() || rules.len() == 50, "{}", rules.len());
                }
            });
        });

        let namespace = &namespace;
        let writers: Vec<_> = (0..3)
            .map(|number| {
                scope.spawn(move || {
                    namespace.inside(|| {
                        let table = table(Family::Inet, &format!("t{number}"));
                        let mut nftables = Nftables::open().unwrap();
                        for _ in 0..40 {
                            let mut batch = Batch::new();
                            batch.replace_table(&table);
                            add_chain(&mut batch, &table, "c");
                            for _ in 0..50 {
                                let accept = Statement::Verdict(Verdict::Accept);
                                add_rule(&mut batch, &table, [accept]);
                            }
                            nftables.apply(&batch).unwrap();
                        }
                    });
                })
            })
            .collect();

        writers
            .into_iter()
            .for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        lister.join().unwrap();
    });
}

#[test]
fn rules_are_listed_with_their_comments_and_deleted_by_their_handles() {
    let namespace = Namespace::new();
    namespace.inside(|| {
        let table = table(Family::Ip(Version::V4), "t");
        let mut batch = Batch::new();
        batch.push(&table, Command::AddTable);
        for chain in ["c", "other"] {
            add_chain(&mut batch, &table, chain);
            for comment in [Some("ours"), None] {
                let rule = Rule {
                    comment: comment.map(str::to_owned),
                    ..Rule::new([Statement::Verdict(Verdict::Accept)])
                };
                let chain = chain.to_owned();
                batch.push(&table, Command::InsertRule { chain, rule });
            }
        }
        let mut nftables = Nftables::open().unwrap();
        nftables.apply(&batch).unwrap();

        let rules = nftables.rules(&table, "c").unwrap();
        let comments: Vec<_> = rules.iter().map(|rule| rule.comment.as_deref()).collect();
        assert_eq!(comments, [None, Some("ours")]);
        assert_eq!(nftables.rules(&table, "missing").unwrap(), []);
        assert!(!nftables.drops(&table, "c").unwrap());
        assert!(!nftables.drops(&table, "missing").unwrap());

        let mut batch = Batch::new();
        let delete = Command::DeleteRule {
            chain: "c".to_owned(),
            handle: rules[1].handle,
        };
        batch.push(&table, delete);
        nftables.apply(&batch).unwrap();
        assert_eq!(nftables.rules(&table, "c").unwrap(), rules[..1]);

        nftables::remove(&table).unwrap();
        nftables::remove(&table).unwrap();
        assert!(!nftables.has_table(&table).unwrap());
    });
}

#[test]
fn deleted_tables_are_noticed_but_replaced_ones_are_not() {
    let namespace = Namespace::new();
    namespace.inside(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let [ours, other] =
                [Version::V4, Version::V6].map(|version| table(Family::Ip(version), "t"));
            let watch = Watch::open(vec![ours.clone()]).unwrap();
            apply(&with_ports(&ours, 0..2)).unwrap();
            apply(&with_ports(&ours, 0..2)).unwrap();
            apply(&with_ports(&other, 0..2)).unwrap();
            nftables::remove(&other).unwrap();
            let short = Duration::from_millis(200);
            assert!(
                tokio::time::timeout(short, watch.table_deleted())
                    .await
                    .is_err()
            );

            run_nft("flush ruleset");
            watch.table_deleted().await;

            // So many changes that notifications are lost.
            apply(&with_ports(&ours, 0..2)).unwrap();
            apply(&with_ports(&other, 0..20_000)).unwrap();
            assert!(
                tokio::time::timeout(short, watch.table_deleted())
                    .await
                    .is_err()
            );
            nftables::remove(&ours).unwrap();
            apply(&with_ports(&other, 20_000..40_000)).unwrap();
            watch.table_deleted().await;
        });
    });
}

#[test]
fn interfaces_are_connected_across_namespaces() {
    let (node, pod) = (Namespace::new(), Namespace::new());
    node.inside(|| {
        let mut host = Connection::open().unwrap();
        host.add_bridge("br0", [2, 0, 0, 0, 0, 1], 1400).unwrap();
        assert!(
            host.add_bridge("br0", [2, 0, 0, 0, 0, 1], 1400)
                .unwrap_err()
                .is_present()
        );
        let bridge = host.link("br0").unwrap().unwrap();
        assert_eq!(host.mtu(bridge).unwrap(), Some(1400));
        assert_eq!(host.link("br1").unwrap(), None);

        let file = std::fs::File::open(pod.path()).unwrap();
        let peer = Peer {
            name: "eth0",
            mac: [2, 0, 0, 0, 0, 2],
            namespace: &file,
        };
        host.add_pair("veth0", bridge, 1400, &peer).unwrap();
        let mut inside = Connection::open_in(&file, || {}).unwrap();
        let index = inside.link("eth0").unwrap().unwrap();
        for address in ["10.1.0.2/24", "fd01::2/64"] {
            let address: IpNet = address.parse().unwrap();
            inside.add_address(index, address).unwrap();
            inside.add_address(index, address).unwrap();
            assert!(inside.addresses(index).unwrap().contains(&address));
        }
        inside.set_up(index).unwrap();
        inside
            .add_default_route("10.1.0.1".parse().unwrap(), index)
            .unwrap();
        assert_eq!(inside.uplink().unwrap(), Some(index));

        host.delete_link("veth0").unwrap();
        host.delete_link("veth0").unwrap();
        assert_eq!(inside.link("eth0").unwrap(), None);
    });
    assert!(node.run("ip", "-o link").contains("br0"));
}

fn table(family: Family, name: &str) -> Table {
    Table {
        family,
        name: name.to_owned(),
    }
}

fn apply(batch: &Batch) -> Result<(), NftablesError> {
    Nftables::open()?.apply(batch)
}

fn has(table: &Table) -> bool {
    Nftables::open().unwrap().has_table(table).unwrap()
}

/// An error with what caused it.
fn error_text(result: Result<(), NftablesError>) -> String {
    let error = result.unwrap_err();
    format!("{error}: {:?}", std::error::Error::source(&error))
}

fn run_nft(script: &str) {
    let mut nft = Program::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = nft.stdin.take().unwrap();
    input.write_all(script.as_bytes()).unwrap();
    drop(input);
    assert!(nft.wait().unwrap().success(), "{script}");
}

fn add_chain(batch: &mut Batch, table: &Table, name: &str) {
    let name = name.to_owned();
    batch.push(table, Command::AddChain { name, hook: None });
}

fn add_rule(batch: &mut Batch, table: &Table, statements: impl IntoIterator<Item = Statement>) {
    let rule = Rule::new(statements);
    let chain = "c".to_owned();
    batch.push(table, Command::AddRule { chain, rule });
}

fn add_elements(set: &str, elements: Vec<Element>) -> Command {
    let set = set.to_owned();
    Command::AddElements { set, elements }
}

fn port(number: u16) -> Element {
    Element {
        key: vec![Value::Protocol(Protocol::Tcp), Value::Port(number)],
        data: None,
    }
}

/// A table with a set of ports, to which these are added.
fn with_ports(table: &Table, ports: std::ops::Range<u16>) -> Batch {
    let mut batch = Batch::new();
    batch.push(table, Command::AddTable);
    let set = Set {
        name: "ports".to_owned(),
        key: vec![Type::Protocol, Type::Port],
        kind: SetKind::Values,
    };
    batch.push(table, Command::AddSet(set));
    batch.push(table, add_elements("ports", ports.map(port).collect()));
    batch
}

fn name(of: &str, version: Version) -> String {
    format!("{of}-{version:?}")
}

fn addresses(version: Version) -> (std::net::IpAddr, [IpNet; 4]) {
    let (address, ranges) = match version {
        Version::V4 => (
            "10.96.0.1",
            ["10.0.0.0/8", "172.16.0.0/12", "192.0.2.1/32", "224.0.0.0/3"],
        ),
        Version::V6 => (
            "fd96::1",
            ["fc00::/16", "fd00::/47", "fd01::1/128", "fe00::/7"],
        ),
    };
    (
        address.parse().unwrap(),
        ranges.map(|range| range.parse().unwrap()),
    )
}

fn sets(batch: &mut Batch, table: &Table, version: Version) {
    let address = Type::Address(version);
    let frontend = vec![address, Type::Protocol, Type::Port];
    let (ip, ranges) = addresses(version);
    let values = vec![
        Value::Address(ip),
        Value::Protocol(Protocol::Sctp),
        Value::Port(443),
    ];
    let element = |key: &[Value], data| Element {
        key: key.to_vec(),
        data,
    };

    let with = |range| [values.as_slice(), &[Value::Range(range)]].concat();
    let to = Data::Values(vec![Value::Address(ip), Value::Port(8443)]);
    let all = [
        (
            "plain",
            SetKind::Values,
            frontend.clone(),
            vec![element(&values, None)],
        ),
        (
            "one",
            SetKind::Values,
            vec![address],
            vec![element(&values[..1], None)],
        ),
        (
            "ranges",
            SetKind::Ranges,
            vec![address],
            ranges
                .iter()
                .map(|range| element(&[Value::Range(*range)], None))
                .collect(),
        ),
        (
            "allowed",
            SetKind::Ranges,
            [frontend.as_slice(), &[address]].concat(),
            ranges
                .iter()
                .map(|range| element(&with(*range), None))
                .collect(),
        ),
        (
            "recent",
            SetKind::Recent(Duration::from_secs(10_800)),
            vec![address],
            vec![],
        ),
        (
            "verdicts",
            SetKind::Verdicts,
            frontend.clone(),
            vec![element(
                &values,
                Some(Data::Verdict(Verdict::Goto("target".to_owned()))),
            )],
        ),
        (
            "ports",
            SetKind::Verdicts,
            frontend[1..].to_vec(),
            vec![element(&values[1..], Some(Data::Verdict(Verdict::Drop)))],
        ),
        (
            "map",
            SetKind::Map(vec![address, Type::Port]),
            frontend,
            vec![element(&values, Some(to))],
        ),
    ];

    add_chain(batch, table, "target");
    for (of, kind, key, elements) in all {
        let name = name(of, version);
        let set = Set { name, key, kind };
        let add = add_elements(&set.name, elements);
        batch.push(table, Command::AddSet(set));
        if !matches!(&add, Command::AddElements { elements, .. } if elements.is_empty()) {
            batch.push(table, add);
        }
    }
}

fn rules(version: Version) -> Vec<Rule> {
    let (source, destination) = (Field::Source(version), Field::Destination(version));
    let key = vec![destination, Field::Protocol, Field::DestinationPort];
    let (ip, ranges) = addresses(version);
    let with_source = [key.as_slice(), &[source]].concat();
    let set = |of: &str| name(of, version);
    let accept = || Statement::Verdict(Verdict::Accept);

    let mut rules: Vec<Vec<Statement>> = Vec::new();
    for test in [Test::Is, Test::IsNot] {
        rules.extend([
            vec![Statement::InSet(key.clone(), test, set("plain")), accept()],
            vec![
                Statement::InSet(with_source.clone(), test, set("allowed")),
                accept(),
            ],
            vec![
                Statement::InSet(vec![source], test, set("ranges")),
                accept(),
            ],
            vec![
                Statement::Interface(Direction::In, test, "br0".to_owned()),
                accept(),
            ],
            vec![
                Statement::InterfacePrefix(Direction::Out, test, "cor-".to_owned()),
                accept(),
            ],
            vec![
                Statement::Ranges(source, test, ranges[..3].to_vec()),
                accept(),
            ],
        ]);
        for range in ranges {
            rules.push(vec![
                Statement::Ranges(destination, test, vec![range]),
                accept(),
            ]);
        }
    }

    let chains = vec![
        "target".to_owned(),
        "target".to_owned(),
        "target".to_owned(),
    ];
    let protocols = vec![Protocol::Tcp, Protocol::Udp, Protocol::Sctp];
    rules.extend([
        vec![
            Statement::Version(version),
            Statement::Port(Protocol::Tcp, 80),
            accept(),
        ],
        vec![Statement::Protocols(vec![Protocol::Udp]), accept()],
        vec![
            Statement::NewConnection,
            Statement::Local(End::Source),
            Statement::Verdict(Verdict::Drop),
        ],
        vec![
            Statement::Redirected,
            Statement::Local(End::Destination),
            accept(),
        ],
        vec![Statement::AnyMark(0x4000), Statement::ToggleMark(0x4000)],
        vec![Statement::AllMarks(0x2000), Statement::SetMark(0x8000_0000)],
        vec![Statement::Remember {
            set: set("recent"),
            field: source,
        }],
        vec![Statement::Lookup(key.clone(), set("verdicts"))],
        vec![Statement::Lookup(key[1..].to_vec(), set("ports"))],
        vec![Statement::Random(chains)],
        vec![Statement::Verdict(Verdict::Jump("target".to_owned()))],
        vec![
            Statement::Protocols(protocols.clone()),
            Statement::RedirectBy {
                version,
                key,
                map: set("map"),
            },
        ],
        vec![
            Statement::Version(version),
            Statement::Protocols(vec![Protocol::Tcp]),
            Statement::Redirect(std::net::SocketAddr::new(ip, 8080)),
        ],
    ]);

    let mut rules: Vec<Rule> = rules.into_iter().map(Rule::new).collect();
    rules.push(Rule {
        comment: Some("why it is here".to_owned()),
        ..Rule::new([accept()])
    });
    rules
}

/// The rules in a chain of the kind that takes them all, and others in chains of their own.
fn chains(batch: &mut Batch, table: &Table, rules: Vec<Rule>) {
    let hooks = [
        ("c", ChainKind::Nat, Point::Prerouting, -100),
        ("at-input", ChainKind::Filter, Point::Input, 5),
        ("at-forward", ChainKind::Filter, Point::Forward, 0),
        ("at-output", ChainKind::Filter, Point::Output, -110),
        ("at-postrouting", ChainKind::Nat, Point::Postrouting, 100),
    ];
    for (name, kind, point, priority) in hooks {
        let hook = Some(Hook {
            kind,
            point,
            priority,
        });
        let name = name.to_owned();
        batch.push(table, Command::AddChain { name, hook });
    }
    for rule in rules {
        let chain = "c".to_owned();
        batch.push(table, Command::AddRule { chain, rule });
    }

    let forward = [
        vec![Statement::Protocols(vec![Protocol::Tcp]), Statement::Reset],
        vec![Statement::Reject],
    ];
    let post = [
        vec![
            Statement::Protocols(vec![Protocol::Udp]),
            Statement::Masquerade { random_port: true },
        ],
        vec![Statement::Masquerade { random_port: false }],
    ];
    for (chain, rules) in [("at-forward", forward), ("at-postrouting", post)] {
        for statements in rules {
            let (chain, rule) = (chain.to_owned(), Rule::new(statements));
            batch.push(table, Command::AddRule { chain, rule });
        }
    }
}
