//! One way to check a row, for the tables of every group.

use coracle_api::codec::json;
use coracle_api::time::{Time, Timestamp};

use super::printers;

/// Noon of the first of March 2026.
pub(super) fn noon() -> Timestamp {
    Time::parse("2026-03-01T12:00:00Z").unwrap().0
}

/// Compares the cells of an object, all in one line, with ` | ` between them.
pub(super) fn check(group: &str, kind: &str, object: &str, expected: &str) {
    assert_eq!(cells(group, kind, object), expected, "{object}");
}

pub(super) fn cells(group: &str, kind: &str, object: &str) -> String {
    let printer =
        printers::by_name(group, kind).unwrap_or_else(|| panic!("{group}/{kind} has no printer"));
    let row = printer(&json::parse(object.as_bytes()).unwrap(), noon()).unwrap();
    let cell = |cell: &coracle_api::Value| {
        cell.as_str()
            .map_or_else(|| json::to_string(cell), str::to_string)
    };
    row.cells.iter().map(cell).collect::<Vec<_>>().join(" | ")
}
