//! Scale: a subresource of many kinds. The catalogue has columns of resources only, so its columns
//! are here.

use coracle_api::Text;
use coracle_api::catalog::{Column, Described};
use coracle_api::time::Timestamp;
use k8s_openapi::api::autoscaling::v1::Scale;

use crate::print::cells::{age, name};
use crate::print::{Printer, Row};

pub const PRINTER: Option<Printer> = printer!(print_row);

pub static COLUMNS: [Column; 4] = [
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

fn print_row(scale: &Scale, now: Timestamp) -> Row {
    row![
        name(&scale.metadata),
        scale
            .spec
            .as_ref()
            .and_then(|spec| spec.replicas)
            .unwrap_or_default(),
        scale.status.as_ref().map_or(0, |status| status.replicas),
        age(&scale.metadata, now)
    ]
}
