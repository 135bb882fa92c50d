//! Flags that upstream's components share and that do not exist here.

use coracle_settings::{Omission, Treatment};

/// Flags of the log.
pub(crate) const LOGGING: &[Omission] = &[Omission {
    why: "log lines are not buffered",
    treatment: Treatment::Ignored,
    switches: &["log-json-split-stream", "log-text-split-stream"],
    values: &[
        "log-flush-frequency",
        "log-json-info-buffer-size",
        "log-text-info-buffer-size",
    ],
    keys: &["logging.flushFrequency", "logging.options"],
}];

/// Flags that select metrics.
pub(crate) const METRICS: &[Omission] = &[Omission {
    why: "metrics cannot be selected",
    values: &[
        "allow-metric-labels",
        "allow-metric-labels-manifest",
        "disabled-metrics",
    ],
    ..Omission::NONE
}];

/// Flags of metrics that are about to be removed.
pub(crate) const HIDDEN_METRICS: &[Omission] = &[Omission {
    why: "no metric is hidden",
    treatment: Treatment::Only(&["", "1.35"]),
    values: &["show-hidden-metrics-for-version"],
    keys: &["showHiddenMetricsForVersion"],
    ..Omission::NONE
}];

/// Flags of profiles.
pub(crate) const PROFILING: &[Omission] = &[Omission {
    why: "there are no profiles of a Go program",
    treatment: Treatment::Ignored,
    switches: &["profiling", "contention-profiling"],
    keys: &["enableProfiling", "enableContentionProfiling"],
    ..Omission::NONE
}];

/// Flags of an HTTPS port.
pub(crate) const SERVING: &[Omission] = &[Omission {
    why: "the address can always be shared: SO_REUSEADDR is set",
    treatment: Treatment::Ignored,
    switches: &["permit-address-sharing"],
    ..Omission::NONE
}];

/// Flags of versions and feature gates.
pub(crate) const VERSIONS: &[Omission] = &[
    Omission {
        why: "only Kubernetes v1.36 is emulated",
        treatment: Treatment::Only(&["", "1.36", "kube=1.36"]),
        values: &["emulated-version"],
        ..Omission::NONE
    },
    Omission {
        why: "components of v1.35 and v1.36 can use one cluster",
        treatment: Treatment::Only(&["", "1.35", "kube=1.35", "1.36", "kube=1.36"]),
        values: &["min-compatibility-version"],
        ..Omission::NONE
    },
];
