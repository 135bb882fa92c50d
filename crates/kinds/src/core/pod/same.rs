//! Equivalent specs: quantities are compared by value, not by how they are written.

use coracle_api::quantity::Quantity;
use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements, Volume};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Text;

use super::validate::resources::Amounts;
use crate::validate::items;
use crate::validate::resources::read;

/// Writes quantities of the new spec as the old one has them, where their values are equal.
pub(super) fn align(new: &mut PodSpec, old: &PodSpec) {
    for (new, old) in new.containers.iter_mut().zip(&old.containers) {
        align_container(new, old);
    }

    let init = new.init_containers.iter_mut().flatten();
    for (new, old) in init.zip(items(&old.init_containers)) {
        align_container(new, old);
    }

    align_resources(new.resources.as_mut(), old.resources.as_ref());
    align_amounts(&mut new.overhead, old.overhead.as_ref());
    let volumes = new.volumes.iter_mut().flatten();
    for (new, old) in volumes.zip(items(&old.volumes)) {
        align_volume(new, old);
    }
}

pub(super) fn align_container(new: &mut Container, old: &Container) {
    align_resources(new.resources.as_mut(), old.resources.as_ref());

    for (new, old) in new.env.iter_mut().flatten().zip(items(&old.env)) {
        let new = new
            .value_from
            .as_mut()
            .and_then(|from| from.resource_field_ref.as_mut());

        let old = old
            .value_from
            .as_ref()
            .and_then(|from| from.resource_field_ref.as_ref());

        if let (Some(new), Some(old)) = (new, old) {
            align_amount(new.divisor.as_mut(), old.divisor.as_ref());
        }
    }
}

fn align_resources(new: Option<&mut ResourceRequirements>, old: Option<&ResourceRequirements>) {
    let (Some(new), Some(old)) = (new, old) else {
        return;
    };
    align_amounts(&mut new.requests, old.requests.as_ref());
    align_amounts(&mut new.limits, old.limits.as_ref());
}

fn align_amounts(new: &mut Option<Amounts>, old: Option<&Amounts>) {
    for (name, text) in new.iter_mut().flatten() {
        align_amount(Some(text), old.and_then(|old| old.get(name)));
    }
}

fn align_volume(new: &mut Volume, old: &Volume) {
    if let (Some(new), Some(old)) = (&mut new.empty_dir, &old.empty_dir) {
        align_amount(new.size_limit.as_mut(), old.size_limit.as_ref());
    }
}

fn align_amount(new: Option<&mut Text>, old: Option<&Text>) {
    let (Some(new), Some(old)) = (new, old) else {
        return;
    };
    let (was, is): (Quantity, Quantity) = (read(old), read(new));
    if was == is {
        new.clone_from(old);
    }
}
