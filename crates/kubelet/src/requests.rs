//! Resource requests and limits of a whole pod.

use std::collections::BTreeMap;

use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use crate::pod::{Kind, PodView};

/// Amounts by resource name.
pub type Amounts = BTreeMap<String, Quantity>;

/// The requests of a pod: main containers and sidecars, or the largest init container with the
/// sidecars before it, whichever is more; plus the overhead.
pub fn requests(pod: &Pod) -> Amounts {
    total(
        pod,
        |container| container.resources.as_ref()?.requests.as_ref(),
        |pod| pod.pod_spec().resources.as_ref()?.requests.as_ref(),
    )
}

/// The limits of a pod; a resource that a container does not limit has none.
pub fn limits(pod: &Pod) -> Amounts {
    let mut amounts = total(
        pod,
        |container| container.resources.as_ref()?.limits.as_ref(),
        |pod| pod.pod_spec().resources.as_ref()?.limits.as_ref(),
    );

    let of_pod = pod
        .pod_spec()
        .resources
        .as_ref()
        .and_then(|resources| resources.limits.as_ref());

    amounts.retain(|name, _| {
        let says = |container: &Container| {
            let limits = container
                .resources
                .as_ref()
                .and_then(|resources| resources.limits.as_ref());
            limits.is_some_and(|limits| limits.contains_key(name))
        };

        of_pod.is_some_and(|limits| limits.contains_key(name))
            || pod
                .lasting_containers()
                .all(|(_, container)| says(container))
    });

    amounts
}

fn total<'a>(
    pod: &'a Pod,
    of: impl Fn(&'a Container) -> Option<&'a BTreeMap<String, Text>>,
    of_pod: impl Fn(&'a Pod) -> Option<&'a BTreeMap<String, Text>>,
) -> Amounts {
    let (mut lasting, mut sidecars, mut greediest) =
        (Amounts::new(), Amounts::new(), Amounts::new());
    for (kind, container) in pod.lasting_containers() {
        let own = read(of(container));
        match kind {
            Kind::Sidecar => {
                add(&mut sidecars, &own);
                add(&mut lasting, &own);
                raise(&mut greediest, &sidecars);
            }
            Kind::Init => {
                let mut moment = sidecars.clone();
                add(&mut moment, &own);
                raise(&mut greediest, &moment);
            }
            Kind::Main | Kind::Ephemeral => add(&mut lasting, &own),
        }
    }

    raise(&mut lasting, &greediest);

    // Pod-level resources take precedence.
    lasting.extend(read(of_pod(pod)));
    add(&mut lasting, &read(pod.pod_spec().overhead.as_ref()));

    lasting
}

fn read(list: Option<&BTreeMap<String, Text>>) -> Amounts {
    let list = list.into_iter().flatten();
    list.filter_map(|(name, text)| Some((name.clone(), text.0.parse().ok()?)))
        .collect()
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        match to.get_mut(name) {
            Some(sum) => sum.add(amount),
            None => drop(to.insert(name.clone(), amount.clone())),
        }
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to.get(name).is_none_or(|sum| sum < amount) {
            to.insert(name.clone(), amount.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PodSpec, ResourceRequirements};

    use super::*;

    fn container(cpu: &str, sidecar: bool) -> Container {
        let requests = Some(BTreeMap::from([("cpu".to_owned(), Text(cpu.to_owned()))]));
        Container {
            resources: Some(ResourceRequirements {
                requests,
                ..ResourceRequirements::default()
            }),
            restart_policy: sidecar.then(|| "Always".to_owned()),
            ..Container::default()
        }
    }

    fn check(init: Vec<Container>, main: Vec<Container>, milli: i64) {
        let spec = PodSpec {
            init_containers: Some(init),
            containers: main,
            ..PodSpec::default()
        };
        let pod = Pod {
            spec: Some(spec),
            ..Pod::default()
        };
        assert_eq!(requests(&pod)["cpu"].milli_value(), milli);
        assert!(limits(&pod).is_empty());
    }

    #[test]
    fn a_pods_request_is_the_maximum_of_init_and_run_time() {
        check(
            vec![],
            vec![container("1", false), container("500m", false)],
            1500,
        );

        check(
            vec![container("2", false), container("1", false)],
            vec![container("1", false)],
            2000,
        );

        check(
            vec![container("1", true)],
            vec![container("1", false)],
            2000,
        );

        check(
            vec![container("1", true), container("2", false)],
            vec![container("1", false)],
            3000,
        );

        check(
            vec![container("3", false), container("1", true)],
            vec![container("1", false)],
            3000,
        );
    }
}
