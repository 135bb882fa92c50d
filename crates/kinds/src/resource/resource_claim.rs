//! ResourceClaim: the devices that a pod needs. Not validated yet.

use coracle_api::time::Timestamp;
use k8s_openapi::api::resource::v1::ResourceClaim;

use crate::Part;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells::{age, name};

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    printer: printer!(print_row),
    reset_fields: &[(Part::Status, &[&["metadata"]])],
    ..Behaviour::DEFAULT
};

fn print_row(claim: &ResourceClaim, now: Timestamp) -> Row {
    row![
        name(&claim.metadata),
        state(claim).join(","),
        age(&claim.metadata, now)
    ]
}

fn state(claim: &ResourceClaim) -> Vec<&'static str> {
    let status = claim.status.as_ref();
    let deleted = claim.metadata.deletion_timestamp.is_some();
    let allocated = status.is_some_and(|status| status.allocation.is_some());
    let reserved = allocated
        && status
            .iter()
            .flat_map(|status| status.reserved_for.iter().flatten())
            .count()
            > 0;

    let states = [
        ("deleted", deleted),
        ("pending", !allocated && !deleted),
        ("allocated", allocated),
        ("reserved", reserved),
    ];

    states
        .into_iter()
        .filter(|(_, holds)| *holds)
        .map(|(state, _)| state)
        .collect()
}
