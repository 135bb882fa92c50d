//! Filters of list calls: an empty filter matches everything.

use std::collections::HashMap;

pub(crate) fn labels_match(
    labels: &HashMap<String, String>,
    selector: &HashMap<String, String>,
) -> bool {
    selector
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value))
}

/// IDs may be abbreviated.
pub(crate) fn id_matches(id: &str, wanted: &str) -> bool {
    id.starts_with(wanted)
}
