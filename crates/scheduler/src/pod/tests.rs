#![expect(
    clippy::needless_pass_by_value,
    reason = "rows of tables are made where they stand"
)]

use serde_json::json;

use crate::testing::pod;

fn container(cpu: &str) -> serde_json::Value {
    json!({"name": format!("c{cpu}"), "resources": {"requests": {"cpu": cpu}}})
}

fn sidecar(cpu: &str) -> serde_json::Value {
    let mut sidecar = container(cpu);
    sidecar["restartPolicy"] = json!("Always");
    sidecar
}

/// CPU that must be free, CPU with minimums, and CPU for scores.
fn check(spec: serde_json::Value, fit: i64, nonzero: i64, scored: i64) {
    let requests = &pod("p", json!({ "spec": spec })).requests;
    let found = (
        requests.fit.milli_cpu,
        requests.nonzero_milli_cpu,
        requests.scored.milli_cpu,
    );
    assert_eq!(found, (fit, nonzero, scored), "{spec}");
}

#[test]
fn a_pod_is_as_large_as_its_containers_or_its_largest_start() {
    check(
        json!({"containers": [container("100m"), container("200m")]}),
        300,
        300,
        300,
    );

    // Init containers: the largest, not the sum.
    check(
        json!({"containers": [container("1")], "initContainers": [container("2"), container("3")]}),
        3000,
        3000,
        3000,
    );

    // Sidecars run beside the containers,
    check(
        json!({"containers": [container("1")], "initContainers": [sidecar("2")]}),
        3000,
        3000,
        3000,
    );

    // and beside the init containers that start after them, not before.
    check(
        json!({"containers": [container("1")], "initContainers": [container("5"), sidecar("2")]}),
        5000,
        5000,
        5000,
    );

    check(
        json!({"containers": [container("1")], "initContainers": [sidecar("2"), container("5")]}),
        7000,
        7000,
        7000,
    );

    check(
        json!({"containers": [container("1")], "overhead": {"cpu": "250m"}}),
        1250,
        1250,
        1250,
    );
}

#[test]
fn a_container_without_a_request_counts_in_scores_only() {
    check(
        json!({"containers": [{"name": "a"}, {"name": "b"}]}),
        0,
        200,
        200,
    );

    check(
        json!({"containers": [container("1"), {"name": "b"}]}),
        1000,
        1100,
        1100,
    );

    // An explicit zero is a request.
    check(json!({"containers": [container("0")]}), 0, 0, 0);
}

#[test]
fn pod_level_resources_replace_those_of_containers() {
    let spec = json!({"resources": {"requests": {"cpu": "2"}}, "containers": [container("500m"), {"name": "b"}]});
    // The score uses containers only, as upstream does.
    check(spec, 2000, 2000, 600);
}

#[test]
fn fractions_are_added_before_they_are_rounded() {
    check(
        json!({"containers": [container("0.1m"), container("0.2m")]}),
        1,
        1,
        1,
    );
}

#[test]
fn a_resize_in_progress_counts_with_the_greater_amount() {
    let status = |reason: &str| {
        json!({
            "containerStatuses": [{"name": "c1", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}}],
            "conditions": [{"type": "PodResizePending", "status": "True", "reason": reason}],
        })
    };

    let spec = json!({"containers": [container("1")]});
    let used = |reason| {
        pod("p", json!({"spec": spec, "status": status(reason)}))
            .requests
            .used
            .milli_cpu
    };
    assert_eq!(used("Deferred"), 3000);

    let spec = json!({"containers": [{"name": "c1", "resources": {"requests": {"cpu": "9"}}}]});
    let used = |reason| {
        pod("p", json!({"spec": spec, "status": status(reason)}))
            .requests
            .used
            .milli_cpu
    };
    assert_eq!(used("Deferred"), 9000);

    // An infeasible resize does not count.
    assert_eq!(used("Infeasible"), 3000);
}

#[test]
fn host_ports_are_those_of_containers_and_sidecars() {
    let port = json!([{"containerPort": 1, "hostPort": 80}, {"containerPort": 2}]);
    let spec = json!({
        "containers": [{"name": "a", "ports": port}],
        "initContainers": [{"name": "b", "ports": port}, {"name": "s", "ports": port, "restartPolicy": "Always"}],
    });
    let ports = &pod("p", json!({ "spec": spec })).host_ports;
    assert_eq!(ports.len(), 2);

    assert_eq!(
        (
            ports[0].ip.as_str(),
            ports[0].protocol.as_str(),
            ports[0].port
        ),
        ("0.0.0.0", "TCP", 80)
    );
}

#[test]
fn an_image_without_a_tag_is_the_latest() {
    let names = |image: &str| {
        pod(
            "p",
            json!({"spec": {"containers": [{"name": "c", "image": image}]}}),
        )
        .images
        .names[0]
            .clone()
    };
    assert_eq!(names("nginx"), "nginx:latest");

    assert_eq!(names("host:5000/nginx"), "host:5000/nginx:latest");
    assert_eq!(names("host:5000/nginx:1"), "host:5000/nginx:1");
}

#[test]
fn nodes_are_named_only_if_every_term_names_some() {
    let names = |terms: serde_json::Value| {
        let required = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}});
        pod("p", json!({"spec": {"affinity": required}}))
            .node_affinity
            .names
            .clone()
    };

    let field = |values: serde_json::Value| json!({"key": "metadata.name", "operator": "In", "values": values});
    let named = |node: &str| json!({"matchFields": [field(json!([node]))]});
    assert_eq!(names(json!([named("b"), named("a")])).unwrap(), ["a", "b"]);
    assert_eq!(
        names(json!([named("a"), {"matchExpressions": [{"key": "k", "operator": "Exists"}]}])),
        None
    );

    let conflict = json!([{"matchFields": [field(json!(["a"])), field(json!(["b"]))]}]);
    assert_eq!(names(conflict).unwrap().len(), 0);
}
