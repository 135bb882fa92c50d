//! The requests of a fleet, step by step.

use coracle_api::Value;
use coracle_client::Status;
use coracle_testkit::objects::object;
use coracle_testkit::simulated;

use super::*;

/// The requests to send now.
fn asked(fleet: &mut Fleet) -> Vec<Operation> {
    std::iter::from_fn(|| fleet.next_request())
        .map(|request| request.operation)
        .collect()
}

fn of_one_node() -> Fleet {
    let every = Duration::from_secs(10);
    let config = Config {
        nodes: 1,
        renew_every: every,
        version: "v1".into(),
    };
    Fleet::new(config, simulated(7), Journal::new())
}

/// The node is reported, with this range for its pods.
fn handle_node(fleet: &mut Fleet, range: &str) {
    let mut node = node::object(0, "v1", fleet.world.now());
    node.meta_mut().set_uid("n");
    node.as_object_mut()
        .unwrap()
        .object_mut("spec")
        .insert("podCIDRs", vec![Value::from(range)]);
    let node = Arc::new(Cached::of(node).unwrap());
    fleet.handle_node(&Change::Added {
        object: node,
        initial: true,
    });
}

fn handle_pod(fleet: &mut Fleet, name: &str, status: &str) {
    let pod = object(&format!(
        "{{metadata: {{name: {name}, namespace: ns, uid: {name}}}, status: {status},
        spec: {{nodeName: sim-0000, containers: [{{name: c}}]}}}}"
    ));
    let pod = Arc::new(Cached::of(pod).unwrap());
    fleet.handle_pod(&Change::Added {
        object: pod,
        initial: false,
    });
}

/// A fleet of one existing node with one pod, whose status is being written.
fn with_a_pod() -> Fleet {
    let mut fleet = of_one_node();
    handle_node(&mut fleet, "10.244.1.0/24");
    handle_pod(&mut fleet, "p", "{}");
    let sent = asked(&mut fleet);
    assert!(matches!(
        sent.as_slice(),
        [Operation::Renew { .. }, Operation::PodStatus { .. }]
    ));
    fleet
}

#[tokio::test]
async fn no_event_follows_for_a_deleted_pod() {
    let mut fleet = with_a_pod();
    let gone = Status {
        code: 404,
        reason: "NotFound".to_string(),
        ..Status::default()
    };

    let outcome = Outcome::PodStatus {
        key: ObjectKey::new("ns", "p"),
        uid: "p".to_string(),
        result: Err(gone.into()),
    };
    fleet.done(Done { node: 0, outcome });

    assert!(asked(&mut fleet).is_empty(), "its end is on its way");
}

#[tokio::test]
async fn so_many_requests_are_under_way_and_leases_do_not_wait_for_pods() {
    let mut fleet = with_a_pod();
    for _ in 0..2 * QueueKind::Others.max_in_flight() {
        fleet.enqueue(
            0,
            Operation::Remove {
                key: ObjectKey::new("ns", "p"),
                uid: "u".to_string(),
            },
        );
    }

    fleet.renew(0);
    let sent = asked(&mut fleet);
    assert!(matches!(sent[0], Operation::Renew { .. }));

    // One status is in flight already.
    assert_eq!(sent.len(), QueueKind::Others.max_in_flight());

    fleet.done(Done {
        node: 0,
        outcome: Outcome::Removed {
            key: ObjectKey::new("ns", "x"),
            uid: String::new(),
            result: Ok(()),
        },
    });

    assert_eq!(asked(&mut fleet).len(), 1, "one is answered, the next goes");
}

#[tokio::test]
async fn a_pod_that_is_heard_of_before_its_node_keeps_its_address() {
    // The last two got theirs before their node had this range, or have another family too.
    let running = "{phase: Running, containerStatuses: [{name: c, ready: false, state: {running: {startedAt: '2026-03-01T12:00:00Z'}}}], podIPs: [";
    let own = [
        "{ip: 10.244.1.2}",
        "{ip: 10.128.0.2}",
        "{ip: 10.244.1.4}, {ip: 'fd00::4'}",
    ];

    let mut fleet = of_one_node();
    for (number, ips) in own.iter().enumerate() {
        handle_pod(
            &mut fleet,
            &format!("old-{number}"),
            &format!("{running}{ips}]}}"),
        );
    }

    handle_node(&mut fleet, "10.244.1.0/24");
    handle_pod(&mut fleet, "new", "{}");

    let mut status_written = BTreeMap::new();
    while let Some(Request { operation, .. }) = fleet.next_request() {
        if let Operation::PodStatus { key, uid, patch } = operation {
            let ips = patch
                .at(&["status", "podIPs"])
                .and_then(Value::as_array)
                .unwrap_or_default();

            let ips = ips
                .iter()
                .filter_map(|ip| ip.get("ip").and_then(Value::as_str));
            status_written.insert(key.name.clone(), ips.collect::<Vec<_>>().join(" "));
            let gone = Status {
                code: 404,
                reason: "NotFound".to_string(),
                ..Status::default()
            };

            fleet.done(Done {
                node: 0,
                outcome: Outcome::PodStatus {
                    key,
                    uid,
                    result: Err(gone.into()),
                },
            });
        }
    }

    let status_written: Vec<_> = status_written
        .iter()
        .map(|(name, ips)| (name.as_str(), ips.as_str()))
        .collect();

    let expected = [
        ("new", "10.244.1.3"),
        ("old-0", "10.244.1.2"),
        ("old-1", "10.128.0.2"),
        ("old-2", "10.244.1.4 fd00::4"),
    ];
    assert_eq!(status_written, expected);
}

#[test]
fn leases_are_renewed_at_few_moments_of_an_interval() {
    for (time, expected) in [
        (0, 0),
        (499, 0),
        (500, 1000),
        (10_003, 10_000),
        (10_900, 11_000),
    ] {
        let found = nearest(Duration::from_millis(time), Duration::from_secs(1));
        assert_eq!(found, Duration::from_millis(expected), "{time}");
    }
}
