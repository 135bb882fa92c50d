//! What a fleet asks for, step by step.

use coracle_client::Status;
use coracle_testkit::objects::object;
use coracle_testkit::simulated;

use super::*;

/// The requests that are to be sent now.
fn asked(fleet: &mut Fleet) -> Vec<What> {
    std::iter::from_fn(|| fleet.next_request()).map(|request| request.what).collect()
}

/// A fleet of one node that is there, and of one pod on it, whose status is on its way.
fn with_a_pod() -> Fleet {
    let world = simulated(7);
    let every = Duration::from_secs(10);
    let config = Config { nodes: 1, renew_every: every, version: "v1".into() };
    let mut fleet = Fleet::new(config, world, Journal::new());
    let mut node = node::object(0, "v1", world.now());
    node.meta_mut().set_uid("n");
    let node = Arc::new(Cached::of(node).unwrap());
    fleet.hear_node(&Change::Added { object: node, initial: true });
    let pod = object(
        "{metadata: {name: p, namespace: ns, uid: u}, spec: {nodeName: sim-0000, containers: [{name: c}]}}",
    );
    let pod = Arc::new(Cached::of(pod).unwrap());
    fleet.hear_pod(&Change::Added { object: pod, initial: false });
    let sent = asked(&mut fleet);
    assert!(matches!(sent.as_slice(), [What::Renew { .. }, What::PodStatus { .. }]));
    fleet
}

#[tokio::test]
async fn nothing_more_is_told_of_a_pod_that_is_gone() {
    let mut fleet = with_a_pod();
    let gone = Status { code: 404, reason: "NotFound".to_string(), ..Status::default() };
    let what =
        Outcome::PodStatus { key: ObjectKey::new("ns", "p"), uid: "u".to_string(), result: Err(gone.into()) };
    fleet.done(Done { node: 0, what });
    assert!(asked(&mut fleet).is_empty(), "its end is on its way");
}

#[tokio::test]
async fn so_many_requests_are_under_way_and_leases_do_not_wait_for_pods() {
    let mut fleet = with_a_pod();
    for _ in 0..2 * Line::Others.at_most() {
        fleet.ask(0, What::Remove { key: ObjectKey::new("ns", "p"), uid: "u".to_string() });
    }
    fleet.renew(0);
    let sent = asked(&mut fleet);
    assert!(matches!(sent[0], What::Renew { .. }));
    // One status is under way already.
    assert_eq!(sent.len(), Line::Others.at_most());
    fleet.done(Done {
        node: 0,
        what: Outcome::Removed { key: ObjectKey::new("ns", "x"), uid: String::new(), result: Ok(()) },
    });
    assert_eq!(asked(&mut fleet).len(), 1, "one is answered, the next goes");
}

#[test]
fn leases_are_renewed_at_few_moments_of_an_interval() {
    for (time, expected) in [(0, 0), (499, 0), (500, 1000), (10_003, 10_000), (10_900, 11_000)] {
        let found = nearest(Duration::from_millis(time), Duration::from_secs(1));
        assert_eq!(found, Duration::from_millis(expected), "{time}");
    }
}
