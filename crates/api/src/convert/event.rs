//! Events: one stored form, served by two groups with different field names.

use super::rename;
use crate::Map;

/// Names in `events.k8s.io`, and in the core group.
const NAMES: [(&str, &str); 7] = [
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
];

pub(super) fn to_core(object: &mut Map) {
    for (ours, core) in NAMES {
        rename(object, ours, core);
    }
}

pub(super) fn from_core(object: &mut Map) {
    for (ours, core) in NAMES {
        rename(object, core, ours);
    }
}
