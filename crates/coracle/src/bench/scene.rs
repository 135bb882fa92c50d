//! The benchmarks, from the creation of their namespace to its deletion.

use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::connection::{Call, Connection, RequestError};
use super::load::{self, Measured, Until};
use super::objects::{config_map, pod};
use super::report::Report;
use super::target::Target;
use super::usage::Usage;
use super::watching::{self, Watched};
use super::{Bench, BenchError, Benchmark, pods};
use crate::world::WORLD;

/// Number of ConfigMaps for the read benchmarks.
const FEW: usize = 1_000;

/// Number of clients that create the objects a benchmark needs.
const PREPARERS: usize = 8;

/// The environment of a benchmark.
struct Scene<'a> {
    command: &'a Bench,
    target: &'a Target,
    namespace: String,
}

pub(super) async fn run(command: &Bench, target: &Target) -> Result<Report, BenchError> {
    let namespace = format!("bench-{:08x}", (WORLD.random)() & 0xffff_ffff);
    let scene = Scene {
        command,
        target,
        namespace,
    };
    scene.begin().await?;

    if command.nodes > 0 {
        pods::nodes_are_ready(command.kubeconfig.as_deref(), command.nodes).await?;
    }

    let result = scene.measure().await;

    if !matches!(command.what, Benchmark::Fill { .. }) {
        scene.end().await?;
    }

    result
}

impl Scene<'_> {
    /// Creates the namespace, and the service account that its pods need.
    async fn begin(&self) -> Result<(), RequestError> {
        let mut connection = Connection::open(self.target).await?;
        let name = &self.namespace;
        let namespace =
            format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        connection
            .send(Call::post("/api/v1/namespaces", namespace))
            .await?;

        let account =
            r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
        match connection
            .send(Call::post(self.path("serviceaccounts"), account))
            .await
        {
            // A controller may have created it already.
            Err(RequestError::Refused {
                status: StatusCode::CONFLICT,
                ..
            })
            | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn end(&self) -> Result<(), RequestError> {
        let mut connection = Connection::open(self.target).await?;
        for resource in ["configmaps", "pods?gracePeriodSeconds=0"] {
            // Deleting many objects may time out; each attempt deletes some.
            while let Err(error) = connection.send(Call::delete(self.path(resource))).await {
                if !matches!(
                    error,
                    RequestError::Refused {
                        status: StatusCode::GATEWAY_TIMEOUT,
                        ..
                    }
                ) {
                    return Err(error);
                }
            }
        }

        let namespace = format!("/api/v1/namespaces/{}", self.namespace);
        connection.send(Call::delete(namespace.as_str())).await?;

        if matches!(
            self.command.what,
            Benchmark::Schedule { .. } | Benchmark::Deploy { .. }
        ) {
            gone(&mut connection, &namespace).await?;
        }

        Ok(())
    }

    fn path(&self, resource: &str) -> String {
        format!("/api/v1/namespaces/{}/{resource}", self.namespace)
    }

    async fn measure(&self) -> Result<Report, BenchError> {
        let (size, maps) = (self.command.size, self.path("configmaps"));
        match self.command.what {
            Benchmark::Create => {
                let create = move |client, n| {
                    Call::post(
                        maps.clone(),
                        config_map(&format!("created-{client}-{n}"), size),
                    )
                };
                self.requests(create).await
            }
            Benchmark::Get => {
                self.prepare(FEW, "configmaps", config_map).await?;
                self.requests(move |client, n| {
                    Call::get(format!("{maps}/o-{}", (client * 61 + n) % FEW))
                })
                .await
            }
            Benchmark::Patch => {
                self.prepare(self.command.clients, "configmaps", config_map)
                    .await?;
                let patch = move |client, n| {
                    Call::patch(
                        format!("{maps}/o-{client}"),
                        format!(r#"{{"data":{{"n":"{n}"}}}}"#),
                    )
                };

                self.requests(patch).await
            }
            Benchmark::List { objects, gzip } => self.lists(objects, gzip).await,
            Benchmark::Watch { watchers, events } => self.watches(watchers, events).await,
            Benchmark::Fill {
                objects,
                config_maps: false,
            } => self.fills(objects, "pods", pod).await,
            Benchmark::Fill {
                objects,
                config_maps: true,
            } => self.fills(objects, "configmaps", config_map).await,
            Benchmark::Schedule { pods } => self.schedules(pods).await,
            Benchmark::Deploy { replicas } => self.deploys(replicas).await,
            Benchmark::Idle => self.idles().await,
            Benchmark::Mixed => {
                self.prepare(FEW, "configmaps", config_map).await?;
                self.requests(move |client, n| mixed(&maps, size, client, n))
                    .await
            }
        }
    }

    /// Creates the objects to read.
    async fn prepare(
        &self,
        count: usize,
        resource: &str,
        object: fn(&str, usize) -> String,
    ) -> Result<Measured, RequestError> {
        self.create(PREPARERS, count, resource, "o", object).await
    }

    /// Creates objects as fast as the clients can.
    async fn create(
        &self,
        clients: usize,
        count: usize,
        resource: &str,
        named: &'static str,
        object: fn(&str, usize) -> String,
    ) -> Result<Measured, RequestError> {
        let (path, size) = (self.path(resource), self.command.size);
        let create = move |client, n| {
            Call::post(
                path.clone(),
                object(&format!("{named}-{}", n * clients + client), size),
            )
        };
        // The shares of clients differ by at most one, so that every name is used once.
        load::run(self.target, clients, Until::Count(count), create).await
    }

    fn usage(&self) -> Result<Option<Usage>, BenchError> {
        let mut sum = None;
        for pid in &self.command.server_pid {
            let usage = Usage::of(*pid).map_err(|error| BenchError::Usage(*pid, error))?;
            let before: Usage = sum.unwrap_or_default();
            sum = Some(Usage {
                cpu: before.cpu + usage.cpu,
                resident: before.resident + usage.resident,
            });
        }
        Ok(sum)
    }

    /// Runs the load of the command line.
    async fn loaded<F>(&self, call: F) -> Result<(Measured, Option<(Usage, Usage)>), BenchError>
    where
        F: Fn(usize, usize) -> Call + Clone + Send + 'static,
    {
        let before = self.usage()?;
        let until = Until::Time(self.command.lasts());
        let measured = load::run(self.target, self.command.clients, until, call).await?;
        Ok((measured, before.zip(self.usage()?)))
    }

    async fn requests<F>(&self, call: F) -> Result<Report, BenchError>
    where
        F: Fn(usize, usize) -> Call + Clone + Send + 'static,
    {
        let (mut measured, usage) = self.loaded(call).await?;
        let mut report = Report::default();
        let names = [
            ("requests_per_second", "requests per second"),
            (
                "requests_per_cpu_second",
                "requests per second of server CPU",
            ),
        ];

        report.rate(
            names,
            "",
            measured.latencies.len() as f64,
            measured.took,
            used(usage),
        );

        report.latencies(&mut measured.latencies);
        usage.inspect(|(before, after)| report.usage(*before, *after));

        Ok(report)
    }

    async fn lists(&self, objects: usize, gzip: bool) -> Result<Report, BenchError> {
        self.prepare(objects, "pods", pod).await?;
        let path = self.path("pods");
        let (mut measured, usage) = self
            .loaded(move |_, _| Call {
                gzip,
                ..Call::get(path.clone())
            })
            .await?;

        let mut report = Report::default();
        let mut connection = Connection::open(self.target).await?;
        let whole = connection.send(Call::get(self.path("pods"))).await?;
        report.add("list_bytes", "bytes of one list", whole as f64, "");

        report.add(
            "sent_bytes",
            "bytes sent for one",
            measured.bytes as f64 / measured.latencies.len() as f64,
            "",
        );

        let shown = (whole * measured.latencies.len()) as f64 / 1e6;

        let names = [
            ("megabytes_per_second", "of lists per second"),
            (
                "megabytes_per_cpu_second",
                "of lists per second of server CPU",
            ),
        ];
        report.rate(names, "MB", shown, measured.took, used(usage));

        report.latencies(&mut measured.latencies);
        usage.inspect(|(before, after)| report.usage(*before, *after));

        Ok(report)
    }

    async fn watches(&self, watchers: usize, events: usize) -> Result<Report, BenchError> {
        let before = self.usage()?;
        let (maps, size) = (self.path("configmaps"), self.command.size);
        let Watched {
            took,
            deliveries,
            bytes,
        } = watching::watch(self.target, &maps, watchers, events, size).await?;

        let usage = before.zip(self.usage()?);
        let mut report = Report::default();

        let names = [
            ("deliveries_per_second", "events delivered per second"),
            (
                "deliveries_per_cpu_second",
                "events delivered per second of server CPU",
            ),
        ];
        report.rate(names, "", deliveries as f64, took, used(usage));

        report.add(
            "delivered_megabytes",
            "delivered in all",
            bytes as f64 / 1e6,
            "MB",
        );

        usage.inspect(|(before, after)| report.usage(*before, *after));

        Ok(report)
    }

    async fn schedules(&self, pods: usize) -> Result<Report, BenchError> {
        let watched =
            pods::Watched::begin(self.command.kubeconfig.as_deref(), &self.namespace).await?;
        let (before, begun) = (self.usage()?, Instant::now());
        let measured = self
            .create(self.command.clients, pods, "pods", "o", pod)
            .await?;
        let took = watched.all(pods, begun).await;

        let mut report = self.lives(pods, &took, before)?;
        report.add(
            "created_seconds",
            "created within",
            measured.took.as_secs_f64(),
            "s",
        );

        Ok(report)
    }

    async fn deploys(&self, replicas: usize) -> Result<Report, BenchError> {
        let watched =
            pods::Watched::begin(self.command.kubeconfig.as_deref(), &self.namespace).await?;
        let (before, begun) = (self.usage()?, Instant::now());
        let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", self.namespace);

        let mut connection = Connection::open(self.target).await?;
        connection
            .send(Call::post(deployments.as_str(), pods::deployment(replicas)))
            .await?;

        let took = watched.all(replicas, begun).await;
        let report = self.lives(replicas, &took, before)?;
        connection
            .send(Call::delete(format!("{deployments}/bench")))
            .await?;

        Ok(report)
    }

    fn lives(
        &self,
        pods: usize,
        took: &pods::Took,
        before: Option<Usage>,
    ) -> Result<Report, BenchError> {
        let mut report = Report::default();
        report.add(
            "bound_seconds",
            "all have nodes within",
            took.bound.as_secs_f64(),
            "s",
        );

        report.add(
            "bound_per_second",
            "pods that get nodes per second",
            pods as f64 / took.bound.as_secs_f64(),
            "",
        );

        report.add(
            "ready_seconds",
            "all are ready within",
            took.ready.as_secs_f64(),
            "s",
        );

        before
            .zip(self.usage()?)
            .inspect(|(before, after)| report.usage(*before, *after));

        Ok(report)
    }

    async fn idles(&self) -> Result<Report, BenchError> {
        let before = self.usage()?.ok_or(BenchError::NoProcess)?;
        tokio::time::sleep(self.command.lasts()).await;
        let after = self.usage()?.ok_or(BenchError::NoProcess)?;
        let share = (after.cpu - before.cpu).as_secs_f64() / self.command.lasts().as_secs_f64();
        let mut report = Report::default();
        report.add("cpu_percent", "of a core is used", share * 100.0, "%");
        report.usage(before, after);
        Ok(report)
    }

    async fn fills(
        &self,
        objects: usize,
        resource: &str,
        object: fn(&str, usize) -> String,
    ) -> Result<Report, BenchError> {
        // The first objects are not measured: they include code, connections and thread caches.
        let first = (objects / 10).max(PREPARERS);
        self.create(PREPARERS, first, resource, "first", object)
            .await?;
        tokio::time::sleep(SETTLED_AFTER).await;
        let before = self.usage()?;
        let measured = self.prepare(objects, resource, object).await?;

        // Time to free temporary memory.
        tokio::time::sleep(SETTLED_AFTER).await;
        let usage = before.zip(self.usage()?);
        let mut connection = Connection::open(self.target).await?;
        let whole = connection.send(Call::get(self.path(resource))).await?;
        let mut report = Report::default();
        let bytes = whole as f64 / (first + objects) as f64;
        report.add("object_bytes", "bytes of an object", bytes, "");

        if let Some((before, after)) = usage {
            let each = after.resident.saturating_sub(before.resident) as f64 / objects as f64;
            report.add(
                "memory_per_object",
                "memory of the server for each",
                each,
                "bytes",
            );

            report.add(
                "memory_per_byte",
                "memory for a byte of an object",
                each / bytes,
                "bytes",
            );

            report.usage(before, after);
        }

        report.add(
            "fill_seconds",
            "written within",
            measured.took.as_secs_f64(),
            "s",
        );

        Ok(report)
    }
}

const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Interval and timeout of the wait for the deletion of the namespace.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
const LOOKS_FOR: Duration = Duration::from_secs(30);

/// Waits until the namespace is deleted, so that the next benchmark does not measure that work.
async fn gone(connection: &mut Connection, namespace: &str) -> Result<(), RequestError> {
    let until = Instant::now() + LOOKS_FOR;
    while Instant::now() < until {
        match connection.send(Call::get(namespace)).await {
            Ok(_) => tokio::time::sleep(LOOKS_EVERY).await,
            Err(RequestError::Refused {
                status: StatusCode::NOT_FOUND,
                ..
            }) => break,
            Err(error) => return Err(error),
        }
    }

    Ok(())
}

fn used(usage: Option<(Usage, Usage)>) -> Option<Duration> {
    usage.map(|(before, after)| after.cpu - before.cpu)
}

fn mixed(maps: &str, size: usize, client: usize, n: usize) -> Call {
    let some = (client * 61 + n) % FEW;
    match n % 10 {
        0 => Call::post(maps, config_map(&format!("created-{client}-{n}"), size)),
        1 => Call::get(format!("{maps}?limit=20")),
        2 | 3 => Call::patch(
            format!("{maps}/o-{some}"),
            format!(r#"{{"data":{{"n":"{client}-{n}"}}}}"#),
        ),
        _ => Call::get(format!("{maps}/o-{some}")),
    }
}
