//! Policies that are expensive, or changed while requests come.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{MAPS, Target, about, accepted, map};
use crate::cluster::Raw;

/// A value on which the expression of [`expensive`] runs out of its budget.
fn many_keys() -> String {
    let keys: Vec<String> = (0..2_000).map(|key| format!(r#""k{key}":"v""#)).collect();
    format!("{{{}}}", keys.join(","))
}

/// A policy whose expressions cost more than they may, for maps with many keys.
fn expensive(failure_policy: &str) -> String {
    let loops = "object.data.all(a, object.data.all(b, a != b || a.size() + b.size() > 0))";
    format!(
        "{}, failurePolicy: {failure_policy}, validations: [{{expression: '{loops}'}}]",
        about("configmaps", "CREATE")
    )
}

#[test]
fn a_policy_that_blows_its_budget_delays_nobody_else() {
    let target = Target::start();
    target.bind(
        "Validating",
        "loops",
        &expensive("Fail"),
        "validationActions: [Deny]",
    );
    let answer = target.create("a", &many_keys());
    assert_eq!(answer.status, 422, "{:?}", answer.refusal());
    let why = answer.refusal().1;
    assert!(why.contains("actual cost limit exceeded"), "{why}");

    target.bind(
        "Validating",
        "loops",
        &expensive("Ignore"),
        "validationActions: [Deny]",
    );
    accepted(&target.create("a", &many_keys()));

    // Requests that policies do not concern are answered meanwhile.
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let kubeconfig = &target.server.kubeconfig;
            let done = &done;
            scope.spawn(move || {
                let raw = Raw::new(kubeconfig);
                let mut count = 0;
                while !done.load(Ordering::Relaxed) {
                    accepted(&raw.post(MAPS, &map(&format!("w{worker}-{count}"), &many_keys())));
                    count += 1;
                }
            });
        }

        for _ in 0..50 {
            accepted(
                &target
                    .raw
                    .send("GET", &format!("{MAPS}/a"), "application/json", ""),
            );
        }
        done.store(true, Ordering::Relaxed);
    });

    target.stop();
}

#[test]
fn a_change_of_a_policy_holds_for_the_next_request_under_load() {
    let target = Target::start();
    let spec = |allowed: bool| {
        format!(
            "{}, validations: [{{expression: '{allowed}'}}]",
            about("configmaps", "CREATE")
        )
    };
    target.bind(
        "Validating",
        "switch",
        &spec(true),
        "validationActions: [Deny]",
    );

    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let kubeconfig = &target.server.kubeconfig;
            let done = &done;
            scope.spawn(move || {
                let raw = Raw::new(kubeconfig);
                let mut count = 0;
                while !done.load(Ordering::Relaxed) {
                    let answer = raw.post(MAPS, &map(&format!("w{worker}-{count}"), "{}"));
                    assert!(
                        [201, 422].contains(&answer.status),
                        "{:?}",
                        answer.refusal()
                    );
                    count += 1;
                }
            });
        }

        let path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/switch";
        for round in 0..20 {
            let allowed = round % 2 == 1;
            let patch = format!(r#"{{"spec":{{"validations":[{{"expression":"{allowed}"}}]}}}}"#);
            accepted(&target.raw.patch(path, "merge", &patch));
            let answer = target.create(&format!("m{round}"), "{}");
            assert_eq!(answer.status, if allowed { 201 } else { 422 });
        }
        done.store(true, Ordering::Relaxed);
    });

    target.stop();
}
