//! Exceptions from the rule "a field is removed while its gate is off".

use super::states::is_on;
use crate::catalog::{FieldRef, Struct, gate};

/// How a field is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Fields of the same non-empty name are kept together: one that is in use keeps all.
    pub(super) together: &'static str,
    pub(super) when: When,
    /// A parent that is empty without the field is removed too.
    pub(super) with_empty_parent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// Only if the value has a string of that name.
    Has(&'static str),
}

/// A row of the table below.
struct Exception {
    of: &'static str,
    field: &'static str,
    /// The gate that controls it. `None`: the field is never removed.
    gate: Option<&'static str>,
    /// The only kind whose objects lose it; empty: all.
    kind: &'static str,
    rule: Rule,
}

const PLAIN: Rule = Rule {
    together: "",
    when: When::Always,
    with_empty_parent: false,
};
const LIST_ATTRIBUTES: Rule = Rule {
    together: "list attributes",
    ..PLAIN
};
/// The gate of removed features.
const GONE: &str = "";

const fn kept(of: &'static str, field: &'static str) -> Exception {
    Exception {
        of,
        field,
        gate: None,
        kind: "",
        rule: PLAIN,
    }
}

const fn removed(
    of: &'static str,
    field: &'static str,
    gate: &'static str,
    rule: Rule,
) -> Exception {
    Exception {
        of,
        field,
        gate: Some(gate),
        kind: "",
        rule,
    }
}

const EXCEPTIONS: [Exception; 13] = [
    // A node's report of its containers is kept; what the spec requests is removed, with the
    // lifecycle around it if that is otherwise empty.
    kept("core.v1.ContainerStatus", "stopSignal"),
    removed(
        "core.v1.Lifecycle",
        "stopSignal",
        "ContainerStopSignals",
        Rule {
            with_empty_parent: true,
            ..PLAIN
        },
    ),
    // The descriptions call its gate by another name.
    removed(
        "core.v1.VolumeProjection",
        "podCertificate",
        "PodCertificateRequest",
        PLAIN,
    ),
    // The whole status of the mount is removed, which has nothing else.
    kept("core.v1.VolumeStatus", "image"),
    removed(
        "core.v1.VolumeMountStatus",
        "volumeStatus",
        "ImageVolumeWithDigest",
        PLAIN,
    ),
    // A claim without its source is better than one with a source in another namespace. Claims
    // inside of other objects are checked when they are created.
    kept("core.v1.TypedObjectReference", "namespace"),
    Exception {
        kind: "PersistentVolumeClaim",
        ..removed(
            "core.v1.PersistentVolumeClaimSpec",
            "dataSourceRef",
            "CrossNamespaceVolumeDataSource",
            Rule {
                when: When::Has("namespace"),
                ..PLAIN
            },
        )
    },
    removed(
        "resource.v1.DeviceAttribute",
        "bools",
        "DRAListTypeAttributes",
        LIST_ATTRIBUTES,
    ),
    removed(
        "resource.v1.DeviceAttribute",
        "ints",
        "DRAListTypeAttributes",
        LIST_ATTRIBUTES,
    ),
    removed(
        "resource.v1.DeviceAttribute",
        "strings",
        "DRAListTypeAttributes",
        LIST_ATTRIBUTES,
    ),
    removed(
        "resource.v1.DeviceAttribute",
        "versions",
        "DRAListTypeAttributes",
        LIST_ATTRIBUTES,
    ),
    removed("core.v1.NodeSpec", "configSource", GONE, PLAIN),
    removed("core.v1.NodeStatus", "config", GONE, PLAIN),
];

/// How a field of a type is removed from objects of a kind. `None`: it stays.
pub(super) fn of(declared: Struct<'_>, field: FieldRef<'_>, kind: &str) -> Option<Rule> {
    let special =
        |other: &&Exception| other.field == field.name() && other.of == declared.declared.name;
    if let Some(exception) = EXCEPTIONS.iter().find(special) {
        let everywhere = exception.kind.is_empty() || exception.kind == kind;
        return exception
            .gate
            .filter(|gate| is_off(gate) && everywhere)
            .map(|_| exception.rule);
    }

    field
        .extra()
        .gates
        .iter()
        .any(|gate| is_off(gate))
        .then_some(PLAIN)
}

/// Names that are no gates belong to features that are always on.
fn is_off(name: &str) -> bool {
    name == GONE || gate(name).is_some_and(|_| !is_on(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::BUILTIN;

    #[test]
    fn every_exception_is_about_a_field_that_exists_and_a_gate_that_does() {
        for exception in &EXCEPTIONS {
            let of = BUILTIN
                .type_named(exception.of)
                .unwrap_or_else(|| panic!("{}", exception.of));
            assert!(
                of.field(exception.field).is_some(),
                "{}.{}",
                exception.of,
                exception.field
            );

            if let Some(name) = exception.gate {
                assert!(name == GONE || gate(name).is_some(), "{name}");
            }
        }
    }
}
