//! Flags that upstream's components share and that do not exist here.

use coracle_settings::{Omission, Treatment};

/// Flags of the log.
pub(crate) const LOGGING: &[Omission] = &[
    Omission {
        why: "the log is text on standard error, written at once",
        treatment: Treatment::Only(&["text"]),
        values: &["logging-format"],
        keys: &["logging.format"],
        ..Omission::NONE
    },
    Omission {
        why: "log lines are not buffered",
        treatment: Treatment::Ignored,
        switches: &["log-json-split-stream", "log-text-split-stream"],
        values: &[
            "log-flush-frequency",
            "log-json-info-buffer-size",
            "log-text-info-buffer-size",
        ],
        keys: &["logging.flushFrequency", "logging.options"],
    },
];

/// Flags that select metrics.
pub(crate) const METRICS: &[Omission] = &[Omission {
    why: "metrics cannot be selected",
    values: &[
        "allow-metric-labels",
        "allow-metric-labels-manifest",
        "disabled-metrics",
        "show-hidden-metrics-for-version",
    ],
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
pub(crate) const SERVING: &[Omission] = &[
    Omission {
        why: "cipher suites and curves are those of the TLS library, all of which are considered secure",
        values: &["tls-cipher-suites", "tls-curve-preferences"],
        ..Omission::NONE
    },
    Omission {
        why: "there is one serving certificate",
        values: &["tls-sni-cert-key"],
        ..Omission::NONE
    },
    Omission {
        why: "the port is not shared with other processes",
        treatment: Treatment::Only(&["false"]),
        switches: &["permit-address-sharing", "permit-port-sharing"],
        ..Omission::NONE
    },
];

/// Flags of versions and feature gates.
pub(crate) const VERSIONS: &[Omission] = &[Omission {
    why: "only Kubernetes v1.36 is emulated",
    values: &["emulated-version", "min-compatibility-version"],
    ..Omission::NONE
}];
