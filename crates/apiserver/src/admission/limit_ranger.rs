//! LimitRanger: default requests and limits of containers, and bounds on what pods and claims
//! request.

use std::collections::BTreeMap;

use async_trait::async_trait;
use coracle_api::quantity::Quantity;
use coracle_api::quota::amounts::{self, Amounts, Side};
use coracle_api::{Map, Value, typed};
use coracle_kinds::Part;
use coracle_kinds::builtin;
use k8s_openapi::api::core::v1::{LimitRange, LimitRangeItem, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use super::{Attributes, Operation, Plugin, together};
use crate::ApiError;

pub(super) struct LimitRanger;

#[async_trait]
impl Plugin for LimitRanger {
    async fn admit(&self, object: &mut Value, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if attributes.is_of("", "pods") && concerns(attributes) {
            for range in ranges(attributes) {
                fill_in(object, &range);
            }
        }
        Ok(())
    }

    async fn validate(
        &self,
        object: Option<&Value>,
        attributes: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let Some(object) = object.filter(|_| concerns(attributes)) else {
            return Ok(());
        };
        for range in ranges(attributes) {
            let refusals = match attributes.cx.resource.plural.as_str() {
                "pods" => typed::view(object)
                    .map(|pod| check_pod(&pod, &range))
                    .unwrap_or_default(),
                _ => typed::view(object)
                    .map(|claim| check_claim(&claim, &range))
                    .unwrap_or_default(),
            };

            if let Some(why) = together(refusals) {
                return Err(attributes.forbidden(object, &why));
            }
        }

        Ok(())
    }
}

/// Claims on every write, pods when they are created or resized: nothing else changes what they
/// request. Objects that are being deleted are ignored.
fn concerns(attributes: &Attributes<'_>) -> bool {
    let pods = attributes.is_of("", "pods");
    let concerns = match (attributes.operation, attributes.cx.part) {
        (Operation::Create, Part::Main) => pods || attributes.is_of("", "persistentvolumeclaims"),
        (Operation::Update, Part::Main) => attributes.is_of("", "persistentvolumeclaims"),
        (Operation::Update, Part::Resize) => pods,
        _ => false,
    };
    concerns
        && !attributes
            .old
            .is_some_and(|old| old.meta().is_being_deleted())
}

fn ranges(attributes: &Attributes<'_>) -> impl Iterator<Item = Vec<LimitRangeItem>> {
    let found = attributes
        .cx
        .cluster
        .list(builtin("", "v1", "limitranges"), attributes.cx.namespace);
    let ranges = found
        .into_iter()
        .filter_map(|range| typed::view::<LimitRange>(&range).ok());
    ranges.filter_map(|range| Some(range.spec?.limits))
}

/// Sets the default requests and limits of containers, and notes them in an annotation of the pod.
fn fill_in(pod: &mut Value, range: &[LimitRangeItem]) {
    let (mut requests, mut limits) = (BTreeMap::new(), BTreeMap::new());
    for item in range.iter().filter(|item| item.type_ == "Container") {
        requests.extend(item.default_request.iter().flatten());
        limits.extend(item.default.iter().flatten());
    }

    let Some(spec) = pod.as_object_mut().map(|pod| pod.object_mut("spec")) else {
        return;
    };

    let mut filled = Vec::new();
    for (list, called) in [
        ("containers", "container"),
        ("initContainers", "init container"),
    ] {
        let containers = spec
            .get_mut(list)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten();

        for container in containers.filter_map(Value::as_object_mut) {
            let name = container.str("name").unwrap_or_default().to_owned();
            let resources = container.object_mut("resources");

            // Upstream sets limits first and lists requests first.
            let limited = fill(resources, "limits", &limits);
            let requested = fill(resources, "requests", &requests);
            for (names, side) in [(requested, "request"), (limited, "limit")] {
                if !names.is_empty() {
                    filled.push(format!("{} {side} for {called} {name}", names.join(", ")));
                }
            }
        }
    }

    if !filled.is_empty() {
        let filled = format!("LimitRanger plugin set: {}", filled.join("; "));
        pod.meta_mut()
            .set_annotation("kubernetes.io/limit-ranger", Some(&filled));
    }
}

/// The names of what was missing.
fn fill(resources: &mut Map, side: &str, defaults: &BTreeMap<&String, &Written>) -> Vec<String> {
    if defaults.is_empty() {
        return Vec::new();
    }

    let amounts = resources.object_mut(side);
    let missing: Vec<_> = defaults
        .iter()
        .filter(|(name, _)| !amounts.contains_key(name))
        .collect();
    let names = missing.iter().map(|(name, _)| (**name).clone()).collect();

    for (name, amount) in missing {
        amounts.insert(name.as_str(), amount.0.as_str());
    }

    names
}

/// The requested amount, the limit, and the limit range type that they are compared with.
struct Requested<'a> {
    requests: &'a Amounts,
    limits: &'a Amounts,
    of: &'a str,
}

fn check_pod(pod: &Pod, range: &[LimitRangeItem]) -> Vec<String> {
    let Some(spec) = &pod.spec else {
        return Vec::new();
    };

    let mut refusals = Vec::new();
    for item in range {
        let mut compare = |requests: &Amounts, limits: &Amounts| {
            let asked = Requested {
                requests,
                limits,
                of: &item.type_,
            };

            refusals.extend(
                read(&item.min)
                    .iter()
                    .filter_map(|(name, least)| asked.below(name, least)),
            );

            refusals.extend(
                read(&item.max)
                    .iter()
                    .filter_map(|(name, most)| asked.above(name, most)),
            );

            let ratios = read(&item.max_limit_request_ratio);
            refusals.extend(
                ratios
                    .iter()
                    .filter_map(|(name, most)| asked.too_far_apart(name, most)),
            );
        };

        match item.type_.as_str() {
            "Container" => {
                for container in spec
                    .containers
                    .iter()
                    .chain(spec.init_containers.iter().flatten())
                {
                    let resources = container.resources.as_ref();
                    compare(&Side::Requests.of(resources), &Side::Limits.of(resources));
                }
            }
            "Pod" => compare(&Side::Requests.of_pod(spec), &Side::Limits.of_pod(spec)),
            _ => {}
        }
    }

    refusals
}

fn check_claim(claim: &PersistentVolumeClaim, range: &[LimitRangeItem]) -> Vec<String> {
    let resources = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref());
    let requests = amounts::read(resources.and_then(|resources| resources.requests.as_ref()));

    let mut refusals = Vec::new();
    for item in range
        .iter()
        .filter(|item| item.type_ == "PersistentVolumeClaim")
    {
        let asked = Requested {
            requests: &requests,
            limits: &Amounts::new(),
            of: &item.type_,
        };

        refusals.extend(
            read(&item.min)
                .iter()
                .filter_map(|(name, least)| asked.below(name, least)),
        );

        refusals.extend(
            read(&item.max)
                .iter()
                .filter_map(|(name, most)| asked.requested_above(name, most)),
        );
    }

    refusals
}

fn read(given: &Option<BTreeMap<String, Written>>) -> Amounts {
    amounts::read(given.as_ref())
}

impl Requested<'_> {
    fn below(&self, name: &str, least: &Quantity) -> Option<String> {
        let rule = format!("minimum {name} usage per {} is {least}", self.of);
        match (self.requests.get(name), self.limits.get(name)) {
            (None, _) => Some(format!("{rule}.  No request is specified")),
            (Some(asked), _) if asked < least => Some(format!("{rule}, but request is {asked}")),
            (_, Some(limit)) if limit < least => Some(format!("{rule}, but limit is {limit}")),
            _ => None,
        }
    }

    fn above(&self, name: &str, most: &Quantity) -> Option<String> {
        let rule = format!("maximum {name} usage per {} is {most}", self.of);
        match (self.requests.get(name), self.limits.get(name)) {
            (_, None) => Some(format!("{rule}.  No limit is specified")),
            (_, Some(limit)) if limit > most => Some(format!("{rule}, but limit is {limit}")),
            (Some(asked), _) if asked > most => Some(format!("{rule}, but request is {asked}")),
            _ => None,
        }
    }

    /// For what has requests alone.
    fn requested_above(&self, name: &str, most: &Quantity) -> Option<String> {
        let rule = format!("maximum {name} usage per {} is {most}", self.of);
        match self.requests.get(name) {
            None => Some(format!("{rule}.  No request is specified")),
            Some(asked) if asked > most => Some(format!("{rule}, but request is {asked}")),
            Some(_) => None,
        }
    }

    fn too_far_apart(&self, name: &str, most: &Quantity) -> Option<String> {
        let rule = format!(
            "{name} max limit to request ratio per {} is {most}",
            self.of
        );

        let more_than_nothing =
            |side: &Amounts| side.get(name).filter(|amount| !amount.is_zero()).cloned();
        let Some(asked) = more_than_nothing(self.requests) else {
            return Some(format!(
                "{rule}, but no request is specified or request is 0"
            ));
        };

        let Some(limit) = more_than_nothing(self.limits) else {
            return Some(format!("{rule}, but no limit is specified or limit is 0"));
        };
        let ratio = limit.to_f64() / asked.to_f64();

        (ratio > most.to_f64()).then(|| format!("{rule}, but provided ratio is {ratio:.6}"))
    }
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn range(text: &str) -> Vec<LimitRangeItem> {
        let parsed = json::parse(text.as_bytes()).unwrap();
        parsed
            .as_array()
            .unwrap()
            .iter()
            .map(|item| typed::from_tree(item).unwrap())
            .collect()
    }

    #[test]
    fn defaults_are_set_and_noted_in_the_annotation() {
        let mut pod = json::parse(
            br#"{"metadata":{},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"2"}}}],
                "initContainers":[{"name":"i"}]}}"#,
        )
        .unwrap();

        fill_in(
            &mut pod,
            &range(
                r#"[{"type":"Container","default":{"cpu":"1","memory":"1Gi"},"defaultRequest":{"cpu":"100m"}}]"#,
            ),
        );

        let annotation = "LimitRanger plugin set: cpu request for container c; memory limit for container c; \
                    cpu request for init container i; cpu, memory limit for init container i";
        assert_eq!(
            pod.meta().annotation("kubernetes.io/limit-ranger"),
            Some(annotation)
        );

        let container = &pod.at(&["spec", "containers"]).unwrap().as_array().unwrap()[0];
        assert_eq!(
            container
                .at(&["resources", "limits", "cpu"])
                .unwrap()
                .as_str(),
            Some("2")
        );
    }

    #[test]
    fn amounts_stay_within_their_bounds() {
        let check = |resources: &str, item: &str, expected: &[&str]| {
            let pod = format!(
                r#"{{"metadata":{{}},"spec":{{"containers":[{{"name":"c","resources":{resources}}}]}}}}"#
            );

            let pod: Pod = typed::from_tree(&json::parse(pod.as_bytes()).unwrap()).unwrap();
            assert_eq!(
                check_pod(&pod, &range(&format!("[{item}]"))),
                expected,
                "{resources} {item}"
            );
        };

        let least = r#"{"type":"Container","min":{"cpu":"200m"}}"#;
        check(r#"{"requests":{"cpu":"200m"}}"#, least, &[]);
        check(
            "{}",
            least,
            &["minimum cpu usage per Container is 200m.  No request is specified"],
        );

        check(
            r#"{"requests":{"cpu":"1m"}}"#,
            least,
            &["minimum cpu usage per Container is 200m, but request is 1m"],
        );

        let most = r#"{"type":"Pod","max":{"memory":"1Gi"}}"#;
        check(r#"{"limits":{"memory":"1Gi"}}"#, most, &[]);
        check(
            "{}",
            most,
            &["maximum memory usage per Pod is 1Gi.  No limit is specified"],
        );

        check(
            r#"{"limits":{"memory":"2Gi"}}"#,
            most,
            &["maximum memory usage per Pod is 1Gi, but limit is 2Gi"],
        );

        let ratio = r#"{"type":"Container","maxLimitRequestRatio":{"cpu":"2"}}"#;
        check(
            r#"{"limits":{"cpu":"2"},"requests":{"cpu":"1"}}"#,
            ratio,
            &[],
        );

        check(
            r#"{"limits":{"cpu":"3"},"requests":{"cpu":"1"}}"#,
            ratio,
            &["cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000"],
        );

        check(
            r#"{"limits":{"cpu":"3"}}"#,
            ratio,
            &[
                "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
            ],
        );
    }
}
