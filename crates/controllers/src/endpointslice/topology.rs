//! Topology hints (`service.kubernetes.io/topology-mode: Auto`): every zone gets endpoints in
//! proportion to its CPUs. Pure.
//!
//! An endpoint serves its own zone if possible. A zone with more endpoints than its share gives
//! some to zones with fewer; no endpoint may get more than 20 % above its share of the traffic. If
//! that is impossible there are no hints, and an event says why. Existing hints that are still good
//! enough stay.

use std::collections::{BTreeMap, BTreeSet};

use coracle_api::quantity::Quantity;
use coracle_api::{Map, Text, Value};

use super::fill::identity;
use crate::views::{Node, Service};

/// How much more than its share an endpoint may get.
const OVERLOAD: f64 = 0.2;

/// Nodes with these labels do not count.
const NOT_FOR_PODS: [&str; 2] = [
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
];

/// The number of endpoints for each zone.
pub type Allocated = BTreeMap<Text, usize>;

/// Whether a Service uses topology hints. The older annotation wins over the newer one.
pub fn wants(service: &Service) -> bool {
    let meta = service.object.meta();
    let old = meta.annotation("service.kubernetes.io/topology-aware-hints");
    let mode = old.or_else(|| meta.annotation("service.kubernetes.io/topology-mode"));
    matches!(mode, Some("Auto" | "auto"))
}

/// The share of each zone in the CPUs of the ready nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Zones(BTreeMap<Text, f64>);

impl Zones {
    /// Empty if a node lacks its zone or CPUs, or if there are fewer than two zones.
    pub fn of<'a>(nodes: impl Iterator<Item = &'a Node>) -> Zones {
        let mut by_zone: BTreeMap<Text, i64> = BTreeMap::new();
        for node in nodes.filter(|node| counts(node)) {
            let (zone, cpu) = (node.zone(), cpu(node));
            if zone.is_empty() || cpu == 0 {
                return Zones::default();
            }
            *by_zone.entry(Text::new(zone)).or_default() += cpu;
        }

        if by_zone.len() < 2 {
            return Zones::default();
        }

        let total = as_float(by_zone.values().sum());
        Zones(
            by_zone
                .into_iter()
                .map(|(zone, cpu)| (zone, as_float(cpu) / total))
                .collect(),
        )
    }
}

/// Whether a change of a node leaves the shares the same.
pub fn is_same(old: &Node, new: &Node) -> bool {
    counts(old) == counts(new) && old.zone() == new.zone() && cpu(old) == cpu(new)
}

fn counts(node: &Node) -> bool {
    node.is_ready()
        && !NOT_FOR_PODS
            .iter()
            .any(|label| node.labels.contains_key(label))
}

fn cpu(node: &Node) -> i64 {
    let amount = node.allocatable.get("cpu").map(Quantity::from_value);
    amount
        .and_then(Result::ok)
        .map_or(0, |amount| amount.milli_value())
}

/// The numbers of CPUs and endpoints are exact in a float.
fn as_float(number: i64) -> f64 {
    number as f64
}

fn count(number: usize) -> f64 {
    as_float(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The fewest endpoints with which a zone of this share does not overload them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count is one"
)]
fn least(share: f64, endpoints: usize) -> usize {
    (share * count(endpoints) / (1.0 + OVERLOAD)).ceil() as usize
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Allocation {
    maximum: usize,
    desired: f64,
}

/// The desired number of endpoints for each zone; or why there are no hints.
fn allocations(zones: &Zones, endpoints: usize) -> Result<BTreeMap<Text, Allocation>, String> {
    let shares = &zones.0;
    if shares.is_empty() {
        return Err(
            "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
                .into(),
        );
    }

    let counted = format!("({endpoints} endpoints, {} zones)", shares.len());
    if shares.len() > endpoints {
        return Err(format!("Insufficient number of endpoints {counted}"));
    }

    let least_of_all: usize = shares.values().map(|share| least(*share, endpoints)).sum();
    let Some(spare) = endpoints.checked_sub(least_of_all) else {
        return Err(format!(
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold {counted}"
        ));
    };

    let allocation = |share: &f64| {
        let minimum = least(*share, endpoints);
        Allocation {
            maximum: minimum + spare,
            desired: (share * count(endpoints)).max(count(minimum)),
        }
    };

    Ok(shares
        .iter()
        .map(|(zone, share)| (zone.clone(), allocation(share)))
        .collect())
}

/// Sets the hints of one family's endpoints; returns how many each zone has, or why there are none.
/// `existing` are the endpoints of each existing slice.
pub fn assign(
    endpoints: &mut [&mut Value],
    existing: &[&[Value]],
    zones: &Zones,
) -> Result<Allocated, String> {
    let ready: Vec<usize> = (0..endpoints.len())
        .filter(|at| is_ready(endpoints[*at]))
        .collect();
    let allocations = allocations(zones, ready.len())?;

    if ready.iter().any(|at| zone(endpoints[*at]).is_empty()) {
        return Err("One or more endpoints do not have a zone specified".into());
    }

    let mut allocated = Allocated::new();
    let kept = keep(endpoints, existing, &allocations, &mut allocated);
    let free: Vec<usize> = ready.into_iter().filter(|at| !kept.contains(at)).collect();
    for at in &free {
        let own = zone(endpoints[*at]);
        *allocated.entry(own.clone()).or_default() += 1;
        hint(endpoints[*at], &own);
    }

    let (mut giving, mut receiving) = movements(&allocations, &allocated);
    for at in free {
        let own = zone(endpoints[at]);
        let Some(left) = giving.get_mut(&own).filter(|left| **left > 0) else {
            continue;
        };
        let Some((to, wanted)) = receiving.iter_mut().find(|(_, wanted)| **wanted > 0) else {
            break;
        };
        (*left, *wanted) = (*left - 1, *wanted - 1);

        hint(endpoints[at], to);
        *allocated.entry(to.clone()).or_default() += 1;
        allocated.entry(own).and_modify(|count| *count -= 1);
    }

    Ok(allocated)
}

/// Whether a zone has too few of a Service's endpoints for its share, so that hints must be
/// computed again.
pub fn is_overloaded(allocated: &Allocated, zones: &Zones) -> bool {
    let total = allocated.values().sum();
    let has = |zone: &Text| allocated.get(zone).copied();
    let lacks =
        |(zone, share): (&Text, &f64)| has(zone).is_none_or(|has| has < least(*share, total));
    !allocated.is_empty() && (zones.0.is_empty() || zones.0.iter().any(lacks))
}

/// Keeps the hints of slices that need not change; returns which endpoints have theirs.
fn keep(
    endpoints: &mut [&mut Value],
    existing: &[&[Value]],
    allocations: &BTreeMap<Text, Allocation>,
    allocated: &mut Allocated,
) -> BTreeSet<usize> {
    let known: BTreeMap<String, usize> = endpoints
        .iter()
        .enumerate()
        .map(|(at, endpoint)| (identity(endpoint), at))
        .collect();

    let mut kept = BTreeSet::new();
    for slice in existing {
        let stays = |had: &Value| {
            let at = *known.get(&identity(had))?;
            (without_hints(had) == *endpoints[at]).then_some((at, had.get("hints").cloned()))
        };

        let Some(all) = slice.iter().map(stays).collect::<Option<Vec<_>>>() else {
            continue;
        };
        let ready: Vec<_> = all
            .into_iter()
            .filter(|(at, _)| is_ready(endpoints[*at]))
            .collect();

        let Some(by_zone) = hinted(&ready) else {
            continue;
        };
        let fits = |(zone, more): (&Text, &usize)| {
            let has = allocated.get(zone).copied().unwrap_or_default();
            allocations
                .get(zone)
                .is_some_and(|allocation| has + more <= allocation.maximum)
        };

        if !by_zone.iter().all(fits) {
            continue;
        }

        for (zone, more) in by_zone {
            *allocated.entry(zone).or_default() += more;
        }

        for (at, hints) in ready {
            if let (Some(hints), Some(members)) = (hints, endpoints[at].as_object_mut()) {
                members.insert("hints", hints);
            }
            kept.insert(at);
        }
    }

    kept
}

/// The number of endpoints by hinted zone; `None` if not all have hints.
fn hinted(endpoints: &[(usize, Option<Value>)]) -> Option<Allocated> {
    let mut by_zone = Allocated::new();
    for (_, hints) in endpoints {
        let zones = hints.as_ref()?.get("forZones").and_then(Value::as_array)?;
        if zones.is_empty() {
            return None;
        }

        for zone in zones
            .iter()
            .filter_map(|zone| zone.get("name").and_then(Value::as_str))
        {
            *by_zone.entry(Text::new(zone)).or_default() += 1;
        }
    }

    Some(by_zone)
}

/// How many endpoints each zone gives away and receives.
fn movements(
    allocations: &BTreeMap<Text, Allocation>,
    allocated: &Allocated,
) -> (BTreeMap<Text, usize>, BTreeMap<Text, usize>) {
    let (mut over, mut under) = (BTreeMap::new(), BTreeMap::new());
    for (zone, allocation) in allocations {
        let has = count(allocated.get(zone).copied().unwrap_or_default());
        let side = if has > allocation.desired {
            &mut over
        } else {
            &mut under
        };
        side.insert(zone.clone(), (has - allocation.desired).abs());
    }

    let (mut giving, mut receiving) = (BTreeMap::new(), BTreeMap::new());
    while let (Some((from, more)), Some((to, fewer))) = (most(&over), most(&under)) {
        // A remainder of half an endpoint on both sides is good enough.
        if (more < 1.0 && fewer < 1.0) || more < 0.5 || fewer < 0.5 {
            break;
        }
        over.entry(from.clone()).and_modify(|left| *left -= 1.0);
        under.entry(to.clone()).and_modify(|left| *left -= 1.0);
        *giving.entry(from).or_default() += 1;
        *receiving.entry(to).or_default() += 1;
    }

    (giving, receiving)
}

/// The first of those with the most, if not zero.
fn most(zones: &BTreeMap<Text, f64>) -> Option<(Text, f64)> {
    let mut best: Option<(&Text, f64)> = None;
    for (zone, amount) in zones {
        if *amount > best.map_or(0.0, |(_, amount)| amount) {
            best = Some((zone, *amount));
        }
    }
    best.map(|(zone, amount)| (zone.clone(), amount))
}

fn is_ready(endpoint: &Value) -> bool {
    endpoint
        .at(&["conditions", "ready"])
        .and_then(Value::as_bool)
        == Some(true)
}

fn zone(endpoint: &Value) -> Text {
    Text::new(
        endpoint
            .get("zone")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    )
}

fn without_hints(endpoint: &Value) -> Value {
    let mut bare = endpoint.clone();
    if let Some(members) = bare.as_object_mut() {
        members.remove("hints");
    }
    bare
}

fn hint(endpoint: &mut Value, zone: &str) {
    let mut named = Map::new();
    named.insert("name", zone);
    let mut hints = Map::new();
    hints.insert("forZones", vec![Value::Object(named)]);
    if let Some(members) = endpoint.as_object_mut() {
        members.insert("hints", hints);
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;
    use coracle_client::Projection;

    use super::*;

    /// Nodes as `zone=cpu`, ready unless a suffix says otherwise.
    fn zones(nodes: &[&str]) -> Zones {
        let node = |text: &&str| {
            let (place, more) = text.split_once(' ').unwrap_or((text, ""));
            let (zone, cpu) = place.split_once('=').unwrap();
            let ready = if more == "down" { "False" } else { "True" };
            let role = if more == "master" {
                ", node-role.kubernetes.io/control-plane: ''"
            } else {
                ""
            };

            let text = format!(
                "{{metadata: {{name: n, labels: {{topology.kubernetes.io/zone: '{zone}'{role}}}}}, status: {{allocatable: \
                 {{cpu: '{cpu}'}}, conditions: [{{type: Ready, status: '{ready}'}}]}}}}"
            );
            let object: Value = yaml::decode(text.as_bytes()).unwrap();

            Node::project(&object.into()).unwrap()
        };
        let nodes: Vec<Node> = nodes.iter().map(node).collect();
        Zones::of(nodes.iter())
    }

    /// Endpoints by their zones, with their hints if they have any: `a b>a !b` are three, of which
    /// the last is not ready.
    fn endpoints(text: &str) -> Vec<Value> {
        let endpoint = |(at, word): (usize, &str)| {
            let (place, hint) = word.split_once('>').unwrap_or((word, ""));
            let (ready, zone) = (!place.starts_with('!'), place.trim_start_matches('!'));
            let zone = if zone == "-" {
                String::new()
            } else {
                format!(", zone: {zone}")
            };

            let hint = if hint.is_empty() {
                String::new()
            } else {
                format!(", hints: {{forZones: [{{name: {hint}}}]}}")
            };

            let text = format!(
                "{{addresses: ['10.0.0.{at}'], conditions: {{ready: {ready}}}{zone}{hint}}}"
            );

            yaml::decode(text.as_bytes()).unwrap()
        };

        text.split_whitespace().enumerate().map(endpoint).collect()
    }

    fn shown(endpoints: &[Value]) -> String {
        let hint = |endpoint: &Value| {
            let zones = endpoint
                .at(&["hints", "forZones"])
                .and_then(Value::as_array);
            let zone = zones.and_then(|zones| zones[0].get("name")?.as_str().map(str::to_string));
            zone.unwrap_or("-".to_string())
        };
        endpoints.iter().map(hint).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn zones_get_endpoints_by_their_share_of_processors() {
        let check = |nodes: &[&str], wanted: &str, existing: &str, expected: &str| {
            let mut wanted = endpoints(wanted);
            let existing = endpoints(existing);
            let mut all: Vec<&mut Value> = wanted.iter_mut().collect();
            let result = assign(&mut all, &[&existing], &zones(nodes));
            let result = result.map_or_else(|why| why, |_| shown(&wanted));
            assert_eq!(result, expected, "{nodes:?} {existing:?}");
        };

        let equal = ["a=1", "b=1"];
        check(&equal, "a a b b", "", "a a b b");
        check(&equal, "a a a b", "", "b a a b");
        check(&equal, "a a a a", "", "b b a a");

        // Half an endpoint too many is not moved.
        check(
            &equal,
            "a a b",
            "",
            "Unable to allocate minimum required endpoints to each zone without exceeding \
               overload threshold (3 endpoints, 2 zones)",
        );

        check(&["a=3", "b=1"], "a a b b", "", "a a a b");
        check(&equal, "a a b b !b", "", "a a b b -");
        check(
            &equal,
            "a",
            "",
            "Insufficient number of endpoints (1 endpoints, 2 zones)",
        );

        check(
            &equal,
            "a - b b",
            "",
            "One or more endpoints do not have a zone specified",
        );

        let unknown = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
        check(&["a=1"], "a a", "", unknown);
        check(&["a=1", "b=1", "=1"], "a b", "", unknown);
        check(&["a=1", "b=0"], "a b", "", unknown);

        // Nodes that are not ready or take no pods do not count.
        check(&["a=1", "b=1", "=1 down", "c=9 master"], "a b", "", "a b");
        check(&["a=1", "b=1 down"], "a b", "", unknown);
    }

    #[test]
    fn what_was_hinted_and_will_do_stays() {
        let check = |wanted: &str, existing: &str, expected: &str| {
            let mut wanted = endpoints(wanted);
            let existing = endpoints(existing);
            let mut all: Vec<&mut Value> = wanted.iter_mut().collect();
            assign(&mut all, &[&existing], &zones(&["a=1", "b=1"])).unwrap();
            assert_eq!(shown(&wanted), expected, "{existing:?}");
        };

        check("a a a b", "a>a a>b a>a b>b", "a b a b");
        check("a a b b", "a>b a>a b>a b>b", "b a a b");

        // Too many in one zone, a zone that is gone, or a missing hint: all are computed again.
        check("a a b b", "a>a a>a b>a b>a", "a a b b");
        check("a a b b", "a>c a>a b>b b>b", "a a b b");
        check("a a b b", "a a>a b>b b>b", "a a b b");

        // A slice that changes anyway is computed again as a whole.
        check("a !a b b b", "a>b a>b b>b b>a b>a", "a - a b b");
    }

    #[test]
    fn a_service_is_looked_at_again_when_a_zone_has_too_few() {
        let check = |allocated: &[(&str, usize)], nodes: &[&str], expected: bool| {
            let allocated: Allocated = allocated
                .iter()
                .map(|(zone, count)| (Text::new(zone), *count))
                .collect();

            assert_eq!(
                is_overloaded(&allocated, &zones(nodes)),
                expected,
                "{allocated:?} {nodes:?}"
            );
        };

        check(&[("a", 2), ("b", 2)], &["a=1", "b=1"], false);
        check(&[("a", 2), ("b", 2)], &["a=3", "b=1"], true);
        check(&[("a", 2), ("b", 2)], &["a=1", "b=1", "c=1"], true);
        check(&[("a", 2), ("b", 2)], &["a=1"], true);
        check(&[], &["a=1"], false);
    }
}
