//! The metric of feature gates.

use coracle_api::catalog::{Stage, gates};
use coracle_api::gates::is_on;
use coracle_metrics::{Beta, Kind, Registry};

/// Adds `kubernetes_feature_enabled` to the registry of a component.
pub fn register(registry: &Registry) {
    registry.read(
        Beta,
        "kubernetes_feature_enabled",
        Kind::Gauge,
        "Whether a feature gate is on; its stage is empty for one that is generally available.",
        ["name", "stage"],
        |reading| {
            for gate in gates() {
                let stage = match gate.stage {
                    Stage::Alpha => "ALPHA",
                    Stage::Beta => "BETA",
                    Stage::Ga => "",
                    Stage::Deprecated => "DEPRECATED",
                };
                reading.add(&[&gate.name, stage], f64::from(u8::from(is_on(&gate.name))));
            }
        },
    );
}
