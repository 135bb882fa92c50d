//! What is asked in each benchmark, from the making of its namespace to its end.

use std::time::Duration;

use http::StatusCode;
use tokio::time::Instant;

use super::connection::{Connection, Question, RequestError};
use super::load::{self, Asked, Until};
use super::objects::{config_map, pod};
use super::report::Report;
use super::target::Target;
use super::usage::Usage;
use super::watching::{self, Watched};
use super::{Bench, BenchError, What, pods};
use crate::world::WORLD;

/// How many ConfigMaps are there to get.
const FEW: usize = 1_000;

/// How many clients write what a benchmark needs to begin with.
const PREPARERS: usize = 8;

/// Where a benchmark happens.
struct Scene<'a> {
    command: &'a Bench,
    target: &'a Target,
    namespace: String,
}

pub(super) async fn play(command: &Bench, target: &Target) -> Result<Report, BenchError> {
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

    if !matches!(command.what, What::Fill { .. }) {
        scene.end().await?;
    }

    result
}

impl Scene<'_> {
    /// Makes the namespace, and the account that pods in it need.
    async fn begin(&self) -> Result<(), RequestError> {
        let mut connection = Connection::open(self.target).await?;
        let name = &self.namespace;
        let namespace =
            format!(r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{name}"}}}}"#);
        connection
            .ask(Question::post("/api/v1/namespaces", namespace))
            .await?;

        let account =
            r#"{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}"#;
        match connection
            .ask(Question::post(self.path("serviceaccounts"), account))
            .await
        {
            // Where controllers run, one of them was faster.
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
            // A server may run out of time over many objects, and has deleted some each time.
            while let Err(error) = connection.ask(Question::delete(self.path(resource))).await {
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
        connection.ask(Question::delete(namespace.as_str())).await?;

        if matches!(
            self.command.what,
            What::Schedule { .. } | What::Deploy { .. }
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
            What::Create => {
                let create = move |client, n| {
                    Question::post(
                        maps.clone(),
                        config_map(&format!("created-{client}-{n}"), size),
                    )
                };
                self.requests(create).await
            }
            What::Get => {
                self.prepare(FEW, "configmaps", config_map).await?;
                self.requests(move |client, n| {
                    Question::get(format!("{maps}/o-{}", (client * 61 + n) % FEW))
                })
                .await
            }
            What::Patch => {
                self.prepare(self.command.clients, "configmaps", config_map)
                    .await?;
                let patch = move |client, n| {
                    Question::patch(
                        format!("{maps}/o-{client}"),
                        format!(r#"{{"data":{{"n":"{n}"}}}}"#),
                    )
                };

                self.requests(patch).await
            }
            What::List { objects, gzip } => self.lists(objects, gzip).await,
            What::Watch { watchers, events } => self.watches(watchers, events).await,
            What::Fill {
                objects,
                config_maps: false,
            } => self.fills(objects, "pods", pod).await,
            What::Fill {
                objects,
                config_maps: true,
            } => self.fills(objects, "configmaps", config_map).await,
            What::Schedule { pods } => self.schedules(pods).await,
            What::Deploy { replicas } => self.deploys(replicas).await,
            What::Idle => self.idles().await,
            What::Mixed => {
                self.prepare(FEW, "configmaps", config_map).await?;
                self.requests(move |client, n| mixed(&maps, size, client, n))
                    .await
            }
        }
    }

    /// Writes what is to be read.
    async fn prepare(
        &self,
        count: usize,
        resource: &str,
        object: fn(&str, usize) -> String,
    ) -> Result<Asked, RequestError> {
        self.create(PREPARERS, count, resource, "o", object).await
    }

    /// Creates so many objects, as fast as so many clients can.
    async fn create(
        &self,
        clients: usize,
        count: usize,
        resource: &str,
        named: &'static str,
        object: fn(&str, usize) -> String,
    ) -> Result<Asked, RequestError> {
        let (path, size) = (self.path(resource), self.command.size);
        let create = move |client, n| {
            Question::post(
                path.clone(),
                object(&format!("{named}-{}", n * clients + client), size),
            )
        };
        // Clients that share a count have as many each, or one more: so every number is there once.
        load::ask(self.target, clients, Until::Count(count), create).await
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

    /// The load that the command line asks for.
    async fn loaded<F>(&self, question: F) -> Result<(Asked, Option<(Usage, Usage)>), BenchError>
    where
        F: Fn(usize, usize) -> Question + Clone + Send + 'static,
    {
        let before = self.usage()?;
        let until = Until::Time(self.command.lasts());
        let asked = load::ask(self.target, self.command.clients, until, question).await?;
        Ok((asked, before.zip(self.usage()?)))
    }

    async fn requests<F>(&self, question: F) -> Result<Report, BenchError>
    where
        F: Fn(usize, usize) -> Question + Clone + Send + 'static,
    {
        let (mut asked, usage) = self.loaded(question).await?;
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
            asked.latencies.len() as f64,
            asked.took,
            used(usage),
        );

        report.latencies(&mut asked.latencies);
        usage.inspect(|(before, after)| report.usage(*before, *after));

        Ok(report)
    }

    async fn lists(&self, objects: usize, gzip: bool) -> Result<Report, BenchError> {
        self.prepare(objects, "pods", pod).await?;
        let path = self.path("pods");
        let (mut asked, usage) = self
            .loaded(move |_, _| Question {
                gzip,
                ..Question::get(path.clone())
            })
            .await?;

        let mut report = Report::default();
        let mut connection = Connection::open(self.target).await?;
        let whole = connection.ask(Question::get(self.path("pods"))).await?;
        report.add("list_bytes", "bytes of one list", whole as f64, "");

        report.add(
            "sent_bytes",
            "bytes sent for one",
            asked.bytes as f64 / asked.latencies.len() as f64,
            "",
        );

        let shown = (whole * asked.latencies.len()) as f64 / 1e6;

        let names = [
            ("megabytes_per_second", "of lists per second"),
            (
                "megabytes_per_cpu_second",
                "of lists per second of server CPU",
            ),
        ];
        report.rate(names, "MB", shown, asked.took, used(usage));

        report.latencies(&mut asked.latencies);
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
        let asked = self
            .create(self.command.clients, pods, "pods", "o", pod)
            .await?;
        let took = watched.all(pods, begun).await;

        let mut report = self.lives(pods, &took, before)?;
        report.add(
            "created_seconds",
            "created within",
            asked.took.as_secs_f64(),
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
            .ask(Question::post(
                deployments.as_str(),
                pods::deployment(replicas),
            ))
            .await?;

        let took = watched.all(replicas, begun).await;
        let report = self.lives(replicas, &took, before)?;
        connection
            .ask(Question::delete(format!("{deployments}/bench")))
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
        // What the first ones take is the program's: its code, its connections, what its threads
        // keep.
        let first = (objects / 10).max(PREPARERS);
        self.create(PREPARERS, first, resource, "first", object)
            .await?;
        tokio::time::sleep(SETTLED_AFTER).await;
        let before = self.usage()?;
        let asked = self.prepare(objects, resource, object).await?;

        // What writing left behind has time to go.
        tokio::time::sleep(SETTLED_AFTER).await;
        let usage = before.zip(self.usage()?);
        let mut connection = Connection::open(self.target).await?;
        let whole = connection.ask(Question::get(self.path(resource))).await?;
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
            asked.took.as_secs_f64(),
            "s",
        );

        Ok(report)
    }
}

const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// How often a namespace is looked for until it is gone, and how long at most.
const LOOKS_EVERY: Duration = Duration::from_millis(100);
const LOOKS_FOR: Duration = Duration::from_secs(30);

/// Waits until controllers have emptied a namespace: whoever measures next is not to measure that.
async fn gone(connection: &mut Connection, namespace: &str) -> Result<(), RequestError> {
    let until = Instant::now() + LOOKS_FOR;
    while Instant::now() < until {
        match connection.ask(Question::get(namespace)).await {
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

fn mixed(maps: &str, size: usize, client: usize, n: usize) -> Question {
    let some = (client * 61 + n) % FEW;
    match n % 10 {
        0 => Question::post(maps, config_map(&format!("created-{client}-{n}"), size)),
        1 => Question::get(format!("{maps}?limit=20")),
        2 | 3 => Question::patch(
            format!("{maps}/o-{some}"),
            format!(r#"{{"data":{{"n":"{client}-{n}"}}}}"#),
        ),
        _ => Question::get(format!("{maps}/o-{some}")),
    }
}
