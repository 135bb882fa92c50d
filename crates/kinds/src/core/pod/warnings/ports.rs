//! Warnings about conflicting ports.

use std::collections::{BTreeMap, HashMap};

use coracle_api::Path;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{ContainerPort, PodSpec};

use super::super::validate::every_container;
use crate::validate::{items, text};
use crate::warnings::Gathered;

/// Ports of one number and protocol, in the order of the spec.
#[derive(Default)]
struct SamePort {
    places: Vec<String>,
    /// Which of them have this host port, by host IP.
    bound: HashMap<i32, HashMap<String, Vec<usize>>>,
}

pub(super) fn ports(spec: &PodSpec, at: &Path<'_>, warnings: &mut Gathered) {
    let mut all: BTreeMap<(i32, String), SamePort> = BTreeMap::new();
    every_container(spec, at, |container, at| {
        for (index, port) in items(&container.ports).iter().enumerate() {
            if warnings.is_full() {
                return;
            }

            let place = at.field("ports").index(index).to_string();
            if !text(&port.host_ip).is_empty() && host_port(port) == 0 {
                warnings.push(format!(
                    "{place}: hostIP set without hostPort: {}",
                    go_struct(port)
                ));
            }

            let others = all
                .entry((port.container_port, text(&port.protocol).to_owned()))
                .or_default();
            others.warn(port, &place, warnings);
            others.add(port, place);
        }
    });

    let mut names: BTreeMap<String, String> = BTreeMap::new();
    every_container(spec, at, |container, at| {
        for (index, port) in items(&container.ports).iter().enumerate() {
            if warnings.is_full() {
                return;
            }

            let (name, place) = (text(&port.name), at.field("ports").index(index).to_string());
            if name.is_empty() {
                continue;
            }

            match names.get(name) {
                None => drop(names.insert(name.to_owned(), place)),
                Some(other) => warnings.push(format!(
                    "{place}: duplicate port name {} with {other}, services and probes that select ports by name will \
                     use {other}",
                    Quoted(name)
                )),
            }
        }
    });
}

impl SamePort {
    fn add(&mut self, port: &ContainerPort, place: String) {
        let of_ip = self.bound.entry(host_port(port)).or_default();
        of_ip
            .entry(text(&port.host_ip).to_owned())
            .or_default()
            .push(self.places.len());
        self.places.push(place);
    }

    /// Warns about each of these that conflicts with another port. Only those that do are visited.
    fn warn(&self, port: &ContainerPort, place: &str, warnings: &mut Gathered) {
        for (other, relation) in self.related(port) {
            if warnings.is_full() {
                return;
            }
            let other = &self.places[other];
            warnings.push(format!("{place}: {relation} port definition with {other}"));
        }
    }

    /// How these relate to a port, in their order.
    fn related(
        &self,
        port: &ContainerPort,
    ) -> Box<dyn Iterator<Item = (usize, &'static str)> + '_> {
        let (ip, host) = (text(&port.host_ip).to_owned(), host_port(port));
        let of = |host: i32, ip: &str| {
            let found = self.bound.get(&host).and_then(|of_ip| of_ip.get(ip));
            found.map(Vec::as_slice).unwrap_or_default()
        };

        let same = of(host, &ip);
        if host == 0 {
            let is_same = |other: usize| same.binary_search(&other).is_ok();
            let all = 0..self.places.len();
            return Box::new(all.map(move |other| {
                (
                    other,
                    if is_same(other) {
                        "duplicate"
                    } else {
                        "overlapping"
                    },
                )
            }));
        }

        let unbound = self
            .bound
            .get(&0)
            .into_iter()
            .flat_map(HashMap::values)
            .flatten();

        let ambiguous: Box<dyn Iterator<Item = &usize>> = match ip.as_str() {
            "" => {
                let of_ip = self.bound.get(&host).into_iter().flatten();
                Box::new(
                    of_ip
                        .filter(|(ip, _)| !ip.is_empty())
                        .flat_map(|(_, places)| places),
                )
            }
            _ => Box::new(of(host, "").iter()),
        };

        let mut found: Vec<(usize, &'static str)> =
            same.iter().map(|other| (*other, "duplicate")).collect();
        found.extend(unbound.map(|other| (*other, "overlapping")));
        found.extend(ambiguous.map(|other| (*other, "dangerously ambiguous")));
        found.sort_unstable();

        Box::new(found.into_iter())
    }
}

fn host_port(port: &ContainerPort) -> i32 {
    port.host_port.unwrap_or(0)
}

/// A port as Go prints a struct.
fn go_struct(port: &ContainerPort) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text(&port.name),
        host_port(port),
        port.container_port,
        text(&port.protocol),
        text(&port.host_ip)
    )
}
