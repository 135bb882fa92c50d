//! Where upstream's rule is not "this field goes while its gate is off".

use crate::catalog::{FieldRef, Struct, gate};

/// How a field goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Fields of one name here are kept together: one that is in use keeps all.
    pub(super) together: &'static str,
    pub(super) when: When,
    /// What is empty without the field goes too.
    pub(super) with_empty_parent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Always,
    /// Only if the value has a text of that name.
    Has(&'static str),
}

/// A line of the table below.
struct Exception {
    of: &'static str,
    field: &'static str,
    /// The gate that it goes by. None: the field stays, whatever its own gate says.
    gate: Option<&'static str>,
    /// The only kind in whose objects it goes; empty: all.
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
/// The gate of features that are gone for good.
const GONE: &str = "";

const fn stays(of: &'static str, field: &'static str) -> Exception {
    Exception {
        of,
        field,
        gate: None,
        kind: "",
        rule: PLAIN,
    }
}

const fn goes(of: &'static str, field: &'static str, gate: &'static str, rule: Rule) -> Exception {
    Exception {
        of,
        field,
        gate: Some(gate),
        kind: "",
        rule,
    }
}

const EXCEPTIONS: [Exception; 13] = [
    // What a node reports of its containers is shown; what is asked of it goes, and the hooks
    // around it if it was asked for alone.
    stays("core.v1.ContainerStatus", "stopSignal"),
    goes(
        "core.v1.Lifecycle",
        "stopSignal",
        "ContainerStopSignals",
        Rule {
            with_empty_parent: true,
            ..PLAIN
        },
    ),
    // Its own gate has another name in the descriptions.
    goes(
        "core.v1.VolumeProjection",
        "podCertificate",
        "PodCertificateRequest",
        PLAIN,
    ),
    // The whole status of a mount goes, which has nothing else to say.
    stays("core.v1.VolumeStatus", "image"),
    goes(
        "core.v1.VolumeMountStatus",
        "volumeStatus",
        "ImageVolumeWithDigest",
        PLAIN,
    ),
    // A claim without its source is better than one from another namespace's. Claims inside of
    // other objects are looked at when they are made.
    stays("core.v1.TypedObjectReference", "namespace"),
    Exception {
        kind: "PersistentVolumeClaim",
        ..goes(
            "core.v1.PersistentVolumeClaimSpec",
            "dataSourceRef",
            "CrossNamespaceVolumeDataSource",
            Rule {
                when: When::Has("namespace"),
                ..PLAIN
            },
        )
    },
    goes(
        "resource.v1.DeviceAttribute",
        "bools",
        "DRAListTypeAttributes",
        LIST_ATTRIBUTES,
    ),
    goes(
        "resource.v1.DeviceAttribute",
        "ints",
        "DRAListTypeAttributes",
        LIST_ATTRIBUTES,
    ),
    goes(
        "resource.v1.DeviceAttribute",
        "strings",
        "DRAListTypeAttributes",
        LIST_ATTRIBUTES,
    ),
    goes(
        "resource.v1.DeviceAttribute",
        "versions",
        "DRAListTypeAttributes",
        LIST_ATTRIBUTES,
    ),
    goes("core.v1.NodeSpec", "configSource", GONE, PLAIN),
    goes("core.v1.NodeStatus", "config", GONE, PLAIN),
];

/// How a field of a type goes from objects of a kind. None: it stays.
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

/// Names that are no gates any more belong to features that are always on.
fn is_off(name: &str) -> bool {
    name == GONE || gate(name).is_some_and(|gate| !gate.default)
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
