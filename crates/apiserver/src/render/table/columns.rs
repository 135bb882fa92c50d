//! Which columns a table has.

use coracle_api::Text;
use coracle_api::catalog::{Column, Described, Kind, Resource};

/// The columns of a kind, as a request to the resource is answered with it.
pub(super) fn of<'r>(resource: &'r Resource, kind: &Kind) -> &'r [Column] {
    match (kind.group.as_str(), kind.name.as_str()) {
        ("autoscaling", "Scale") => &SCALE,
        _ => &resource.columns,
    }
}

/// A subresource of many, so it is no resource's in the catalogue.
static SCALE: [Column; 4] = [
    column("Name", "string", "metadata.name"),
    column("Desired", "integer", "spec.replicas"),
    column("Available", "integer", "status.replicas"),
    column("Age", "string", "metadata.creationTimestamp"),
];

const fn column(name: &'static str, data_type: &'static str, field: &'static str) -> Column {
    Column {
        name: Text::const_new(name),
        data_type: Text::const_new(data_type),
        format: Text::const_new(""),
        wide: false,
        described: Described::Field(Text::const_new(field)),
    }
}
