//! Which build this is, and what its registry holds.

use std::collections::BTreeMap;

use crate::{Beta, Kind, Registry};

/// The build as `/version` shows it.
#[derive(Clone, Copy, Debug)]
pub struct BuildInfo {
    pub major: &'static str,
    pub minor: &'static str,
    pub git_version: &'static str,
    pub git_commit: &'static str,
    pub git_tree_state: &'static str,
    pub build_date: &'static str,
    /// What upstream's build shows as the version of Go.
    pub go_version: &'static str,
    pub compiler: &'static str,
    pub platform: &'static str,
}

/// Adds `kubernetes_build_info` and `registered_metrics_total` to a registry.
pub fn register(registry: &Registry, build: BuildInfo) {
    registry.read(
        Beta,
        "kubernetes_build_info",
        Kind::Gauge,
        "The build as labels; always 1.",
        [
            "major",
            "minor",
            "git_version",
            "git_commit",
            "git_tree_state",
            "build_date",
            "go_version",
            "compiler",
            "platform",
        ],
        move |reading| {
            let labels = [
                build.major,
                build.minor,
                build.git_version,
                build.git_commit,
                build.git_tree_state,
                build.build_date,
                build.go_version,
                build.compiler,
                build.platform,
            ];
            reading.add(&labels, 1.0);
        },
    );

    // Weak: the registry holds what reads it.
    let weak = registry.downgrade();
    registry.read(
        Beta,
        "registered_metrics_total",
        Kind::Counter,
        "Number of registered metrics by stability.",
        ["stability_level", "deprecated_version"],
        move |reading| {
            let mut counts = BTreeMap::new();
            for entry in weak.upgrade().iter().flat_map(Registry::entries) {
                *counts.entry(entry.stability.name()).or_insert(0) += 1;
            }

            for (stability, count) in counts.into_iter().filter(|(name, _)| !name.is_empty()) {
                reading.add_count(&[stability, ""], count);
            }
        },
    );
}
