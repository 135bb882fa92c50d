use std::time::Duration;

use super::*;
use crate::framework::Profile;
use crate::testing::{default_profile, profile, registry};

const HEAD: &str = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n";

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::from_file(format!("{HEAD}{text}").as_bytes())
}

fn filters(profile: &Profile) -> Vec<&str> {
    profile.filters.iter().map(|filter| filter.plugin).collect()
}

fn scores(profile: &Profile) -> Vec<(&str, i64)> {
    profile
        .scores
        .iter()
        .map(|score| (score.plugin, score.weight))
        .collect()
}

#[test]
fn a_file_that_says_nothing_is_the_default() {
    assert_eq!(read("").unwrap(), Config::default());
}

#[test]
fn the_default_profile_asks_and_weighs_as_upstream() {
    let profile = default_profile();
    let expected = [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    ];
    assert_eq!(scores(&profile), expected);

    let expected = [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeBinding",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
    ];
    assert_eq!(filters(&profile), expected);
}

#[test]
fn what_a_profile_changes_is_mixed_into_the_default() {
    let changed = profile(&format!(
        "{HEAD}
profiles:
- plugins:
    multiPoint:
      disabled: [{{name: NodePorts}}]
      enabled: [{{name: TaintToleration, weight: 9}}]
    filter:
      disabled: [{{name: NodeName}}]
    score:
      enabled: [{{name: ImageLocality, weight: 5}}]
      disabled: [{{name: NodeAffinity}}]
"
    ));
    assert!(!filters(&changed).contains(&"NodePorts") && !filters(&changed).contains(&"NodeName"));

    // Plugins that a point enables again come first there.
    assert_eq!(
        scores(&changed)[..2],
        [("ImageLocality", 5), ("TaintToleration", 9)]
    );

    assert!(
        !scores(&changed)
            .iter()
            .any(|(name, _)| *name == "NodeAffinity")
    );

    let bare = profile(&format!(
        "{HEAD}
profiles:
- plugins:
    multiPoint: {{disabled: [{{name: '*'}}], enabled: [{{name: PrioritySort}}, {{name: DefaultBinder}}, {{name: NodeName}}]}}
"
    ));

    assert_eq!(
        (filters(&bare), scores(&bare)),
        (vec!["NodeName"], Vec::new())
    );
}

#[test]
fn numbers_and_times_are_taken_over() {
    let config = read("podInitialBackoffSeconds: 3\npodMaxBackoffSeconds: 7\npercentageOfNodesToScore: 30\nleaderElection: {leaderElect: false, leaseDuration: 20s}\nclientConnection: {kubeconfig: /k, qps: 5}\n").unwrap();
    assert_eq!(
        (config.initial_backoff, config.max_backoff),
        (Duration::from_secs(3), Duration::from_secs(7))
    );

    assert_eq!(
        (
            config.percentage_of_nodes_to_score,
            config.kubeconfig.as_str()
        ),
        (30, "/k")
    );

    assert_eq!(
        (config.leader_election.enabled, config.leader_election.lease),
        (false, Duration::from_secs(20))
    );
}

/// Every error names what is wrong.
fn check_wrong(text: &str, expected: &[&str]) {
    let error = match read(text) {
        Err(error) => error,
        Ok(config) => registry()
            .profiles(&config)
            .err()
            .unwrap_or_else(|| panic!("{text} is accepted")),
    };
    for part in expected {
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn errors_are_reported() {
    check_wrong("parallelisme: 3", &["unknown field", "parallelisme"]);
    check_wrong(
        "profiles: [{plugins: {fliter: {}}}]",
        &["unknown field", "fliter"],
    );

    check_wrong(
        "parallelism: 0\npercentageOfNodesToScore: 101",
        &["greater than zero", "not in valid range [0-100]"],
    );

    check_wrong("podInitialBackoffSeconds: 0", &["must be greater than 0"]);
    check_wrong(
        "podInitialBackoffSeconds: 9\npodMaxBackoffSeconds: 3",
        &["greater than or equal to PodInitialBackoffSeconds"],
    );

    check_wrong(
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        &["profiles[1].schedulerName: Duplicate value"],
    );

    check_wrong(
        "profiles: [{schedulerName: a}, {}]",
        &["profiles[1].schedulerName: Required value"],
    );

    check_wrong(
        "leaderElection: {resourceLock: endpoints}",
        &["must be \"leases\""],
    );

    check_wrong(
        "profiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]",
        &["\"Nope\" does not exist"],
    );

    check_wrong(
        "profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]",
        &["at least one bind plugin"],
    );

    check_wrong(
        "profiles: [{plugins: {queueSort: {disabled: [{name: '*'}]}}}]",
        &["exactly one queue sort plugin"],
    );

    let args = |name: &str, args: &str| {
        format!("profiles: [{{pluginConfig: [{{name: {name}, args: {args}}}]}}]")
    };
    check_wrong(
        &args("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
        &["not in valid range [0, 100]"],
    );

    check_wrong(&args("NodeName", "{anything: 1}"), &["unknown field"]);
    check_wrong(
        &args(
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
        ),
        &["cannot be zero at the same time"],
    );

    check_wrong(
        &args(
            "NodeResourcesFit",
            "{scoringStrategy: {type: RequestedToCapacityRatio}}",
        ),
        &["must be specified"],
    );

    check_wrong(
        &args("NodeResourcesFit", "{scoringStrategy: {type: Nope}}"),
        &["Unsupported value: \"Nope\""],
    );

    check_wrong(
        &args("PodTopologySpread", "{defaultConstraints: [{maxSkew: 1}]}"),
        &["when .defaultConstraints are not empty"],
    );

    check_wrong(
        &args(
            "NodeResourcesBalancedAllocation",
            "{resources: [{name: cpu, weight: 2}]}",
        ),
        &["must be 1"],
    );
}

#[test]
fn another_kind_is_refused() {
    let read = |text: &str| Config::from_file(text.as_bytes()).unwrap_err().to_string();
    assert!(
        read("apiVersion: v1\nkind: Policy\n")
            .contains("scheduler policies are no longer supported")
    );
    assert!(
        read("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n")
            .contains("v1beta3")
    );
    assert!(read("a: 1\na: 2\n").contains("already set") || read("a: 1\na: 2\n").contains('a'));
}

#[test]
fn two_plugins_of_one_name_are_refused() {
    let mut registry = registry();
    assert!(
        registry
            .register("NodeName", |_| Ok(crate::framework::Extensions::default()))
            .is_err()
    );
    assert!(
        registry
            .register(
                "TestPlugin",
                |_| Ok(crate::framework::Extensions::default())
            )
            .is_ok()
    );
}
