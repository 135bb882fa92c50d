//! The static part of a table.
//!
//! The path of a packet for a Service: `guards` (load balancer source ranges), `services` (DNAT to
//! an endpoint), otherwise `refuse-*` (without endpoints: rejected or dropped; unused cluster IPs
//! never leave the machine), and `postrouting` (masquerading).

use coracle_netlink::nftables::{
    Batch, ChainKind, Command, End, Field, Hook, Point, Rule, Set, SetKind, Statement, Table, Test,
    Type, Verdict,
};
use ipnet::IpNet;

use super::{Dialect, NODE_PORT, NODE_PORT_TYPES, frontend, frontend_types};
use crate::rules::{Family, Protocol};

/// The table without Services.
pub(super) fn skeleton(batch: &mut Batch, dialect: &Dialect, family: Family) {
    let table = dialect.table(family);
    batch.push(&table, Command::AddTable);
    for set in sets(family) {
        batch.push(&table, Command::AddSet(set));
    }

    let mut chains = Chains {
        batch,
        table: &table,
    };
    refusals(&mut chains, family);
    guards(&mut chains, family);
    services(&mut chains, dialect, family);
    masquerading(&mut chains, dialect, family);
}

fn sets(family: Family) -> Vec<Set> {
    let address = Type::Address(family);
    let set = |name: &str, kind, key: &[Type]| Set {
        name: name.to_owned(),
        key: key.to_vec(),
        kind,
    };

    let frontend = frontend_types(family);
    let with = |key: &[Type]| [frontend.as_slice(), key].concat();
    let hairpin = [&[address], frontend.as_slice()].concat();

    vec![
        set("cluster-ips", SetKind::Values, &[address]),
        set("node-port-ranges", SetKind::Ranges, &[address]),
        set("service-ranges", SetKind::Ranges, &[address]),
        set("pod-ranges", SetKind::Ranges, &[address]),
        set("guarded", SetKind::Values, &frontend),
        set("allowed", SetKind::Ranges, &with(&[address])),
        set("hairpins", SetKind::Values, &hairpin),
        set("services", SetKind::Verdicts, &frontend),
        set("node-ports", SetKind::Verdicts, &NODE_PORT_TYPES),
        set("unserved", SetKind::Verdicts, &frontend),
        set("unserved-node-ports", SetKind::Verdicts, &NODE_PORT_TYPES),
    ]
}

/// Adds chains with their rules.
struct Chains<'a> {
    batch: &'a mut Batch,
    table: &'a Table,
}

impl Chains<'_> {
    fn add(&mut self, name: &str, rules: impl IntoIterator<Item = Vec<Statement>>) {
        self.chain(name, None, rules);
    }

    /// A chain that the kernel enters.
    fn enter(
        &mut self,
        name: &str,
        (kind, point, priority): (ChainKind, Point, i32),
        rules: impl IntoIterator<Item = Vec<Statement>>,
    ) {
        let hook = Hook {
            kind,
            point,
            priority,
        };
        self.chain(name, Some(hook), rules);
    }

    fn chain(
        &mut self,
        name: &str,
        hook: Option<Hook>,
        rules: impl IntoIterator<Item = Vec<Statement>>,
    ) {
        let add = Command::AddChain {
            name: name.to_owned(),
            hook,
        };
        self.batch.push(self.table, add);

        for statements in rules {
            let add = Command::AddRule {
                chain: name.to_owned(),
                rule: Rule::new(statements),
            };
            self.batch.push(self.table, add);
        }
    }
}

fn jump(chain: &str) -> Statement {
    Statement::Verdict(Verdict::Jump(chain.to_owned()))
}

fn to_set(field: Field, set: &str) -> Statement {
    Statement::InSet(vec![field], Test::Is, set.to_owned())
}

/// TCP is rejected by a reset: ICMP errors are rate-limited by the kernel.
fn refusals(chains: &mut Chains<'_>, family: Family) {
    let destination = Field::Destination(family);
    chains.add(
        "refused",
        [
            vec![Statement::Protocols(vec![Protocol::Tcp]), Statement::Reset],
            vec![Statement::Reject],
        ],
    );

    let unserved = || Statement::Lookup(frontend(family), "unserved".to_owned());
    chains.add(
        "unclaimed",
        [
            vec![unserved()],
            vec![
                to_set(destination, "cluster-ips"),
                Statement::Verdict(Verdict::Goto("refused".to_owned())),
            ],
            vec![
                to_set(destination, "service-ranges"),
                Statement::Verdict(Verdict::Drop),
            ],
        ],
    );

    let mut at_node = vec![Statement::NewConnection];
    at_node.extend(node_port(family, "unserved-node-ports"));
    chains.enter(
        "refuse-input",
        (ChainKind::Filter, Point::Input, 0),
        [at_node, vec![Statement::NewConnection, unserved()]],
    );

    for (name, point) in [
        ("refuse-forward", Point::Forward),
        ("refuse-output", Point::Output),
    ] {
        let rule = vec![Statement::NewConnection, jump("unclaimed")];
        chains.enter(name, (ChainKind::Filter, point, 0), [rule]);
    }
}

fn guards(chains: &mut Chains<'_>, family: Family) {
    let from = [frontend(family), vec![Field::Source(family)]].concat();
    let guard = vec![
        Statement::NewConnection,
        Statement::InSet(frontend(family), Test::Is, "guarded".to_owned()),
        Statement::InSet(from, Test::IsNot, "allowed".to_owned()),
        Statement::Verdict(Verdict::Drop),
    ];
    chains.add("guards", [guard]);

    for (name, point) in [
        ("guard-prerouting", Point::Prerouting),
        ("guard-output", Point::Output),
    ] {
        let hook = (ChainKind::Filter, point, -110);
        chains.enter(name, hook, [vec![jump("guards")]]);
    }
}

fn services(chains: &mut Chains<'_>, dialect: &Dialect, family: Family) {
    let mut at_node = vec![Statement::Local(End::Destination)];
    at_node.extend(node_port(family, "node-ports"));
    let at_address = vec![Statement::Lookup(frontend(family), "services".to_owned())];

    let rules = masquerade_external(dialect, family)
        .into_iter()
        .chain([at_address, at_node]);
    chains.add("services", rules);

    for (name, point) in [("prerouting", Point::Prerouting), ("output", Point::Output)] {
        let hook = (ChainKind::Nat, point, -100);
        chains.enter(name, hook, [vec![jump("services")]]);
    }
}

/// Looks a NodePort up in a map. NodePorts are not reachable on loopback.
fn node_port(family: Family, map: &str) -> [Statement; 3] {
    let loopback: IpNet = match family {
        Family::V4 => IpNet::V4(ipnet::Ipv4Net::new_assert([127, 0, 0, 0].into(), 8)),
        Family::V6 => IpNet::V6(std::net::Ipv6Addr::LOCALHOST.into()),
    };
    let destination = Field::Destination(family);
    [
        Statement::Ranges(destination, Test::IsNot, vec![loopback]),
        to_set(destination, "node-port-ranges"),
        Statement::Lookup(NODE_PORT.to_vec(), map.to_owned()),
    ]
}

/// Masquerades traffic to cluster IPs that does not come from local pods: replies must pass this
/// node.
fn masquerade_external(dialect: &Dialect, family: Family) -> Option<Vec<Statement>> {
    let others = dialect.of_pod(family, Test::IsNot);
    if !dialect.masquerade_all && others.is_none() {
        return None;
    }

    let to_cluster_ip = to_set(Field::Destination(family), "cluster-ips");
    let others = others.filter(|_| !dialect.masquerade_all);
    Some(
        [to_cluster_ip]
            .into_iter()
            .chain(others)
            .chain([dialect.masquerade()])
            .collect(),
    )
}

fn masquerading(chains: &mut Chains<'_>, dialect: &Dialect, family: Family) {
    let masquerade = || Statement::Masquerade { random_port: true };
    let marked = vec![
        Statement::AnyMark(dialect.mark()),
        Statement::ToggleMark(dialect.mark()),
        masquerade(),
    ];

    let key = [vec![Field::Source(family)], frontend(family)].concat();
    let hairpin = vec![
        Statement::Redirected,
        Statement::InSet(key, Test::Is, "hairpins".to_owned()),
        masquerade(),
    ];

    let hook = (ChainKind::Nat, Point::Postrouting, 100);
    chains.enter("postrouting", hook, [marked, hairpin]);
}
