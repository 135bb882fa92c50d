//! The resource requests of a pod.
//!
//! The request of a pod is the sum of its containers and sidecars, or the largest init container
//! with the sidecars started before it, whichever is more; pod-level resources replace that, and
//! overhead is added. There are four results, because upstream uses four different ones: for
//! fitting ([`Requests::fit`]), for the usage of a node including a resize in progress
//! ([`Requests::used`]), and the two in which containers without requests count with a small
//! minimum, so that nodes full of them do not look empty.

use coracle_api::quantity::{Format, Quantity};
use coracle_api::{Map, Text, Value, resource_name};

use crate::resources::{Amounts, CPU, MEMORY, Resources};

/// All requests of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// What must be free on a node.
    pub fit: Resources,
    /// What it uses on its node.
    pub used: Resources,
    /// CPU in millicores, with a minimum for containers without requests.
    pub nonzero_milli_cpu: i64,
    /// Memory, with a minimum for containers without requests.
    pub nonzero_memory: i64,
    /// For scores: with minimums, without pod-level resources.
    pub scored: Resources,
}

impl Requests {
    pub(super) fn of(spec: &Map, status: &Map) -> Requests {
        let containers = Containers::of(spec, status);
        let used = containers.total(true, &Amounts::default(), true);

        let declared = Amounts::from_map(
            spec.below("resources")
                .and_then(|own| own.below("requests")),
        );
        let declares = declared.iter().any(|(name, _)| is_pod_level(name));

        // No minimum for what the pod-level resources declare.
        let missing: Vec<_> = [CPU, MEMORY]
            .into_iter()
            .filter(|name| !declares || used.get(name).is_none())
            .collect();
        let nonzero = containers.total(true, &minimums(&missing), true).rounded();

        Requests {
            fit: containers.total(false, &Amounts::default(), true).rounded(),
            used: used.rounded(),
            nonzero_milli_cpu: nonzero.milli_cpu,
            nonzero_memory: nonzero.memory,
            scored: containers
                .total(false, &minimums(&[CPU, MEMORY]), false)
                .rounded(),
        }
    }
}

/// The minimum of a container without requests.
fn minimums(names: &[&str]) -> Amounts {
    let mut all = Amounts::default();
    for name in names {
        match *name {
            CPU => all.set(CPU, &Quantity::from_milli(100, Format::DecimalSi)),
            name => all.set(name, &Quantity::new(200 * 1024 * 1024, Format::DecimalSi)),
        }
    }
    all
}

fn is_pod_level(name: &str) -> bool {
    name == CPU || name == MEMORY || resource_name::is_huge_page(name)
}

struct Container {
    asked: Amounts,
    /// The resources that the kubelet has allocated, if reported.
    actual: Option<Amounts>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Main,
    Sidecar,
    Init,
}

struct Containers {
    main: Vec<Container>,
    init: Vec<Container>,
    declared: Amounts,
    declared_actual: Option<Amounts>,
    overhead: Amounts,
    /// The kubelet reported the resize as infeasible: only allocated resources count.
    resize_infeasible: bool,
}

impl Containers {
    fn of(spec: &Map, status: &Map) -> Containers {
        let statuses = ["containerStatuses", "initContainerStatuses"];
        let statuses: Vec<&Map> = statuses
            .iter()
            .flat_map(|list| status.items(list))
            .filter_map(Value::as_object)
            .collect();

        let read = |list: &str, stage_of: &dyn Fn(&Map) -> Stage| {
            let containers = spec.items(list).iter().filter_map(Value::as_object);
            containers
                .map(|container| Container::of(container, &statuses, stage_of(container)))
                .collect()
        };

        let declared = spec.below("resources");
        let actual = status.below("resources").map(|actual| {
            let mut all = Amounts::from_map(actual.below("requests"));
            all.raise_to(&Amounts::from_map(status.below("allocatedResources")));
            all
        });

        let conditions = status
            .items("conditions")
            .iter()
            .filter_map(Value::as_object);

        let mut resize =
            conditions.filter(|condition| condition.text("type") == "PodResizePending");

        Containers {
            main: read("containers", &|_| Stage::Main),
            init: read(
                "initContainers",
                &|container| match container.text("restartPolicy") {
                    "Always" => Stage::Sidecar,
                    _ => Stage::Init,
                },
            ),
            declared: Amounts::from_map(declared.and_then(|own| own.below("requests"))),
            declared_actual: actual,
            overhead: Amounts::from_map(spec.below("overhead")),
            resize_infeasible: resize
                .next()
                .is_some_and(|pending| pending.text("reason") == "Infeasible"),
        }
    }

    /// The sum of the pod. `actual`: allocated resources count too; `least`: the minimum for
    /// containers without requests; `pod_level`: pod-level resources replace the sum of the
    /// containers.
    fn total(&self, actual: bool, least: &Amounts, pod_level: bool) -> Amounts {
        let mut running = Amounts::default();
        for container in &self.main {
            running.add(&self.request(container, actual, least));
        }

        let (mut sidecars, mut starting) = (Amounts::default(), Amounts::default());
        for container in &self.init {
            let mut request = self.request(container, actual, least);
            if container.stage == Stage::Sidecar {
                running.add(&request);
                sidecars.add(&request);
                starting.raise_to(&sidecars);
            } else {
                request.add(&sidecars);
                starting.raise_to(&request);
            }
        }

        running.raise_to(&starting);

        if pod_level {
            self.put_declared(&mut running, actual);
        }

        running.add(&self.overhead);

        running
    }

    fn put_declared(&self, total: &mut Amounts, actual: bool) {
        let effective = self.declared_actual.as_ref().filter(|_| actual);
        let effective = effective.map(|running| self.effective(&self.declared, running));
        for (name, amount) in self.declared.iter().filter(|(name, _)| is_pod_level(name)) {
            match &effective {
                None => total.set(name, amount),
                Some(effective) => {
                    total.set(name, effective.get(name).unwrap_or(&Quantity::default()))
                }
            }
        }
    }

    fn request(&self, container: &Container, actual: bool, least: &Amounts) -> Amounts {
        let running = container
            .actual
            .as_ref()
            .filter(|_| actual && container.stage != Stage::Init);

        let mut request = match running {
            Some(running) => self.effective(&container.asked, running),
            None => container.asked.clone(),
        };

        for (name, amount) in least.iter() {
            if request.get(name).is_none() {
                request.set(name, amount);
            }
        }

        request
    }

    fn effective(&self, asked: &Amounts, running: &Amounts) -> Amounts {
        let mut all = running.clone();
        if !self.resize_infeasible {
            all.raise_to(asked);
        }
        all
    }
}

impl Container {
    fn of(container: &Map, statuses: &[&Map], stage: Stage) -> Container {
        let name = Text::new(container.text("name"));
        let status = statuses.iter().find(|status| status.text("name") == name);
        let actual = status.and_then(|status| {
            let mut all = Amounts::from_map(status.below("resources")?.below("requests"));
            all.raise_to(&Amounts::from_map(status.below("allocatedResources")));
            Some(all)
        });

        let asked = container
            .below("resources")
            .and_then(|resources| resources.below("requests"));

        Container {
            asked: Amounts::from_map(asked),
            actual,
            stage,
        }
    }
}
