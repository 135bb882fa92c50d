//! Leader election with a Lease.
//!
//! A candidate that finds the Lease free, or unchanged for its whole duration by the candidate's
//! own clock, writes its identity into it; the server lets one of several succeed. The leader
//! renews the Lease; when it cannot for too long, it stops, before others may take over.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::time::MicroTime;
use coracle_api::{Map, Value};
use coracle_base::sync::Mutex;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::access::Access;
use crate::client::Client;
use crate::error::Error;
use crate::events::{ObjectReference, Recorder};
use crate::metrics::ElectionMetrics;
use crate::resource::Resource;
use crate::world::World;

/// The jitter factor of the pause between two attempts to become leader.
const JITTER: f64 = 1.2;

/// The configuration of an election.
#[derive(Clone, Debug)]
pub struct Election {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// The identity of this candidate, unique among all candidates.
    pub identity: String,
    /// How long candidates wait before they take over an unchanged Lease.
    pub lease_duration: Duration,
    /// How long the leader tries to renew before it stops.
    pub renew_deadline: Duration,
    /// The pause between two attempts.
    pub retry_period: Duration,
    /// Whether a leader that stops regularly releases the Lease.
    pub release: bool,
    /// What health checks see of it.
    pub health: LeaderHealth,
}

/// The durations do not leave the leader time to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDurations {
    #[expect(missing_docs, reason = "the text says it")]
    #[error("leaseDuration must be greater than renewDeadline")]
    Deadline,
    #[expect(missing_docs, reason = "the text says it")]
    #[error("renewDeadline must be greater than retryPeriod*JitterFactor")]
    Retry,
}

/// The Lease could not be renewed: another candidate may be leader by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("leader election lost")]
pub struct Lost;

/// The last observed record, and when it was observed, by the local clock.
/// Whether the leader renews its Lease in time, for health checks. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LeaderHealth(Arc<Mutex<Option<Instant>>>);

/// How long after its Lease expired a leader is still healthy.
const TOLERATED: Duration = Duration::from_secs(20);

impl LeaderHealth {
    fn set(&self, renewed: Option<Instant>) {
        *self.0.lock() = renewed;
    }

    /// An error: this process believes to lead, but has not renewed the Lease for too long.
    pub fn check(&self, lease_duration: Duration) -> Result<(), String> {
        let renewed = *self.0.lock();
        match renewed {
            Some(renewed) if renewed.elapsed() > lease_duration + TOLERATED => {
                Err("failed election to renew leadership on lease".to_owned())
            }
            _ => Ok(()),
        }
    }
}

struct Observed {
    lease: Option<Value>,
    at: Instant,
}

struct Candidate<'a> {
    election: &'a Election,
    leases: Access,
    observed: Observed,
    world: World,
}

impl Election {
    /// An election with the default durations of components.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Election {
        Election {
            namespace: namespace.to_string(),
            name: name.to_string(),
            identity: identity.to_string(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            release: false,
            health: LeaderHealth::default(),
        }
    }

    /// Validates the durations.
    pub fn check(&self) -> Result<(), InvalidDurations> {
        if self.lease_duration <= self.renew_deadline {
            return Err(InvalidDurations::Deadline);
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            return Err(InvalidDurations::Retry);
        }
        Ok(())
    }

    /// Waits to become leader, then runs `work` while it is. The work is dropped when leadership is
    /// lost.
    pub async fn lead<T, F: Future<Output = T>>(
        &self,
        client: &Client,
        recorder: &Recorder,
        work: impl FnOnce() -> F,
    ) -> Result<T, Lost> {
        let leases = client.resource(&Resource::builtin("coordination.k8s.io", "v1", "leases"));
        let leases = leases.namespace(&self.namespace);
        let observed = Observed {
            lease: None,
            at: Instant::now(),
        };

        let mut candidate = Candidate {
            election: self,
            leases,
            observed,
            world: client.world(),
        };
        let status = ElectionMetrics::new(client.metrics()).leads.of(&self.name);
        status.set(0);
        candidate.acquire().await;
        status.set(1);
        self.health.set(Some(Instant::now()));

        info!(lease = self.name, identity = self.identity, "became leader");
        candidate.record_event(recorder, "became leader");
        let result = tokio::select! {
            biased;
            done = work() => Ok(done),
            () = candidate.hold() => Err(Lost),
        };

        status.set(0);
        self.health.set(None);
        candidate.record_event(recorder, "stopped leading");

        if self.release && result.is_ok() {
            candidate.release().await;
        }

        result
    }
}

impl Candidate<'_> {
    async fn acquire(&mut self) {
        loop {
            match self.attempt().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => debug!(%error, "cannot acquire leader election lease"),
            }

            let pause = self
                .election
                .retry_period
                .mul_f64(1.0 + JITTER * self.world.fraction());
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns when the lease is lost.
    async fn hold(&mut self) {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.election.retry_period).await;
            let left = self
                .election
                .renew_deadline
                .saturating_sub(renewed.elapsed());

            // Counted from before the attempt: others count from when the Lease was written, which
            // is later.
            let attempted = Instant::now();
            match tokio::time::timeout(left, self.attempt()).await {
                Ok(Ok(true)) => {
                    renewed = attempted;
                    self.election.health.set(Some(attempted));
                }
                Ok(Ok(false)) => {
                    return warn!(lease = self.election.name, "lost leader election");
                }
                Ok(Err(error)) => debug!(%error, "cannot renew leader election lease"),
                Err(_) => {}
            }

            if renewed.elapsed() >= self.election.renew_deadline {
                return warn!(
                    lease = self.election.name,
                    "lost leader election: lease not renewed in time"
                );
            }
        }
    }

    /// One attempt to acquire or renew the lease; returns whether it is ours now.
    async fn attempt(&mut self) -> Result<bool, Error> {
        // The leader need not read the Lease: it is as last written, unless another client changed
        // it.
        if let Some(lease) = self
            .observed
            .lease
            .clone()
            .filter(|lease| self.is_ours(lease))
        {
            match self.leases.update(&self.renewed(&lease)).await {
                Ok(lease) => return Ok(self.observe(lease)),
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }

        let Some(lease) = self.leases.find(&self.election.name).await? else {
            let made = self.leases.create(&self.fresh()).await?;
            return Ok(self.observe(made));
        };
        let holder = holder(&lease).to_string();

        self.observe_change(lease.clone());
        let is_free =
            holder.is_empty() || self.observed.at.elapsed() >= self.election.lease_duration;
        if holder != self.election.identity && !is_free {
            return Ok(false);
        }

        let written = self.leases.update(&self.renewed(&lease)).await?;
        Ok(self.observe(written))
    }

    /// A changed record restarts the wait.
    fn observe_change(&mut self, lease: Value) {
        let same = self
            .observed
            .lease
            .as_ref()
            .is_some_and(|seen| seen.get("spec") == lease.get("spec"));
        if !same {
            self.observed.at = Instant::now();
        }
        self.observed.lease = Some(lease);
    }

    fn observe(&mut self, lease: Value) -> bool {
        self.observe_change(lease);
        true
    }

    fn is_ours(&self, lease: &Value) -> bool {
        holder(lease) == self.election.identity
    }

    fn fresh(&self) -> Value {
        let mut lease = Value::object();
        let members = lease.as_object_mut().expect("made as one");
        members.insert("apiVersion", "coordination.k8s.io/v1");
        members.insert("kind", "Lease");
        let mut meta = lease.meta_mut();
        meta.set_name(&self.election.name);
        meta.set_namespace(&self.election.namespace);
        self.renewed(&lease)
    }

    fn renewed(&self, lease: &Value) -> Value {
        let now = MicroTime(self.world.now()).text();
        let taken_over = lease.get("spec").is_some() && !self.is_ours(lease);
        let mut lease = lease.clone();

        let spec = spec_of(&mut lease);
        if spec.str("holderIdentity") != Some(&self.election.identity) {
            spec.insert("acquireTime", now.clone());
            let transitions = spec.int("leaseTransitions") + i64::from(taken_over);
            spec.insert("leaseTransitions", transitions);
        }

        spec.insert("holderIdentity", self.election.identity.as_str());
        spec.insert(
            "leaseDurationSeconds",
            seconds(self.election.lease_duration),
        );

        spec.insert("renewTime", now);

        lease
    }

    /// Releases the lease, so that the next candidate need not wait.
    async fn release(&mut self) {
        let Some(mut lease) = self
            .observed
            .lease
            .clone()
            .filter(|lease| self.is_ours(lease))
        else {
            return;
        };
        let spec = spec_of(&mut lease);
        spec.insert("holderIdentity", "");

        spec.insert("leaseDurationSeconds", 1);

        if let Err(error) = self.leases.update(&lease).await {
            debug!(%error, "cannot release leader election lease");
        }
    }

    fn record_event(&self, recorder: &Recorder, what: &str) {
        if let Some(lease) = &self.observed.lease {
            let about = ObjectReference {
                uid: Default::default(),
                ..ObjectReference::of(lease)
            };
            recorder.normal(
                &about,
                "LeaderElection",
                format!("{} {what}", self.election.identity),
            );
        }
    }
}

fn holder(lease: &Value) -> &str {
    lease
        .at(&["spec", "holderIdentity"])
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn spec_of(lease: &mut Value) -> &mut Map {
    if lease.as_object().is_none() {
        *lease = Value::object();
    }
    lease
        .as_object_mut()
        .expect("made one just above")
        .object_mut("spec")
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
