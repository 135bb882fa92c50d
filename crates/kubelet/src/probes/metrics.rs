//! Metrics of probes, with upstream's names. They are on a page of their own, `/metrics/probes`,
//! because their labels name pods; the series of a pod go with it.

use std::time::Duration;

use coracle_api::Text;
use coracle_metrics::{Alpha, Beta, Buckets, Counters, Histograms, metrics};

use super::ProbeKind;
use super::outcome::Outcome;

metrics! {
    pub(super) struct ProbeMetrics {
        probes: Counters<ProbeSeries> = counters(
            Beta,
            "prober_probe_total",
            "Number of probes of a container by result.",
            ["container", "namespace", "pod", "pod_uid", "probe_type", "result"],
        ),
        durations: Histograms<ProbedContainer> = histograms(
            Alpha,
            "prober_probe_duration_seconds",
            "Duration of probes that did not fail in seconds.",
            ["container", "namespace", "pod", "probe_type"],
            Buckets::default_seconds(),
        ),
    }
}

/// The probe of a container, for metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ProbedContainer {
    pub(super) container: Text,
    pub(super) namespace: Text,
    pub(super) pod: Text,
    pub(super) uid: Text,
    pub(super) kind: ProbeKind,
}

/// A probe, and a result.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ProbeSeries(ProbedContainer, &'static str);

const RESULTS: [&str; 3] = ["successful", "failed", "unknown"];

impl coracle_metrics::Labels for ProbedContainer {
    fn values(&self) -> Vec<std::borrow::Cow<'_, str>> {
        vec![
            self.container.as_str().into(),
            self.namespace.as_str().into(),
            self.pod.as_str().into(),
            self.kind.name().into(),
        ]
    }
}

impl coracle_metrics::Labels for ProbeSeries {
    fn values(&self) -> Vec<std::borrow::Cow<'_, str>> {
        let ProbeSeries(probed, result) = self;
        vec![
            probed.container.as_str().into(),
            probed.namespace.as_str().into(),
            probed.pod.as_str().into(),
            probed.uid.as_str().into(),
            probed.kind.name().into(),
            (*result).into(),
        ]
    }
}

impl ProbeMetrics {
    pub(super) fn probed(&self, probed: &ProbedContainer, outcome: &Outcome, took: Duration) {
        let [successful, failed, unknown] = RESULTS;
        let result = match outcome {
            Outcome::Passed | Outcome::Warned(_) => successful,
            Outcome::Failed(_) => failed,
            Outcome::Error { .. } => unknown,
        };
        self.probes.of(&ProbeSeries(probed.clone(), result)).inc();
        if result != failed {
            self.durations.of(probed).took(took);
        }
    }

    /// The pod is gone.
    pub(super) fn remove(&self, probed: &ProbedContainer) {
        for result in RESULTS {
            self.probes.remove(&ProbeSeries(probed.clone(), result));
        }
        self.durations.remove(probed);
    }
}

#[cfg(test)]
mod tests {
    use coracle_metrics::Registry;

    use super::*;

    #[test]
    fn the_series_of_a_pod_go_with_it() {
        let registry = Registry::default();
        let metrics = ProbeMetrics::new(&registry);
        let probed = ProbedContainer {
            container: Text::new("c"),
            namespace: Text::new("n"),
            pod: Text::new("p"),
            uid: Text::new("u"),
            kind: ProbeKind::Liveness,
        };
        metrics.probed(&probed, &Outcome::Passed, Duration::from_millis(20));
        metrics.probed(&probed, &Outcome::Failed(String::new()), Duration::ZERO);

        let page = registry.text();
        for line in [
            "prober_probe_total{container=\"c\",namespace=\"n\",pod=\"p\",pod_uid=\"u\",probe_type=\"Liveness\",result=\"failed\"} 1\n",
            "prober_probe_duration_seconds_count{container=\"c\",namespace=\"n\",pod=\"p\",probe_type=\"Liveness\"} 1\n",
        ] {
            assert!(page.contains(line), "{line}{page}");
        }

        metrics.remove(&probed);
        assert!(!registry.text().contains("container="));
    }
}
