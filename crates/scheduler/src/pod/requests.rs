//! What a pod asks of its node.
//!
//! A pod is as large as its containers and sidecars together, or as the largest init container with
//! the sidecars that run before it, whichever is more; what the pod itself declares takes the place
//! of that, and overhead comes on top. One object gives four answers, because upstream asks four
//! different questions: does it fit ([`Requests::fit`]), what does it take from a node it is on,
//! resize in progress included ([`Requests::used`]), and the two where containers without a request
//! are counted as if they had a small one, so that nodes full of them do not look empty.

use coracle_api::quantity::{Format, Quantity};
use coracle_api::{Map, Text, Value, resource_name};

use crate::resources::{Amounts, CPU, MEMORY, Resources};

/// All that a pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// What must be free on a node.
    pub fit: Resources,
    /// What it takes from its node.
    pub used: Resources,
    /// CPU in thousandths, with a minimum for containers that ask for none.
    pub nonzero_milli_cpu: i64,
    /// Memory, with a minimum for containers that ask for none.
    pub nonzero_memory: i64,
    /// What scores of free resources compute with: minimums included, what the pod itself declares
    /// left out.
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

        // Of what the pod itself declares, no container has to be helped to a minimum.
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

/// What a container without a request is counted with.
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
    /// What the kubelet has allotted and runs it with, where it says so.
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
    /// The kubelet said that a resize can never be: then only what runs counts.
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

    /// The whole pod. `actual`: what runs counts too; `least`: what a container without a request
    /// is counted with; `pod_level`: what the pod itself declares goes before the sum of its
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
