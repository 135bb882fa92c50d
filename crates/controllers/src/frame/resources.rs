//! Which resources the server has, told whenever that changes.
//!
//! Nobody asks every half minute: what comes and goes are custom resources and the APIs of other
//! servers, and both are objects that can be watched. After each change of one the server is asked
//! what it has, at once and once more when things have settled, because it may announce a resource
//! a little after the object. A group whose server does not answer is asked about again later.

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

/// Changes that come so soon after one another are one.
const TOGETHER: Duration = Duration::from_millis(50);
/// So long after a change everything has been announced.
const SETTLED: Duration = Duration::from_secs(3);
/// A group that could not be asked about is asked about again after this time.
const FAILED: Duration = Duration::from_secs(30);

/// What the server has. Clones know the same.
#[derive(Clone)]
pub struct Resources {
    told: watch::Receiver<Option<Arc<Served>>>,
    mapper: Mapper,
}

impl Resources {
    /// Asks through `client`, and follows in a task of `tasks`.
    pub(super) fn follow(client: &Client, informers: &Informers, tasks: &Tasks) -> Resources {
        let (tell, told) = watch::channel(None);
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
            tell,
        };
        tasks.spawn(follower.run());

        Resources { told, mapper }
    }

    /// What the server has now; waits until that is known for the first time.
    pub async fn now(&mut self) -> Arc<Served> {
        let known = self
            .told
            .wait_for(Option::is_some)
            .await
            .map(|known| known.clone());
        match known {
            Ok(served) => served.unwrap_or_default(),
            Err(_) => std::future::pending().await,
        }
    }

    /// Resolves when something has changed since the last look.
    pub async fn changed(&mut self) {
        if self.told.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The resource of a kind.
    ///
    /// # Errors
    /// The server has no such kind, or cannot be asked.
    pub async fn of_kind(&self, api_version: &str, kind: &str) -> Result<Mapping, MappingError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.mapper.of_kind(group, version, kind).await
    }
}

/// The resources of a server, each in one version: the one that its group prefers, if it is served
/// in that.
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

/// Whether all these verbs are among those of a resource.
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
    tell: watch::Sender<Option<Arc<Served>>>,
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
                    let failed = (!served.failed.is_empty()).then(|| Instant::now() + FAILED);
                    self.announce(served);
                    failed
                }
                Err(error) => {
                    debug!(%error, "the server does not say what it has");
                    Some(Instant::now() + backoff.next())
                }
            };

            settles = settles.filter(|at| *at > Instant::now());
            let next = again.into_iter().chain(settles).min();

            tokio::select! {
                biased;
                () = until(next) => {}
                () = heard(&mut self.definitions) => settles = Some(self.gather().await),
                () = heard(&mut self.services) => settles = Some(self.gather().await),
            }
        }
    }

    /// Waits until changes no longer follow one another; answers when what they lead to has been
    /// announced.
    async fn gather(&mut self) -> Instant {
        loop {
            tokio::select! {
                biased;
                () = heard(&mut self.definitions) => {}
                () = heard(&mut self.services) => {}
                () = tokio::time::sleep(TOGETHER) => return Instant::now() + SETTLED,
            }
        }
    }

    /// What could not be asked about is taken to be as it was.
    fn announce(&self, served: Arc<Served>) {
        let known = self.tell.borrow().clone().unwrap_or_default();
        let served = with_what_was_known(served, &known);
        if *known != *served || self.tell.borrow().is_none() {
            self.tell.send_replace(Some(served));
        }
    }
}

/// Versions that failed are kept as they were known.
fn with_what_was_known(served: Arc<Served>, known: &Served) -> Arc<Served> {
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

/// The next change; that everything has been told is none.
async fn heard(subscription: &mut Subscription<Owned>) {
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
    async fn a_group_that_does_not_answer_hides_no_other_and_is_asked_about_again() {
        let cluster = Cluster::with(Setup {
            world: simulated(1),
            bare: true,
            ..Setup::default()
        })
        .await;

        let is_dead = Arc::new(AtomicBool::new(true));
        let dead = is_dead.clone();

        let way = intercept(cluster.transport(), move |request| {
            // One document for all groups would say nothing of those that do not answer.
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

        assert!(begun.elapsed() <= FAILED + SETTLED);

        tasks.stop().await;
        cluster.kill().await;
    }

    #[test]
    fn a_version_that_could_not_be_asked_about_stays_as_it_was() {
        let known = served(vec![version("g", "v1", &["a"])]);
        let failed = vec![("/apis/g/v1".to_string(), "stale".to_string())];
        let now = Arc::new(Served {
            groups: vec![],
            failed: failed.clone(),
        });
        assert_eq!(preferred(&with_what_was_known(now, &known)).len(), 1);

        // One that is really gone is gone.
        let now = Arc::new(Served {
            groups: vec![],
            failed: vec![],
        });
        assert!(preferred(&with_what_was_known(now, &known)).is_empty());
    }
}
