//! Fields that a write cannot change, and that its manager therefore does not own.
//!
//! A write of the object leaves the status alone, and a write of the status the rest; kinds add to
//! that with [`Behaviour::reset_fields`]. This is about field owners only, and upstream declares it
//! apart from what its strategies carry over: for example, the labels of a StatefulSet can be
//! changed through its status.

use coracle_api::Text;
use coracle_api::apply::{Element, FieldPath, Filter, Set, Step};
use coracle_api::catalog::Resource;

use crate::{Behaviour, Part};

/// Only these fields can be owned.
pub fn only(path: &[&'static str]) -> Filter {
    Filter::Only(vec![steps(path)])
}

/// Which fields can be owned through a write of this part; `None`: all.
pub fn owned_through(resource: &Resource, behaviour: &Behaviour, part: Part) -> Option<Filter> {
    let has_status = resource
        .subresources
        .iter()
        .any(|subresource| subresource.name == "status");

    let everywhere: &[&str] = match part {
        Part::Main if has_status => &["status"],
        Part::Status | Part::Approval => &["spec"],
        Part::Finalize => &["status"],
        Part::EphemeralContainers => {
            return Some(Filter::Only(vec![steps(&["spec", "ephemeralContainers"])]));
        }
        Part::Resize => {
            let of = |list| {
                ["resources", "resizePolicy"].map(|field| steps(&["spec", list, ANY, field]))
            };
            return Some(Filter::Only(
                ["containers", "initContainers"]
                    .into_iter()
                    .flat_map(of)
                    .collect(),
            ));
        }
        _ => return None,
    };

    let more = behaviour
        .reset_fields
        .iter()
        .filter(|(own, _)| *own == part);
    let paths = everywhere.iter().map(|field| FieldPath::fields(&[field]));
    let paths =
        paths.chain(more.flat_map(|(_, fields)| fields.iter().map(|path| FieldPath::fields(path))));

    Some(Filter::Without(Set::of(paths)))
}

/// Every element of a list.
const ANY: &str = "*";

fn steps(path: &[&'static str]) -> Vec<Step> {
    let step = |name: &&'static str| match *name {
        ANY => Step::Any,
        name => Step::Element(Element::Field(Text::const_new(name))),
    };
    path.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use coracle_api::catalog::BUILTIN;

    use super::*;
    use crate::behaviour;

    #[test]
    fn fields_that_a_part_does_not_write_are_reset() {
        let check = |plural: &str, part: Part, reset: &[&[&str]]| {
            let resource = BUILTIN
                .resources()
                .iter()
                .find(|resource| resource.plural == plural)
                .unwrap();

            let paths = reset.iter().map(|path| FieldPath::fields(path));
            assert_eq!(
                owned_through(resource, behaviour(&resource.group, plural), part),
                Some(Filter::Without(Set::of(paths))),
                "{plural}"
            );
        };

        check("deployments", Part::Main, &[&["status"]]);
        check(
            "deployments",
            Part::Status,
            &[&["spec"], &["metadata", "labels"]],
        );

        check("statefulsets", Part::Status, &[&["spec"]]);
        check(
            "certificatesigningrequests",
            Part::Main,
            &[&["spec"], &["status"]],
        );

        check(
            "certificatesigningrequests",
            Part::Approval,
            &[&["spec"], &["status", "certificate"]],
        );

        check("namespaces", Part::Finalize, &[&["status"]]);
        let config_maps = BUILTIN.resource("", "v1", "configmaps").unwrap();
        assert_eq!(
            owned_through(config_maps, behaviour("", "configmaps"), Part::Main),
            None
        );
    }
}
