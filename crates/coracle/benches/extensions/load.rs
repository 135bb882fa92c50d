//! A server under load, and what it spends.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use coracle_api::Value;
use coracle_api::time::Timestamp;
use coracle_client::{
    Access, Client, Config, DeleteOptions, Environment, ListOptions, Resource, World,
};
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::objects;
use crate::servers::Server;

#[expect(
    clippy::disallowed_methods,
    reason = "this is where the wall clock is handed in from"
)]
fn now() -> Timestamp {
    Timestamp::from(std::time::SystemTime::now())
}

fn random() -> u64 {
    fastrand::u64(..)
}

/// A server, with clients of it.
pub(crate) struct Target {
    client: Client,
    processes: Vec<u32>,
}

/// What a number of writes took.
pub(crate) struct Load {
    pub(crate) cpu_micros: f64,
    pub(crate) median_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Target {
    pub(crate) async fn of(server: &(impl Server + ?Sized)) -> Target {
        let kubeconfig = server.kubeconfig();
        let config = Config::load(Some(&kubeconfig), None, &Environment::default());
        let client = Client::connect(config.expect("a kubeconfig"), World { now, random });
        Target {
            client: client.await.expect("a client"),
            processes: server.processes(),
        }
    }

    /// The objects of a resource in the namespace `default`.
    pub(crate) fn access(&self, resource: &Resource) -> Access {
        self.client.resource(resource).namespace("default")
    }

    pub(crate) fn cluster_wide(&self, plural: &str) -> Access {
        let of = Resource::builtin("admissionregistration.k8s.io", "v1", plural);
        self.client.resource(&of)
    }

    pub(crate) async fn delete(&self, access: &Access, object: &Value) {
        let options = DeleteOptions::default();
        let deleted = access.delete(object.meta().name(), &options).await;
        deleted.expect("it is deleted");
    }

    /// Creates a definition, and waits until its resource is served.
    pub(crate) async fn define(&self, name: &str, definition: &Value) {
        let definitions =
            Resource::builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions");
        let made = self.client.resource(&definitions).create(definition).await;
        made.expect("a definition");
        let served = self.access(&objects::resource(name));
        while served.list(&ListOptions::default()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Creates many definitions with rules.
    pub(crate) async fn define_all(
        &self,
        names: impl Iterator<Item = String>,
        rules: usize,
        clients: usize,
    ) {
        let names: Vec<String> = names.collect();
        let next = AtomicUsize::new(0);
        let define = async || {
            while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.define(name, &objects::definition(name, rules)).await;
            }
        };
        join_all((0..clients).map(|_| define())).await;
    }

    /// Creates objects, so many at a time.
    pub(crate) async fn create(
        &self,
        access: &Access,
        count: usize,
        clients: usize,
        object: impl Fn(usize) -> Value,
    ) -> Load {
        let objects: Vec<Value> = (0..count).map(object).collect();
        let next = Arc::new(AtomicUsize::new(0));
        let before = self.cpu();
        let create = async || {
            let mut took = Vec::new();
            while let Some(object) = objects.get(next.fetch_add(1, Ordering::Relaxed)) {
                let began = Instant::now();
                access.create(object).await.expect("it is created");
                took.push(began.elapsed().as_secs_f64() * 1e3);
            }
            took
        };

        let took = join_all((0..clients).map(|_| create())).await;
        let spent = self.cpu().saturating_sub(before);
        let mut took: Vec<f64> = took.into_iter().flatten().collect();
        took.sort_by(f64::total_cmp);
        Load {
            cpu_micros: spent.as_secs_f64() * 1e6 / objects::number(count),
            median_ms: took[count / 2],
            p99_ms: took[count * 99 / 100],
        }
    }

    /// The CPU time of the server's processes so far.
    pub(crate) fn cpu(&self) -> Duration {
        let of = |pid: &u32| {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
            let texts = threads.filter_map(|thread| {
                fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()
            });
            let spent = texts.filter_map(|text| text.split(' ').next()?.parse::<u64>().ok());
            spent.sum::<u64>()
        };
        Duration::from_nanos(self.processes.iter().map(of).sum())
    }
}

pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
