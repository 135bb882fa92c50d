//! What a write cannot change, and so nobody owns through it: one table for all kinds.
//!
//! A write of the object leaves the status alone, a write of the status the rest; some kinds do
//! otherwise, and here is which. This is about owners only, and upstream declares it apart from
//! what its strategies carry over: a StatefulSet's labels, say, can be changed through its status.

use coracle_api::Text;
use coracle_api::apply::{Element, FieldPath, Filter, Set, Step};
use coracle_api::catalog::Resource;

use super::{Part, Scope};

/// Fields of a part of a kind that upstream resets, beside those that it resets in every kind.
const MORE: &[(&str, &str, Part, &[&[&str]])] = &[
    (
        "",
        "pods",
        Part::Status,
        &[
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ],
    ),
    (
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
        Part::Status,
        METADATA,
    ),
    (
        "apiregistration.k8s.io",
        "apiservices",
        Part::Status,
        METADATA,
    ),
    (
        "apps",
        "deployments",
        Part::Status,
        &[&["metadata", "labels"]],
    ),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        Part::Main,
        &[&["spec"]],
    ),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        Part::Status,
        &[&["status", "conditions"]],
    ),
    (
        "certificates.k8s.io",
        "certificatesigningrequests",
        Part::Approval,
        &[&["status", "certificate"]],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "flowschemas",
        Part::Status,
        METADATA,
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "prioritylevelconfigurations",
        Part::Status,
        METADATA,
    ),
    ("networking.k8s.io", "servicecidrs", Part::Status, METADATA),
    ("resource.k8s.io", "resourceclaims", Part::Status, METADATA),
    (
        "storage.k8s.io",
        "volumeattachments",
        Part::Status,
        METADATA,
    ),
];

const METADATA: &[&[&str]] = &[&["metadata"]];

/// Which fields may be owned through a write of this part; `None`: all.
pub(super) fn filter(scope: &Scope<'_>, part: Part) -> Option<Filter> {
    match (scope.custom, part) {
        (Some(_), Part::Status) => Some(Filter::Only(vec![steps(&["status"])])),
        _ => of_resource(scope.resource, part),
    }
}

fn of_resource(resource: &Resource, part: Part) -> Option<Filter> {
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

    let more = MORE.iter().filter(|(group, plural, of, _)| {
        resource.group == *group && resource.plural == *plural && part == *of
    });
    let paths = everywhere.iter().map(|field| FieldPath::fields(&[field]));
    let paths = paths
        .chain(more.flat_map(|(.., fields)| fields.iter().map(|path| FieldPath::fields(path))));

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
    use super::*;
    use coracle_api::catalog::BUILTIN;

    #[test]
    fn every_line_is_about_a_part_that_is_served() {
        for (group, plural, part, _) in MORE {
            let served = BUILTIN.resources().iter().any(|resource| {
                let has = |name: &str| resource.subresources.iter().any(|other| other.name == name);
                resource.group == *group
                    && resource.plural == *plural
                    && (*part == Part::Main || has(part.name()))
            });
            assert!(served, "{plural} of {group:?}");
        }
    }

    #[test]
    fn a_part_resets_what_it_leaves_alone() {
        let check = |plural: &str, part: Part, reset: &[&[&str]]| {
            let resource = BUILTIN
                .resources()
                .iter()
                .find(|resource| resource.plural == plural)
                .unwrap();

            let paths = reset.iter().map(|path| FieldPath::fields(path));
            assert_eq!(
                of_resource(resource, part),
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
        assert_eq!(of_resource(config_maps, Part::Main), None);
    }
}
