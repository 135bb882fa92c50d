//! Which feature gates are on.
//!
//! Every gate of upstream is known, with its stage and its default state. A program sets what its
//! `--feature-gates` says once, before anything else: [`is_on`] is asked everywhere.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::catalog::{Gate, Stage, gate};

/// Gates that stand for all of a stage that are not named.
const ALL: [(&str, Stage); 2] = [("AllAlpha", Stage::Alpha), ("AllBeta", Stage::Beta)];

/// Gates that need others.
const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("ClusterTrustBundleProjection", &["ClusterTrustBundle"]),
    (
        "DRADeviceBindingConditions",
        &["DRAResourceClaimDeviceStatus"],
    ),
    ("DRADeviceTaintRules", &["DRADeviceTaints"]),
    (
        "DRAResourceClaimGranularStatusAuthorization",
        &["DRAResourceClaimDeviceStatus"],
    ),
    ("DRAWorkloadResourceClaims", &["GenericWorkload"]),
    ("ExtendWebSocketsToKubelet", &["NodeDeclaredFeatures"]),
    ("GangScheduling", &["GenericWorkload"]),
    (
        "GracefulNodeShutdownBasedOnPodPriority",
        &["GracefulNodeShutdown"],
    ),
    (
        "InPlacePodLevelResourcesVerticalScaling",
        &["PodLevelResources", "NodeDeclaredFeatures"],
    ),
    (
        "InPlacePodVerticalScalingInitContainers",
        &["NodeDeclaredFeatures"],
    ),
    (
        "MatchLabelKeysInPodTopologySpreadSelectorMerge",
        &["MatchLabelKeysInPodTopologySpread"],
    ),
    ("PodLevelResourceManagers", &["PodLevelResources"]),
    ("ResourceHealthStatusMessage", &["ResourceHealthStatus"]),
    (
        "RestartAllContainersOnContainerExits",
        &["ContainerRestartRules", "NodeDeclaredFeatures"],
    ),
    ("StaleControllerConsistencyDaemonSet", &["AtomicFIFO"]),
    ("StaleControllerConsistencyJob", &["AtomicFIFO"]),
    ("StaleControllerConsistencyReplicaSet", &["AtomicFIFO"]),
    ("StaleControllerConsistencyStatefulSet", &["AtomicFIFO"]),
    ("StorageVersionAPI", &["APIServerIdentity"]),
    ("TopologyAwareWorkloadScheduling", &["GenericWorkload"]),
    (
        "UnknownVersionInteroperabilityProxy",
        &["APIServerIdentity"],
    ),
    (
        "UserNamespacesHostNetworkSupport",
        &["NodeDeclaredFeatures"],
    ),
    ("WindowsGracefulNodeShutdown", &["GracefulNodeShutdown"]),
    ("WorkloadAwarePreemption", &["GangScheduling"]),
    ("WorkloadWithJob", &["GenericWorkload"]),
];

/// The states that were asked for; all other gates have their default state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureGates {
    asked: BTreeMap<String, bool>,
}

static STATES: OnceLock<FeatureGates> = OnceLock::new();

/// Whether a feature is on in this process.
pub fn is_on(name: &str) -> bool {
    match STATES.get() {
        Some(states) => states.is_on(name),
        None => gate(name).is_some_and(|gate| gate.default),
    }
}

/// Sets the gates of this process; the first call counts.
pub fn set(states: FeatureGates) {
    // A second program in the same process has the gates of the first.
    drop(STATES.set(states));
}

impl FeatureGates {
    /// Reads what was asked for.
    ///
    /// # Errors
    /// A gate is unknown or locked, or needs another one that is off; in upstream's words.
    pub fn new(asked: &BTreeMap<String, bool>) -> Result<FeatureGates, Vec<String>> {
        let mut errors = Vec::new();
        for (name, state) in asked {
            if ALL.iter().any(|(all, _)| all == name) {
                continue;
            }
            match gate(name) {
                None => return Err(vec![format!("unrecognized feature gate: {name}")]),
                Some(gate) if gate.locked && gate.default != *state => errors.push(format!(
                    "cannot set feature gate {name} to {state}, feature is locked to {}",
                    gate.default
                )),
                Some(_) => {}
            }
        }

        let states = FeatureGates {
            asked: asked.clone(),
        };
        if errors.is_empty() {
            errors = states.missing();
        }
        match errors.is_empty() {
            true => Ok(states),
            false => Err(errors),
        }
    }

    /// Whether a feature is on.
    pub fn is_on(&self, name: &str) -> bool {
        if let Some(state) = self.asked.get(name) {
            return *state;
        }
        let Some(gate) = gate(name) else {
            return false;
        };
        self.of_stage(gate).unwrap_or(gate.default)
    }

    /// The state that was asked for all gates of its stage.
    fn of_stage(&self, gate: &Gate) -> Option<bool> {
        let (all, _) = ALL.iter().find(|(_, stage)| *stage == gate.stage)?;
        self.asked.get(*all).copied().filter(|_| !gate.locked)
    }

    /// What gates that are on need.
    fn missing(&self) -> Vec<String> {
        let on = DEPENDENCIES.iter().filter(|(name, _)| self.is_on(name));
        on.filter_map(|(name, needed)| {
            let off: Vec<&str> = needed
                .iter()
                .copied()
                .filter(|name| !self.is_on(name))
                .collect();
            (!off.is_empty()).then(|| {
                let off = off.join(" ");
                format!("{name} is enabled, but depends on features that are disabled: [{off}]")
            })
        })
        .collect()
    }

    /// The gates that were set although their stage says that they will go.
    pub fn warnings(&self) -> Vec<String> {
        let set = self.asked.iter().filter_map(|(name, state)| {
            let stage = match gate(name)?.stage {
                Stage::Ga => "GA",
                Stage::Deprecated => "deprecated",
                Stage::Alpha | Stage::Beta => return None,
            };
            Some(format!(
                "setting {stage} feature gate {name}={state}; it will be removed in a future release"
            ))
        });
        set.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FeatureGates, Vec<String>> {
        let pairs = text.split(',').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap());
        let asked = pairs.map(|(name, state)| (name.to_owned(), state == "true"));
        FeatureGates::new(&asked.collect())
    }

    #[test]
    fn a_gate_has_the_state_that_was_asked_for_or_its_default() {
        let check = |text: &str, name: &str, expected: bool| {
            assert_eq!(read(text).unwrap().is_on(name), expected, "{text} {name}");
        };

        check("", "NodeDeclaredFeatures", true);
        check("", "ClusterTrustBundle", false);
        check("ClusterTrustBundle=true", "ClusterTrustBundle", true);
        check("AllBeta=true", "ClusterTrustBundle", true);
        check(
            "AllBeta=true,ClusterTrustBundle=false,ClusterTrustBundleProjection=false",
            "ClusterTrustBundle",
            false,
        );
        check("AllAlpha=true", "CBORServingAndStorage", true);
        check("AllAlpha=true", "ClusterTrustBundle", false);
        check("", "NoSuchGate", false);
    }

    #[test]
    fn gates_are_refused_in_upstreams_words() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(read(text).unwrap_err(), expected, "{text}");
        };

        check(
            "NoSuchGate=true",
            &["unrecognized feature gate: NoSuchGate"],
        );
        check(
            "InPlacePodVerticalScaling=false",
            &[
                "cannot set feature gate InPlacePodVerticalScaling to false, feature is locked to true",
            ],
        );
        check(
            "GangScheduling=true",
            &[
                "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
            ],
        );
        check(
            "AllBeta=true,ClusterTrustBundle=false",
            &[
                "ClusterTrustBundleProjection is enabled, but depends on features that are disabled: [ClusterTrustBundle]",
            ],
        );
        assert!(read("GangScheduling=true,GenericWorkload=true").is_ok());
        assert!(read("InPlacePodVerticalScaling=true").is_ok());
        assert!(read("AllAlpha=true").is_ok());
    }

    #[test]
    fn gates_that_will_go_are_warned_about() {
        let warnings = read("InPlacePodVerticalScaling=true,ClusterTrustBundle=true").unwrap();
        assert_eq!(
            warnings.warnings(),
            [
                "setting GA feature gate InPlacePodVerticalScaling=true; it will be removed in a future release"
            ]
        );
    }

    #[test]
    fn gates_that_need_others_exist() {
        for (name, needed) in DEPENDENCIES {
            let all = std::iter::once(name).chain(needed.iter());
            all.for_each(|name| assert!(gate(name).is_some(), "{name}"));
        }
    }
}
