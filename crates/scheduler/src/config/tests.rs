use super::*;
use crate::framework::Profile;
use crate::testing::{configuration, default_profile, profile, registry};

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
fn no_profiles_are_the_default_one() {
    assert_eq!(configuration("profiles: []").unwrap(), Config::default());
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
fn plugins_of_a_profile_are_merged_with_the_defaults() {
    let changed = profile(
        "profiles:
- plugins:
    multiPoint:
      disabled: [{name: NodePorts}]
      enabled: [{name: TaintToleration, weight: 9}]
    filter:
      disabled: [{name: NodeName}]
    score:
      enabled: [{name: ImageLocality, weight: 5}]
      disabled: [{name: NodeAffinity}]
",
    );
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

    let bare = profile(
        "profiles:
- plugins:
    multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, {name: NodeName}]}
"
    );

    assert_eq!(
        (filters(&bare), scores(&bare)),
        (vec!["NodeName"], Vec::new())
    );
}

/// Every error names what is wrong.
fn check_wrong(text: &str, expected: &[&str]) {
    let error = match configuration(text) {
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
    check_wrong(
        "profiles: [{plugins: {fliter: {}}}]",
        &["unknown field", "fliter"],
    );

    check_wrong(
        "profiles: [{percentageOfNodesToScore: 101}]",
        &["not in valid range [0-100]"],
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
