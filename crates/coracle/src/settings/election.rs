//! Leader election among several processes of a component.

use std::time::Duration;

use coracle_client::Election;
use coracle_settings::{Part, Setting};

use crate::host;
use crate::world::WORLD;

#[derive(Clone, Debug, Default)]
pub(crate) struct ElectionOptions {
    pub(crate) enabled: bool,
    lease_duration: Duration,
    renew_deadline: Duration,
    retry_period: Duration,
    pub(crate) name: String,
    namespace: String,
}

impl ElectionOptions {
    /// The election, with an identity of this process.
    pub(crate) fn election(&self) -> Election {
        let identity = format!("{}_{}", host::name(), WORLD.uid());
        Election {
            lease_duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
            ..Election::new(&self.namespace, &self.name, &identity)
        }
    }
}

/// The settings of a component, whose name is also that of its Lease.
pub(crate) const fn election<T: Part<ElectionOptions>>(component: &'static str) -> [Setting<T>; 6] {
    [
        Setting::new(
            "leader-elect",
            "true",
            "Elect a leader among several processes of this component; only the leader works",
            |options: &mut T| &mut options.part().enabled,
        )
        .key("leaderElection.leaderElect"),
        Setting::new(
            "leader-elect-lease-duration",
            "15s",
            "Time after the last renewal when another candidate may take the Lease",
            |options: &mut T| &mut options.part().lease_duration,
        )
        .key("leaderElection.leaseDuration"),
        Setting::new(
            "leader-elect-renew-deadline",
            "10s",
            "Time in which the leader must renew the Lease before it stops leading",
            |options: &mut T| &mut options.part().renew_deadline,
        )
        .key("leaderElection.renewDeadline"),
        Setting::new(
            "leader-elect-retry-period",
            "2s",
            "Time between attempts to acquire or renew the Lease",
            |options: &mut T| &mut options.part().retry_period,
        )
        .key("leaderElection.retryPeriod"),
        Setting::new(
            "leader-elect-resource-name",
            component,
            "Name of the Lease",
            |options: &mut T| &mut options.part().name,
        )
        .key("leaderElection.resourceName"),
        Setting::new(
            "leader-elect-resource-namespace",
            "kube-system",
            "Namespace of the Lease",
            |options: &mut T| &mut options.part().namespace,
        )
        .key("leaderElection.resourceNamespace"),
    ]
}
