//! Checks the rows of kinds; used by the tests of every group.

use coracle_api::catalog::BUILTIN;
use coracle_api::codec::json;
use coracle_api::time::{Time, Timestamp};

use super::printer;

/// Noon of the first of March 2026.
pub(crate) fn noon() -> Timestamp {
    Time::parse("2026-03-01T12:00:00Z").unwrap().0
}

/// Compares the cells of an object, all in one line, with ` | ` between them.
pub(crate) fn check(group: &str, kind: &str, object: &str, expected: &str) {
    assert_eq!(cells(group, kind, object), expected, "{object}");
}

pub(crate) fn cells(group: &str, kind: &str, object: &str) -> String {
    let shows = |resource: &&coracle_api::catalog::Resource| {
        let own = resource.group == group && resource.kind == kind;
        let scale =
            |own: &coracle_api::catalog::Subresource| own.group == group && own.kind == kind;
        own || resource.subresources.iter().any(scale)
    };
    let resource = BUILTIN.resources().iter().find(shows).unwrap();
    let mut kinds = BUILTIN.kinds().iter();
    let found = kinds
        .find(|found| found.group == group && found.name == kind)
        .unwrap();
    let (printer, _) = printer(resource, found);
    let printer = printer.unwrap_or_else(|| panic!("{group}/{kind} has no printer"));

    let row = printer(&json::parse(object.as_bytes()).unwrap(), noon()).unwrap();
    let cell = |cell: &coracle_api::Value| {
        cell.as_str()
            .map_or_else(|| json::to_string(cell), str::to_string)
    };
    row.cells.iter().map(cell).collect::<Vec<_>>().join(" | ")
}
