//! The probe state of one running container instance.

use std::collections::BTreeMap;
use std::future::Future;

use coracle_api::time::Timestamp;
use coracle_client::Tasks;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, Probe};

use super::ProbeKind;
use crate::pod::{Kind, PodView as _};

/// One instance of a container with probes.
pub(super) struct Instance {
    pub(super) kind: Kind,
    pub(super) container: Container,
    pub(super) id: String,
    /// When it started.
    pub(super) since: Timestamp,
    /// The last result that reached its threshold.
    results: BTreeMap<ProbeKind, bool>,
    /// Running probe tasks; dropping stops them.
    tasks: BTreeMap<ProbeKind, Tasks>,
}

impl Instance {
    /// The probes of a container.
    pub(super) fn probes_of(container: &Container) -> Vec<ProbeKind> {
        let probes = [
            (ProbeKind::Startup, &container.startup_probe),
            (ProbeKind::Liveness, &container.liveness_probe),
            (ProbeKind::Readiness, &container.readiness_probe),
        ];
        probes
            .into_iter()
            .filter(|(_, probe)| probe.is_some())
            .map(|(kind, _)| kind)
            .collect()
    }

    /// An instance seen for the first time. If the pod's status reports it already, its probe
    /// results are taken from there: the previous kubelet probed it. Upstream ignores the status if
    /// the instance started within ten seconds before the kubelet; then two quick restarts of the
    /// kubelet would take a new pod out of its Services.
    pub(super) fn new(
        kind: Kind,
        container: Container,
        id: String,
        since: Timestamp,
        pod: &Pod,
    ) -> Instance {
        let mut results = BTreeMap::new();
        if let Some(reported) =
            reported_status(pod, &container.name).filter(|reported| is_instance(reported, &id))
        {
            if reported.started == Some(true) {
                results.insert(ProbeKind::Startup, true);
            }
            results.insert(ProbeKind::Readiness, reported.ready);
        }

        Instance {
            kind,
            container,
            id,
            since,
            results,
            tasks: BTreeMap::new(),
        }
    }

    pub(super) fn probe(&self, kind: ProbeKind) -> Option<Probe> {
        match kind {
            ProbeKind::Startup => self.container.startup_probe.clone(),
            ProbeKind::Liveness => self.container.liveness_probe.clone(),
            ProbeKind::Readiness => self.container.readiness_probe.clone(),
        }
    }

    /// The probes to start now: startup alone until it has passed.
    pub(super) fn due(&self, is_ending: bool) -> Vec<ProbeKind> {
        let is_due = |kind: &ProbeKind| match kind {
            _ if self.tasks.contains_key(kind) => false,
            ProbeKind::Startup => !is_ending && !self.results.contains_key(&ProbeKind::Startup),
            ProbeKind::Liveness => {
                !is_ending
                    && self.is_started()
                    && self.results.get(&ProbeKind::Liveness) != Some(&false)
            }
            ProbeKind::Readiness => self.is_started(),
        };

        Instance::probes_of(&self.container)
            .into_iter()
            .filter(is_due)
            .collect()
    }

    pub(super) fn begin(
        &mut self,
        kind: ProbeKind,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        let tasks = Tasks::new();
        tasks.spawn(work);
        self.tasks.insert(kind, tasks);
    }

    pub(super) fn stop(&mut self, kind: ProbeKind) {
        self.tasks.remove(&kind);
    }

    pub(super) fn stop_all(&mut self) {
        self.tasks.clear();
    }

    /// Stores a result; returns whether it has changed.
    pub(super) fn store(&mut self, kind: ProbeKind, passed: bool) -> bool {
        // Initial results: live, and not ready.
        let initial = match kind {
            ProbeKind::Startup => None,
            ProbeKind::Liveness => Some(true),
            ProbeKind::Readiness => Some(false),
        };
        self.results.insert(kind, passed).or(initial) != Some(passed)
    }

    pub(super) fn is_started(&self) -> bool {
        self.container.startup_probe.is_none()
            || self.results.get(&ProbeKind::Startup) == Some(&true)
    }

    pub(super) fn is_ready(&self) -> bool {
        let ready = self.results.get(&ProbeKind::Readiness) == Some(&true);
        self.is_started() && (self.container.readiness_probe.is_none() || ready)
    }

    /// The failed probe that requires a kill.
    pub(super) fn failed(&self) -> Option<ProbeKind> {
        let asked = [ProbeKind::Startup, ProbeKind::Liveness];
        asked
            .into_iter()
            .find(|kind| self.results.get(kind) == Some(&false))
    }
}

/// The status of a container on the server.
fn reported_status<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.pod_status();
    let all = status
        .container_statuses
        .iter()
        .chain(&status.init_container_statuses)
        .flatten();
    let mut all = all.filter(|reported| reported.name == name);
    all.next()
}

/// `runtime://id`.
fn is_instance(reported: &ContainerStatus, id: &str) -> bool {
    let named = reported
        .container_id
        .as_deref()
        .and_then(|named| named.split_once("://"));
    named.is_some_and(|(_, named)| named == id)
}
