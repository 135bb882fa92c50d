//! The arguments of plugins in a profile: parsed strictly, validated, defaulted.

use coracle_api::typed::from_tree;
use coracle_api::{Map, Text, Value};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};

use super::Args;
use super::allocation::{Point, ResourceWeight, Strategy, StrategyKind};
use super::default_preemption::DefaultPreemption;
use super::inter_pod_affinity::InterPodAffinity;
use super::node_affinity::NodeAffinity;
use super::node_resources_balanced_allocation::BalancedAllocation;
use super::node_resources_fit::NodeResourcesFit;
use super::pod_topology_spread::{PodTopologySpread, system_defaults};
use crate::labels::Labels;
use crate::pod::SpreadConstraint;
use crate::resources::{CPU, MEMORY};

fn read<T: DeserializeOwned + Default>(args: Args<'_>) -> Result<T, String> {
    args.map_or_else(
        || Ok(T::default()),
        |args| from_tree(args).map_err(|error| error.to_string()),
    )
}

/// A plugin without arguments accepts none.
pub(super) fn none(args: Args<'_>) -> Result<(), String> {
    read::<TypeMeta>(args).map(|_| ())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct TypeMeta {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
}

pub(super) fn default_preemption(args: Args<'_>) -> Result<DefaultPreemption, String> {
    let args: DefaultPreemptionArgs = read(args)?;
    let (percentage, least) = (
        args.min_candidate_nodes_percentage.unwrap_or(10),
        args.min_candidate_nodes_absolute.unwrap_or(100),
    );

    let amount = |name: &str, value: i64, most: i64, range: &str| match usize::try_from(value) {
        Ok(amount) if value <= most => Ok(amount),
        _ => Err(format!(
            "{name}: Invalid value: {value}: not in valid range {range}"
        )),
    };

    if percentage == 0 && least == 0 {
        return Err(String::from(
            "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as minCandidateNodesAbsolute",
        ));
    }

    Ok(DefaultPreemption {
        min_candidates_percentage: amount(
            "minCandidateNodesPercentage",
            percentage,
            100,
            "[0, 100]",
        )?,
        min_candidates: amount("minCandidateNodesAbsolute", least, i64::MAX, "[0, inf)")?,
    })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct DefaultPreemptionArgs {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    min_candidate_nodes_percentage: Option<i64>,
    min_candidate_nodes_absolute: Option<i64>,
}

pub(super) fn inter_pod_affinity(args: Args<'_>) -> Result<InterPodAffinity, String> {
    let args: InterPodAffinityArgs = read(args)?;
    let weight = args.hard_pod_affinity_weight.unwrap_or(1);
    if !(0..=100).contains(&weight) {
        return Err(format!(
            "hardPodAffinityWeight: Invalid value: {weight}: not in valid range [0, 100]"
        ));
    }
    Ok(InterPodAffinity {
        hard_affinity_weight: weight,
        ignore_preferred_terms_of_existing_pods: args.ignore_preferred_terms_of_existing_pods,
    })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct InterPodAffinityArgs {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    hard_pod_affinity_weight: Option<i64>,
    ignore_preferred_terms_of_existing_pods: bool,
}

pub(super) fn node_affinity(args: Args<'_>) -> Result<NodeAffinity, String> {
    read::<NodeAffinityArgs>(args)?;
    let added = args
        .and_then(|args| args.get("addedAffinity"))
        .filter(|added| !added.is_null());
    NodeAffinity::new(added).map_err(|error| format!("parsing addedAffinity: {error}"))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct NodeAffinityArgs {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    #[serde(rename = "addedAffinity")]
    _added_affinity: Option<IgnoredAny>,
}

pub(super) fn pod_topology_spread(args: Args<'_>) -> Result<PodTopologySpread, String> {
    let read: PodTopologySpreadArgs = read(args)?;
    let listed = args
        .and_then(|args| args.get("defaultConstraints"))
        .and_then(Value::as_array)
        .unwrap_or_default();

    match read.defaulting_type.as_deref().unwrap_or("System") {
        "System" if !listed.is_empty() => Err(String::from(
            "defaultingType: Invalid value: \"System\": when .defaultConstraints are not empty",
        )),
        "System" | "" => Ok(PodTopologySpread {
            defaults: system_defaults(),
            system_defaults: true,
        }),
        "List" => {
            let constraints = listed.iter().filter_map(Value::as_object).enumerate();
            let defaults =
                constraints.map(|(index, constraint)| default_constraint(index, constraint));
            Ok(PodTopologySpread {
                defaults: defaults.collect::<Result<_, _>>()?,
                system_defaults: false,
            })
        }
        other => Err(format!(
            "defaultingType: Unsupported value: \"{other}\": supported values: \"List\", \"System\""
        )),
    }
}

fn default_constraint(index: usize, constraint: &Map) -> Result<SpreadConstraint, String> {
    let path = format!("defaultConstraints[{index}]");
    if constraint.int("maxSkew") <= 0 {
        return Err(format!(
            "{path}.maxSkew: Invalid value: {}: not in valid range (0, inf)",
            constraint.int("maxSkew")
        ));
    }

    if constraint.text("topologyKey").is_empty() {
        return Err(format!(
            "{path}.topologyKey: Required value: can not be empty"
        ));
    }

    if !matches!(
        constraint.text("whenUnsatisfiable"),
        "DoNotSchedule" | "ScheduleAnyway"
    ) {
        let value = constraint.text("whenUnsatisfiable");
        return Err(format!(
            "{path}.whenUnsatisfiable: Unsupported value: \"{value}\": supported values: \"DoNotSchedule\", \"ScheduleAnyway\""
        ));
    }

    if constraint.is_set("labelSelector") {
        return Err(format!(
            "{path}.labelSelector: Forbidden: constraint must not define a selector, as they deduced for each pod"
        ));
    }

    SpreadConstraint::of(constraint, &Labels::default()).map_err(|error| format!("{path}: {error}"))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PodTopologySpreadArgs {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    #[serde(rename = "defaultConstraints")]
    _default_constraints: Option<IgnoredAny>,
    defaulting_type: Option<String>,
}

pub(super) fn node_resources_fit(args: Args<'_>) -> Result<NodeResourcesFit, String> {
    let args: NodeResourcesFitArgs = read(args)?;
    if let Some(group) = args
        .ignored_resource_groups
        .iter()
        .find(|group| group.contains('/'))
    {
        return Err(format!(
            "ignoredResourceGroups: Invalid value: \"{group}\": resource group name can't contain '/'"
        ));
    }

    let strategy = args.scoring_strategy.unwrap_or_default();
    let resources = weights(&strategy.resources);
    if let Some(wrong) = resources
        .iter()
        .find(|resource| !(1..=100).contains(&resource.weight))
    {
        let (name, weight) = (&wrong.name, wrong.weight);
        return Err(format!(
            "scoringStrategy.resources: Invalid value: {weight}: resource weight of {name} not in valid range (0, 100]"
        ));
    }

    let kind = match (
        strategy.kind.as_deref().unwrap_or("LeastAllocated"),
        strategy.requested_to_capacity_ratio,
    ) {
        ("LeastAllocated" | "", None) => StrategyKind::LeastAllocated,
        ("MostAllocated", None) => StrategyKind::MostAllocated,
        ("RequestedToCapacityRatio", Some(ratio)) => {
            StrategyKind::RequestedToCapacityRatio(points(&ratio.shape)?)
        }
        ("RequestedToCapacityRatio", None) => {
            return Err(String::from(
                "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is RequestedToCapacityRatio",
            ));
        }
        ("LeastAllocated" | "MostAllocated" | "", Some(_)) => {
            return Err(String::from(
                "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not RequestedToCapacityRatio",
            ));
        }
        (other, _) => {
            return Err(format!(
                "scoringStrategy.type: Unsupported value: \"{other}\": supported values: \"LeastAllocated\", \"MostAllocated\", \"RequestedToCapacityRatio\""
            ));
        }
    };

    Ok(NodeResourcesFit {
        ignored: args.ignored_resources.iter().map(Text::new).collect(),
        ignored_groups: args.ignored_resource_groups.iter().map(Text::new).collect(),
        strategy: Strategy { kind, resources },
    })
}

fn weights(resources: &[ResourceSpec]) -> Vec<ResourceWeight> {
    let weight = |resource: &ResourceSpec| ResourceWeight {
        name: Text::new(&resource.name),
        weight: if resource.weight == 0 {
            1
        } else {
            resource.weight
        },
    };

    let default = || {
        [CPU, MEMORY]
            .map(|name| ResourceWeight {
                name: Text::const_new(name),
                weight: 1,
            })
            .to_vec()
    };

    if resources.is_empty() {
        default()
    } else {
        resources.iter().map(weight).collect()
    }
}

fn points(shape: &[ShapePoint]) -> Result<Vec<Point>, String> {
    let path = "scoringStrategy.requestedToCapacityRatio.shape";
    if shape.is_empty() {
        return Err(format!(
            "{path}: Required value: at least one point must be specified"
        ));
    }

    if !shape.is_sorted_by(|one, next| one.utilization < next.utilization) {
        return Err(format!(
            "{path}: Invalid value: values must be sorted in increasing order"
        ));
    }

    let in_range = |point: &ShapePoint| {
        (0..=100).contains(&point.utilization) && (0..=10).contains(&point.score)
    };
    if !shape.iter().all(in_range) {
        return Err(format!(
            "{path}: Invalid value: utilization not in valid range [0, 100], or score not in [0, 10]"
        ));
    }

    Ok(shape
        .iter()
        .map(|point| Point {
            utilization: point.utilization,
            score: point.score * 10,
        })
        .collect())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct NodeResourcesFitArgs {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    ignored_resources: Vec<String>,
    ignored_resource_groups: Vec<String>,
    scoring_strategy: Option<ScoringStrategy>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ScoringStrategy {
    #[serde(rename = "type")]
    kind: Option<String>,
    resources: Vec<ResourceSpec>,
    requested_to_capacity_ratio: Option<Ratio>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Ratio {
    shape: Vec<ShapePoint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShapePoint {
    utilization: i64,
    score: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourceSpec {
    name: String,
    #[serde(default)]
    weight: i64,
}

pub(super) fn balanced_allocation(args: Args<'_>) -> Result<BalancedAllocation, String> {
    let args: BalancedAllocationArgs = read(args)?;
    let resources = weights(&args.resources);
    if let Some(wrong) = resources.iter().find(|resource| resource.weight != 1) {
        return Err(format!(
            "resources: Invalid value: {}: must be 1",
            wrong.weight
        ));
    }

    Ok(BalancedAllocation {
        strategy: Strategy {
            kind: StrategyKind::Balanced,
            resources,
        },
    })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct BalancedAllocationArgs {
    #[serde(rename = "apiVersion")]
    _api_version: Option<String>,
    #[serde(rename = "kind")]
    _kind: Option<String>,
    resources: Vec<ResourceSpec>,
}
