//! The resources that the server serves, announced whenever they change.
//!
//! Discovery is not polled: only custom resources and aggregated APIs change, and both are objects
//! that can be watched. After each change of one, discovery is read at once and again after
//! [`SETTLED`], because a resource may be served a little later than its object is stored. A group
//! whose server does not respond is read again later.

use std::sync::Arc;
use std::time::Duration;

use coracle_client::discovery::{Served, ServedResource};
use coracle_client::retry::Backoff;
use coracle_client::{
    Change, Client, Informers, Mapper, Mapping, MappingError, Resource, Subscription, Tasks,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::debug;

use crate::views::Owned;

/// Changes that follow one another this quickly are handled as one.
const BATCH: Duration = Duration::from_millis(50);
/// This long after a change, everything is served.
const SETTLED: Duration = Duration::from_secs(3);
/// A group whose discovery failed is read again after this time.
const RETRY: Duration = Duration::from_secs(30);

/// The served resources. Clones share them.
#[derive(Clone)]
pub struct Resources {
    receiver: watch::Receiver<Option<Arc<Served>>>,
    mapper: Mapper,
}

impl Resources {
    /// Reads discovery through `client`, and follows changes in a task of `tasks`.
    pub(super) fn follow(client: &Client, informers: &Informers, tasks: &Tasks) -> Resources {
        let (sender, receiver) = watch::channel(None);
        let mapper = Mapper::new(client.discovery());
        let of = |group, plural| {
            informers
                .of(&Resource::builtin(group, "v1", plural))
                .subscribe()
        };

        let follower = Follower {
            client: client.clone(),
            mapper: mapper.clone(),
            definitions: of("apiextensions.k8s.io", "customresourcedefinitions"),
            services: of("apiregistration.k8s.io", "apiservices"),
            sender,
        };
        tasks.spawn(follower.run());

        Resources { receiver, mapper }
    }

    /// The resources served now; waits for the first discovery.
    pub async fn now(&mut self) -> Arc<Served> {
        let known = self
            .receiver
            .wait_for(Option::is_some)
            .await
            .map(|known| known.clone());
        match known {
            Ok(served) => served.unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Resolves when something has changed since the last call of `now`.
    pub async fn changed(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The resource of a kind.
    ///
    /// # Errors
    /// The server does not serve the kind, or cannot be reached.
    pub async fn of_kind(&self, api_version: &str, kind: &str) -> Result<Mapping, MappingError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.mapper.of_kind(group, version, kind).await
    }
}

/// The resources of a server, each in one version: the version that its group prefers, if it is
/// served in that.
pub fn preferred(served: &Served) -> Vec<&ServedResource> {
    let mut chosen: Vec<&ServedResource> = Vec::new();
    for resource in served
        .groups
        .iter()
        .flat_map(|group| &group.versions)
        .flat_map(|v| &v.resources)
    {
        let is_known = |known: &&ServedResource| {
            known.resource.group == resource.resource.group
                && known.resource.plural == resource.resource.plural
        };
        if !chosen.iter().any(is_known) {
            chosen.push(resource);
        }
    }

    chosen
}

/// Whether a resource supports all these verbs.
pub fn allows(resource: &ServedResource, verbs: &[&str]) -> bool {
    verbs
        .iter()
        .all(|verb| resource.verbs.iter().any(|allowed| allowed == verb))
}

struct Follower {
    client: Client,
    mapper: Mapper,
    definitions: Subscription<Owned>,
    services: Subscription<Owned>,
    sender: watch::Sender<Option<Arc<Served>>>,
}

impl Follower {
    /// Never returns.
    async fn run(mut self) {
        let mut backoff = Backoff::new(self.client.world());
        let mut settles: Option<Instant> = None;
        loop {
            self.mapper.reset();
            let again = match self.mapper.served().await {
                Ok(served) => {
                    let failed = (!served.failed.is_empty()).then(|| Instant::now() + RETRY);
                    self.announce(served);
                    failed
                }
                Err(error) => {
                    debug!(%error, "API discovery failed");
                    Some(Instant::now() + backoff.next())
                }
            };

            settles = settles.filter(|at| *at > Instant::now());
            let next = again.into_iter().chain(settles).min();

            tokio::select! {
                biased;
                () = until(next) => {}
                () = next_change(&mut self.definitions) => settles = Some(self.batch_changes().await),
                () = next_change(&mut self.services) => settles = Some(self.batch_changes().await),
            }
        }
    }

    /// Waits until changes no longer follow one another; returns when their effects are served.
    async fn batch_changes(&mut self) -> Instant {
        loop {
            tokio::select! {
                biased;
                () = next_change(&mut self.definitions) => {}
                () = next_change(&mut self.services) => {}
                () = tokio::time::sleep(BATCH) => return Instant::now() + SETTLED,
            }
        }
    }

    /// Publishes the resources; groups whose discovery failed keep their previous ones.
    fn announce(&self, served: Arc<Served>) {
        let known = self.sender.borrow().clone().unwrap_or_default();
        let served = keep_previous(served, &known);
        if *known != *served || self.sender.borrow().is_none() {
            self.sender.send_replace(Some(served));
        }
    }
}

/// Keeps the previous resources of versions whose discovery failed.
fn keep_previous(served: Arc<Served>, known: &Served) -> Arc<Served> {
    if served.failed.is_empty() {
        return served;
    }

    let mut served = Served::clone(&served);
    for group in &known.groups {
        let failed = |version: &str| {
            let path = format!("/apis/{}/{version}", group.name);
            served.failed.iter().any(|(failed, _)| *failed == path)
        };

        let kept: Vec<_> = group
            .versions
            .iter()
            .filter(|version| failed(&version.name))
            .cloned()
            .collect();

        if kept.is_empty() {
            continue;
        }

        match served.groups.iter_mut().find(|now| now.name == group.name) {
            Some(now) => now.versions.extend(kept),
            None => {
                let name = group.name.clone();
                served.groups.push(coracle_client::discovery::Group {
                    name,
                    versions: kept,
                });
            }
        }
    }

    Arc::new(served)
}

/// Waits for the next change; the end of the initial list is none.
async fn next_change(subscription: &mut Subscription<Owned>) {
    while let Change::Synced = subscription.next().await {}
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use coracle_client::discovery::{Group, Version};
    use coracle_testkit::{Cluster, Outcome, Setup, intercept, simulated};

    use super::*;

    fn version(group: &str, name: &str, plurals: &[&str]) -> Version {
        let resource = |plural: &&str| ServedResource {
            resource: Resource::new(group, name, plural, "K", true),
            singular: "k".into(),
            short_names: vec![],
            categories: vec![],
            verbs: vec!["list".into(), "watch".into()],
            subresources: vec![],
        };

        Version {
            name: name.into(),
            resources: plurals.iter().map(resource).collect(),
        }
    }

    fn served(versions: Vec<Version>) -> Served {
        Served {
            groups: vec![Group {
                name: "g".into(),
                versions,
            }],
            failed: vec![],
        }
    }

    #[test]
    fn of_several_versions_the_preferred_one_that_has_the_resource_is_taken() {
        let served = served(vec![
            version("g", "v1", &["a"]),
            version("g", "v1beta1", &["a", "b"]),
        ]);
        let chosen: Vec<String> = preferred(&served)
            .iter()
            .map(|one| format!("{}/{}", one.resource.version, one.resource.plural))
            .collect();
        assert_eq!(chosen, ["v1/a", "v1beta1/b"]);
        assert!(allows(preferred(&served)[0], &["list", "watch"]));
        assert!(!allows(preferred(&served)[0], &["list", "delete"]));
    }

    #[tokio::test(start_paused = true)]
    async fn a_group_that_does_not_respond_hides_no_other_and_is_retried() {
        let cluster = Cluster::with(Setup {
            world: simulated(1),
            bare: true,
            ..Setup::default()
        })
        .await;

        let is_dead = Arc::new(AtomicBool::new(true));
        let dead = is_dead.clone();

        let way = intercept(cluster.transport(), move |request| {
            // One document for all groups would not show those that do not respond.
            if ["/api", "/apis"].contains(&request.uri().path()) {
                request.headers_mut().remove("accept");
            }

            let is_of_it = request.uri().path() == "/apis/batch/v1";
            if is_of_it && dead.load(Ordering::Relaxed) {
                Outcome::Unavailable
            } else {
                Outcome::Pass
            }
        });
        let client = Client::new(way, cluster.world);

        let tasks = Tasks::new();
        let informers = Informers::new(client.clone(), tasks.clone());
        let mut resources = Resources::follow(&client, &informers, &tasks);
        let has = |served: &Served, plural: &str| {
            preferred(served)
                .iter()
                .any(|one| one.resource.plural == plural)
        };

        let served = resources.now().await;
        assert!(has(&served, "pods") && has(&served, "deployments") && !has(&served, "jobs"));

        is_dead.store(false, Ordering::Relaxed);
        let begun = Instant::now();

        while !has(&*resources.now().await, "jobs") {
            resources.changed().await;
        }

        assert!(begun.elapsed() <= RETRY + SETTLED);

        tasks.stop().await;
        cluster.kill().await;
    }

    #[test]
    fn a_version_whose_discovery_failed_keeps_its_resources() {
        let known = served(vec![version("g", "v1", &["a"])]);
        let failed = vec![("/apis/g/v1".to_string(), "stale".to_string())];
        let now = Arc::new(Served {
            groups: vec![],
            failed: failed.clone(),
        });
        assert_eq!(preferred(&keep_previous(now, &known)).len(), 1);

        // A version that was really removed is removed.
        let now = Arc::new(Served {
            groups: vec![],
            failed: vec![],
        });
        assert!(preferred(&keep_previous(now, &known)).is_empty());
    }
}
