//! What nodes need, as tables.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::Value;
use coracle_api::codec::json;
use coracle_api::time::Timestamp;
use coracle_client::Cached;

use super::Config;
use super::plan::{Observed, Plan, plan};
use crate::views::Node;

const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

/// A node with conditions like `Ready=True` and taints like `key:effect`.
fn node(conditions: &[&str], taints: &[&str], more: &str) -> Arc<Cached<Node>> {
    let conditions = conditions.iter().map(|condition| {
        let (kind, status) = condition.split_once('=').unwrap();
        format!(r#"{{"type":"{kind}","status":"{status}"}}"#)
    });

    let taints = taints.iter().map(|taint| {
        let (key, effect) = taint.split_once(':').unwrap();
        format!(r#"{{"key":"node.kubernetes.io/{key}","effect":"{effect}"}}"#)
    });

    let text = format!(
        r#"{{"metadata":{{"name":"n","uid":"u","creationTimestamp":"2026-03-01T11:00:00Z"}},
        "spec":{{"taints":[{}]{more}}},"status":{{"conditions":[{}]}}}}"#,
        taints.collect::<Vec<_>>().join(","),
        conditions.collect::<Vec<_>>().join(",")
    );

    Arc::new(Cached::of(json::parse(text.as_bytes()).unwrap()).unwrap())
}

fn observed(node: Arc<Cached<Node>>, silent_for: i64) -> Observed {
    let last_heartbeat = NOON.plus_seconds(-silent_for);
    Observed {
        node,
        last_heartbeat,
        config: Config::default(),
        all_down: false,
        to_mark: None,
    }
}

fn short(taint: &Value) -> String {
    let text = |name: &str| taint.get(name).and_then(Value::as_str).unwrap();
    format!(
        "{}:{}",
        text("key").trim_start_matches("node.kubernetes.io/"),
        text("effect")
    )
}

/// The resulting taints, without rate limit; `None` if nothing changes.
fn tainted(plan: &Plan) -> Option<Vec<String>> {
    let taints = plan.taints.as_ref()?;
    let name = |key: &str| key.trim_start_matches("node.kubernetes.io/").to_string();
    let mut all: Vec<String> = taints.keep.iter().map(short).collect();
    all.extend(
        taints
            .no_schedule
            .iter()
            .map(|key| name(key) + ":NoSchedule"),
    );
    all.extend(taints.no_execute.map(|key| name(key) + ":NoExecute"));
    Some(all)
}

#[test]
fn taints_follow_from_conditions() {
    let check = |conditions: &[&str], taints: &[&str], more: &str, expected: Option<&[&str]>| {
        let plan = plan(&observed(node(conditions, taints, more), 0), NOON);
        let expected =
            expected.map(|taints| taints.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(tainted(&plan), expected, "{conditions:?} {taints:?} {more}");
    };

    check(&["Ready=True"], &[], "", None);
    check(&["Ready=True"], &["not-ready:NoSchedule"], "", Some(&[]));
    check(
        &["Ready=True"],
        &["mine:NoSchedule", "not-ready:NoExecute"],
        "",
        Some(&["mine:NoSchedule"]),
    );

    check(
        &["Ready=False"],
        &[],
        "",
        Some(&["not-ready:NoSchedule", "not-ready:NoExecute"]),
    );

    check(
        &["Ready=Unknown"],
        &["not-ready:NoSchedule", "not-ready:NoExecute"],
        "",
        Some(&["unreachable:NoSchedule", "unreachable:NoExecute"]),
    );

    check(
        &["Ready=Unknown"],
        &["unreachable:NoSchedule", "unreachable:NoExecute"],
        "",
        None,
    );

    check(
        &["Ready=True", "MemoryPressure=True"],
        &[],
        "",
        Some(&["memory-pressure:NoSchedule"]),
    );

    check(
        &["Ready=True", "MemoryPressure=Unknown"],
        &["memory-pressure:NoSchedule"],
        "",
        Some(&[]),
    );

    check(
        &["Ready=True"],
        &[],
        r#","unschedulable":true"#,
        Some(&["unschedulable:NoSchedule"]),
    );

    check(
        &["Ready=True"],
        &["unschedulable:NoSchedule"],
        "",
        Some(&[]),
    );

    // Nothing is known: a taint from registration is not by condition, `NoExecute` taints stay.
    check(
        &[],
        &["not-ready:NoSchedule", "unreachable:NoExecute"],
        "",
        Some(&["unreachable:NoExecute"]),
    );
}

#[test]
fn the_first_taint_that_drives_pods_away_waits_for_its_turn_and_a_swap_does_not() {
    let check = |conditions: &[&str], taints: &[&str], waits: bool| {
        let plan = plan(&observed(node(conditions, taints, ""), 0), NOON);
        assert_eq!(
            plan.taints.unwrap().waits,
            waits,
            "{conditions:?} {taints:?}"
        );
    };
    check(&["Ready=Unknown"], &[], true);
    check(&["Ready=Unknown"], &["not-ready:NoExecute"], false);
}

#[test]
fn if_all_nodes_are_down_no_pod_is_evicted() {
    let down = Observed {
        all_down: true,
        ..observed(node(&["Ready=Unknown"], &["unreachable:NoExecute"], ""), 0)
    };
    assert_eq!(
        tainted(&plan(&down, NOON)),
        Some(vec!["unreachable:NoSchedule".to_string()])
    );
}

#[test]
fn a_silent_node_is_unknown() {
    let check = |conditions: &[&str], silent_for: i64, expected: &[(&str, &str)]| {
        let plan = plan(&observed(node(conditions, &[], ""), silent_for), NOON);
        let unknown: Vec<_> = plan
            .unknown
            .iter()
            .map(|one| (one.kind, one.reason))
            .collect();
        assert_eq!(unknown, expected, "{conditions:?} {silent_for}");
    };
    check(&["Ready=True"], 49, &[]);

    let never = "NodeStatusNeverUpdated";
    let others = [
        ("MemoryPressure", never),
        ("DiskPressure", never),
        ("PIDPressure", never),
    ];

    check(
        &["Ready=True"],
        50,
        &[&[("Ready", "NodeStatusUnknown")], others.as_slice()].concat(),
    );

    check(
        &[
            "Ready=Unknown",
            "MemoryPressure=Unknown",
            "DiskPressure=Unknown",
            "PIDPressure=Unknown",
        ],
        500,
        &[],
    );

    check(&[], 59, &[]);
    check(&[], 60, &[&[("Ready", never)], others.as_slice()].concat());
    let wakes = plan(&observed(node(&["Ready=True"], &[], ""), 20), NOON).look_after;
    assert_eq!(wakes, Some(Duration::from_secs(30)));
}

#[test]
fn labels_are_kept_under_their_former_names_too() {
    let mut labelled = Cached::clone(&node(&["Ready=True"], &[], ""));
    labelled.object.labels.insert("kubernetes.io/os", "linux");
    labelled
        .object
        .labels
        .insert("beta.kubernetes.io/arch", "arm64");
    let plan = plan(&observed(Arc::new(labelled), 0), NOON);
    assert_eq!(plan.labels, [("beta.kubernetes.io/os", "linux".into())]);
}
