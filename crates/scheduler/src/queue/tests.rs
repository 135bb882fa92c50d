use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::testing::{cpus, default_profile, node, pod};

fn queue() -> Queue {
    let backoff = Backoff {
        initial: Duration::from_secs(1),
        most: Duration::from_secs(10),
    };
    Queue::new(
        vec![Arc::new(default_profile())],
        Delays {
            backoff,
            parked: Duration::from_secs(300),
        },
    )
}

fn at(seconds: f64) -> Moment {
    Duration::from_secs_f64(seconds)
}

fn pop(queue: &mut Queue, now: f64) -> Option<String> {
    queue.pop(at(now)).map(|queued| {
        queue.done(&queued.pod.uid);
        queued.pod.name.to_string()
    })
}

/// Takes a pod and rejects it for lack of resources.
fn refuse(queue: &mut Queue, now: f64) {
    let queued = queue.pop(at(now)).unwrap();
    queue.fail(queued, vec!["NodeResourcesFit"], at(now));
}

fn gone(name: &str) -> Event {
    Event::PodRemoved(pod(name, json!({"spec": {"nodeName": "n"}})))
}

#[test]
fn the_most_important_is_first_and_among_equals_the_oldest() {
    let mut queue = queue();
    for (name, priority) in [("a", 0), ("b", 10), ("c", 0), ("d", 10)] {
        queue.set(pod(name, json!({"spec": {"priority": priority}})), at(0.0));
    }
    let order: Vec<_> = std::iter::from_fn(|| pop(&mut queue, 0.0)).collect();
    assert_eq!(order, ["b", "d", "a", "c"]);
}

#[test]
fn a_refused_pod_waits_for_an_event_that_helps() {
    let mut queue = queue();
    queue.set(pod("a", json!({"spec": cpus("1")})), at(0.0));
    refuse(&mut queue, 0.0);
    assert_eq!(queue.lengths().parked, 1);
    assert_eq!(pop(&mut queue, 100.0), None);

    // A removed taint does not help a pod that lacks resources.
    let tainted = node(
        "n",
        json!({"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}),
    );

    queue.handle_event(
        &Event::NodeChanged {
            old: tainted,
            new: node("n", json!({})),
        },
        at(100.0),
    );

    assert_eq!(queue.lengths().parked, 1);

    queue.handle_event(&gone("b"), at(100.0));
    assert_eq!(pop(&mut queue, 100.0).unwrap(), "a");
}

#[test]
fn back_off_doubles_up_to_its_limit_and_ends_at_a_full_second() {
    let mut queue = queue();
    queue.set(pod("a", json!({})), at(0.0));

    let mut now = 0.5;
    for ready in [2.0, 3.0, 5.0, 9.0, 11.0, 11.0] {
        let queued = queue.pop(at(now)).unwrap();

        // Errors back off even if no other pod is active.
        queue.fail(queued, Vec::new(), at(now));
        assert_eq!(
            queue.next_flush().unwrap(),
            at(now.floor() + ready),
            "after {now}"
        );

        assert_eq!(pop(&mut queue, now + 0.1), None);

        now = now.floor() + ready + 0.5;
    }
}

#[test]
fn a_pod_that_backs_off_is_taken_when_no_other_is_active() {
    let mut queue = queue();
    queue.set(pod("a", json!({"spec": cpus("1")})), at(0.0));
    refuse(&mut queue, 0.0);
    queue.handle_event(&gone("x"), at(0.1));
    assert_eq!(queue.lengths().backing_off, 1);
    queue.set(pod("b", json!({})), at(0.1));
    assert_eq!(pop(&mut queue, 0.1).unwrap(), "b");
    assert_eq!(pop(&mut queue, 0.1).unwrap(), "a");
}

#[test]
fn the_first_node_is_what_pods_wait_for_while_there_is_none() {
    let mut queue = queue();
    queue.set(pod("a", json!({})), at(0.0));
    let queued = queue.pop(at(0.0)).unwrap();
    queue.fail(queued, vec![NO_NODES], at(0.0));
    queue.handle_event(&gone("b"), at(0.01));
    assert_eq!(pop(&mut queue, 0.01), None);
    queue.handle_event(&Event::NodeAdded(node("n", json!({}))), at(0.02));
    assert_eq!(pop(&mut queue, 0.02).unwrap(), "a");
}

#[test]
fn an_event_during_a_cycle_is_not_lost() {
    let mut queue = queue();
    queue.set(pod("a", json!({"spec": cpus("1")})), at(0.0));

    let queued = queue.pop(at(0.0)).unwrap();
    queue.handle_event(&gone("b"), at(0.0));

    queue.fail(queued, vec!["NodeResourcesFit"], at(0.0));
    assert_eq!(
        queue.lengths(),
        Lengths {
            backing_off: 1,
            ..Lengths::default()
        }
    );

    assert!(queue.events.is_empty());
}

#[test]
fn a_pod_that_is_gone_when_its_cycle_fails_does_not_come_back() {
    let mut queue = queue();
    queue.set(pod("a", json!({})), at(0.0));
    let queued = queue.pop(at(0.0)).unwrap();
    queue.remove("uid-a");
    assert!(
        queue
            .fail(queued, vec!["NodeResourcesFit"], at(0.0))
            .is_none()
    );
    assert_eq!(queue.lengths(), Lengths::default());
}

#[test]
fn a_pod_that_changed_during_its_cycle_waits_in_its_new_form() {
    let mut queue = queue();
    queue.set(pod("a", json!({"spec": cpus("8")})), at(0.0));
    let queued = queue.pop(at(0.0)).unwrap();
    queue.set(pod("a", json!({"spec": cpus("1")})), at(0.0));
    let latest = queue
        .fail(queued, vec!["NodeResourcesFit"], at(0.0))
        .unwrap();
    assert_eq!(latest.requests.fit.milli_cpu, 1000);
    // It became smaller: that helps.
    assert_eq!(queue.lengths().backing_off, 1);
}

#[test]
fn parked_pods_are_tried_after_five_minutes_whatever_happened() {
    let mut queue = queue();
    queue.set(pod("a", json!({})), at(0.0));
    refuse(&mut queue, 0.0);
    assert_eq!(pop(&mut queue, 300.0), None);
    assert!(queue.next_flush().unwrap() > at(300.0));
    assert_eq!(pop(&mut queue, 300.002).unwrap(), "a");
}

#[test]
fn a_gated_pod_is_tried_when_its_last_gate_is_gone() {
    let mut queue = queue();
    let gated = |gates: serde_json::Value| pod("a", json!({"spec": {"schedulingGates": gates}}));
    assert_eq!(
        queue.set(gated(json!([{"name": "x"}, {"name": "y"}])), at(0.0)),
        Some(Destination::Gated)
    );

    queue.handle_event(&Event::NodeAdded(node("n", json!({}))), at(1.0));
    queue.flush(at(1000.0));

    assert_eq!(queue.set(gated(json!([{"name": "y"}])), at(2.0)), None);
    assert_eq!(
        (
            pop(&mut queue, 2.0),
            queue.lengths().gated,
            queue.next_flush()
        ),
        (None, 1, None)
    );

    assert_eq!(
        queue.set(gated(json!([])), at(3.0)),
        Some(Destination::Active)
    );
    assert_eq!(pop(&mut queue, 3.0).unwrap(), "a");
}

#[test]
fn a_promise_follows_the_pod_and_ends_with_it() {
    let mut queue = queue();
    let promised = |node: &str| pod("a", json!({"status": {"nominatedNodeName": node}}));
    queue.set(promised("n1"), at(0.0));
    assert_eq!(queue.nominations.on("n1").len(), 1);

    queue.set(promised("n2"), at(0.0));
    assert_eq!(
        (
            queue.nominations.on("n1").len(),
            queue.nominations.on("n2").len()
        ),
        (0, 1)
    );

    queue.remove("uid-a");
    assert!(queue.nominations.is_empty());
}

#[test]
fn moves_are_counted_by_event_and_waiting_pods_by_plugin() {
    let mut queue = queue();
    let rejected = |queue: &mut Queue| -> Vec<(&'static str, String, i64)> {
        let rejected = queue.take_rejected();
        rejected
            .map(|(plugin, profile, pods)| (plugin, profile.to_owned(), pods))
            .collect()
    };

    queue.set(pod("a", json!({"spec": cpus("1")})), at(0.0));
    refuse(&mut queue, 0.0);
    let moves: Vec<_> = queue.take_moves();
    assert_eq!(
        moves,
        [
            ("UnschedulablePodAdd", Destination::Active),
            ("ScheduleAttemptFailure", Destination::Parked),
        ]
    );
    let fit = |pods| ("NodeResourcesFit", String::from("default-scheduler"), pods);
    assert_eq!(rejected(&mut queue), [fit(1)]);
    assert_eq!(rejected(&mut queue), []);

    queue.handle_event(&gone("b"), at(100.0));
    assert_eq!(
        queue.take_moves(),
        [("AssignedPodDelete", Destination::Active)]
    );
    assert_eq!(pop(&mut queue, 100.0).unwrap(), "a");
    assert_eq!(rejected(&mut queue), [fit(0)]);
}
