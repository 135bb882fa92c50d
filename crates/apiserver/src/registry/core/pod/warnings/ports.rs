//! Warnings about ports that get in each other's way.

use std::collections::BTreeMap;

use coracle_api::Path;
use coracle_api::go_text::Quoted;
use k8s_openapi::api::core::v1::{ContainerPort, PodSpec};

use super::super::validate::every_container;
use crate::registry::validate::{items, text};

/// A port, and the place it stands at.
type Placed = (String, ContainerPort);

pub(super) fn ports(spec: &PodSpec, at: &Path<'_>, warnings: &mut Vec<String>) {
    let mut all: BTreeMap<(i32, String), Vec<Placed>> = BTreeMap::new();
    every_container(spec, at, |container, at| {
        for (index, port) in items(&container.ports).iter().enumerate() {
            let place = at.field("ports").index(index).to_string();
            if !text(&port.host_ip).is_empty() && host_port(port) == 0 {
                warnings.push(format!("{place}: hostIP set without hostPort: {}", go_struct(port)));
            }
            let others = all.entry((port.container_port, text(&port.protocol).to_owned())).or_default();
            for (other_place, other) in others.iter() {
                if let Some(relation) = relation(port, other) {
                    warnings.push(format!("{place}: {relation} port definition with {other_place}"));
                }
            }
            others.push((place, port.clone()));
        }
    });
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    every_container(spec, at, |container, at| {
        for (index, port) in items(&container.ports).iter().enumerate() {
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

/// How a port of the same number and protocol stands to another.
fn relation(port: &ContainerPort, other: &ContainerPort) -> Option<&'static str> {
    let (ip, other_ip) = (text(&port.host_ip), text(&other.host_ip));
    if ip == other_ip && host_port(port) == host_port(other) {
        Some("duplicate")
    } else if host_port(port) == 0 || host_port(other) == 0 {
        Some("overlapping")
    } else if host_port(port) == host_port(other) && ip.is_empty() != other_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
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
