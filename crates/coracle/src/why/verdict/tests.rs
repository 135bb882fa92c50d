use coracle_api::codec::yaml;

use super::*;

fn facts(object: &str, below: &[&str]) -> Facts {
    let parsed = |text: &str| yaml::decode(text.as_bytes()).unwrap();
    let below = below.iter().map(|text| parsed(text)).collect();
    Facts {
        object: parsed(object),
        events: Vec::new(),
        stages: None,
        owners: Vec::new(),
        below,
    }
}

fn check(object: &str, below: &[&str], state: &str, waits_for: &[&str]) {
    let waits_for = waits_for.iter().map(ToString::to_string).collect();
    assert_eq!(
        summarize(&facts(object, below)),
        verdict_of(state, waits_for),
        "{object}"
    );
}

#[test]
fn a_pod_reports_exit_codes_and_the_last_warning() {
    check(
        "{kind: Pod, spec: {nodeName: n1}, status: {phase: Failed, containerStatuses: [\
         {name: a, state: {terminated: {exitCode: 0, reason: Completed}}},\
         {name: c, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}",
        &[],
        "has failed",
        &["container c ended with exit code 137: it exceeded its memory limit (OOMKilled)"],
    );

    check(
        "{kind: Pod, spec: {nodeName: n1}, status: {phase: Running, containerStatuses: [{name: c, \
         state: {waiting: {reason: CrashLoopBackOff, message: back-off 10s}}, \
         lastState: {terminated: {exitCode: 3, reason: Error, message: no such file}}}]}}",
        &[],
        "runs on n1 and is not ready",
        &[
            "container c is CrashLoopBackOff: back-off 10s; before that, container c ended with exit code 3, message: no such file",
        ],
    );

    let event = |second: u32, reason: &str| {
        let text = format!(
            "{{type: Warning, reason: {reason}, message: it fails, lastTimestamp: '2026-03-01T11:00:0{second}Z'}}"
        );
        yaml::decode(text.as_bytes()).unwrap()
    };

    let mut facts = facts(
        "{kind: Pod, spec: {nodeName: n1}, status: {phase: Pending}}",
        &[],
    );
    facts.events = vec![event(2, "FailedMount"), event(1, "FailedScheduling")];

    assert_eq!(
        summarize(&facts).waits_for[1],
        "the last warning was FailedMount: it fails"
    );
}

const UNFIT: &str = "{kind: Pod, metadata: {name: p}, spec: {}, status: {phase: Pending, conditions: [\
    {type: PodScheduled, status: 'False', reason: Unschedulable, message: '0/5 nodes are available'}]}}";

#[test]
fn a_pending_pod_reports_what_it_waits_for() {
    check(
        UNFIT,
        &[],
        "waits for a node",
        &["no node fits: 0/5 nodes are available"],
    );

    check(
        "{kind: Pod, spec: {schedulerName: mine}, status: {phase: Pending}}",
        &[],
        "waits for a node",
        &["scheduler \"mine\" has not processed it yet; check that it is running"],
    );

    check(
        "{kind: Pod, spec: {schedulingGates: [{name: a}, {name: b}]}, status: {conditions: [\
         {type: PodScheduled, status: 'False', reason: SchedulingGated}]}}",
        &[],
        "waits for a node",
        &["its scheduling gates must be removed by their owners: a, b"],
    );

    check(
        "{kind: Pod, spec: {nodeName: n1}, status: {phase: Pending, containerStatuses: [\
         {name: c, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}}",
        &[],
        "is assigned to n1 and is not running yet",
        &["container c is ImagePullBackOff: no such image"],
    );

    check(
        "{kind: Pod, spec: {nodeName: n1, readinessGates: [{conditionType: g}]}, status: {phase: Running}}",
        &[],
        "runs on n1 and is not ready",
        &["its readiness gate g is not True"],
    );

    check(
        "{kind: Pod, metadata: {deletionTimestamp: '2026-03-01T11:00:00Z', finalizers: [f]}, spec: {nodeName: n1}}",
        &[],
        "is terminating",
        &[
            "its finalizers must be removed by their owners: f",
            "the kubelet of node n1 must stop its containers",
        ],
    );
}

#[test]
fn a_service_reports_its_endpoints() {
    let service = "{kind: Service, spec: {selector: {app: web, tier: a}}}";
    let slice = "{kind: EndpointSlice, endpoints: [{conditions: {ready: true}}, {conditions: {ready: false}}, {}]}";
    let unready = "{kind: EndpointSlice, endpoints: [{conditions: {ready: false}}]}";

    check(service, &[slice, UNFIT], "has 2 ready endpoints", &[]);
    check(
        service,
        &[unready, UNFIT],
        "has 0 ready endpoints",
        &["pod/p waits for a node: no node fits: 0/5 nodes are available"],
    );

    check(
        service,
        &[],
        "has 0 ready endpoints",
        &["no pods match its selector app=web,tier=a"],
    );

    check(
        "{kind: Service, spec: {}}",
        &[slice],
        "has 2 ready endpoints and no selector",
        &[],
    );

    check(
        "{kind: Service, spec: {type: ExternalName, externalName: example.org}}",
        &[],
        "is an alias of example.org",
        &[],
    );
}

#[test]
fn a_workload_reports_the_first_unready_pod() {
    check(
        "{kind: Deployment, metadata: {generation: 2}, spec: {replicas: 3}, status: {observedGeneration: 2, availableReplicas: 1}}",
        &[UNFIT],
        "has 1 of 3 pods available",
        &["pod/p waits for a node: no node fits: 0/5 nodes are available"],
    );

    check(
        "{kind: Deployment, spec: {replicas: 3}, status: {replicas: 4, updatedReplicas: 1, availableReplicas: 3}}",
        &[UNFIT],
        "has 3 of 3 pods available, 1 of them updated",
        &["pod/p waits for a node: no node fits: 0/5 nodes are available"],
    );

    check(
        "{kind: Deployment, spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, availableReplicas: 3}}",
        &[],
        "has 3 of 3 pods available",
        &[],
    );

    check(
        "{kind: ReplicaSet, metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1}}",
        &[],
        "has 0 of 1 pods available",
        &["its controller has not observed the last change yet; check that it is running"],
    );

    check(
        "{kind: Job, spec: {completions: 2}, status: {succeeded: 1, active: 1}}",
        &[],
        "has 1 of 2 completions, 0 failures, 1 active pods",
        &[],
    );

    check(
        "{kind: Node, spec: {taints: [{key: k, effect: NoSchedule}]}, status: {conditions: [\
         {type: Ready, status: Unknown, message: Kubelet stopped posting node status.}]}}",
        &[],
        "is unreachable",
        &[
            "Kubelet stopped posting node status.",
            "taint k:NoSchedule repels pods without a toleration",
        ],
    );
}
