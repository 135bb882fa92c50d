//! What extensions of the API cost: rules of custom resources, admission policies, webhooks of
//! admission and conversion, and many definitions. `cargo bench -p coracle --bench extensions`, or
//! with `-- rules policies webhooks conversion definitions` some of these.
//!
//! A stock kube-apiserver with its etcd is measured in the same run, except with many definitions,
//! if `scripts/build-kube-apiserver.sh` has built it. The server's CPU for one write depends least
//! on other load; what is compared is measured in turns, and the median of the rounds counts.
//! Webhooks are in the process of the benchmark: both servers call the same ones.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod load;
mod objects;
#[path = "../road/servers.rs"]
#[expect(dead_code, reason = "other benchmarks run `coracle bench`")]
mod servers;
mod webhook;

use std::time::Duration;

use coracle_client::{ListOptions, Resource};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use load::{Load, Target, median};
use servers::{ALONE, Ours, Peer, Server};
use webhook::Webhooks;

/// How many objects are written in a round, by how many clients at a time, and how many rounds.
const WRITES: usize = 400;
const CLIENTS: usize = 8;
const ROUNDS: usize = 5;
/// Rules of a definition that has some.
const RULES: usize = 20;
const POLICIES: usize = 100;
const CONVERTED: usize = 5_000;
/// Definitions, with how many rules each.
const DEFINITIONS: usize = 1_000;
const RULES_OF_EACH: usize = 50;

fn main() {
    let named: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| !it.starts_with('-'))
        .collect();
    let is_wanted = |part: &str| named.is_empty() || named.iter().any(|name| name == part);
    let runtime = Runtime::new().expect("a runtime");
    let webhooks = runtime.block_on(Webhooks::start());
    println!(
        "{:<58} {:>10} {:>10} {:>7}  goal",
        "", "coracle", "peer", "ratio"
    );

    for part in ["rules", "policies", "webhooks", "conversion"] {
        if is_wanted(part) {
            let measure = |server: &dyn Server| {
                runtime.block_on(async {
                    let target = Target::of(server).await;
                    match part {
                        "rules" => rules(&target).await,
                        "policies" => policies(&target).await,
                        "webhooks" => through_webhooks(&target, &webhooks).await,
                        _ => conversion(&target, &webhooks).await,
                    }
                })
            };
            let ours = measure(&Ours::start_empty(ALONE));
            let theirs = Peer::start_empty().map(|peer| measure(&peer));
            for (place, figure) in ours.iter().enumerate() {
                row(figure, theirs.as_ref().map(|figures| figures[place].value));
            }
        }
    }
    if is_wanted("definitions") {
        for figure in definitions(&runtime) {
            row(&figure, None);
        }
    }
}

/// A number, and what it is to be.
struct Figure {
    about: String,
    value: f64,
    goal: &'static str,
}

fn figure(about: impl Into<String>, value: f64, goal: &'static str) -> Figure {
    Figure {
        about: about.into(),
        value,
        goal,
    }
}

fn row(figure: &Figure, peer: Option<f64>) {
    let Figure { about, value, goal } = figure;
    let theirs = peer.map(|peer| format!("{peer:.2}")).unwrap_or_default();
    let ratio = peer.map(|peer| format!("{:.1}", peer / value));
    let ratio = ratio.unwrap_or_default();
    println!("{about:<58} {value:>10.2} {theirs:>10} {ratio:>7}  {goal}");
}

/// Writes of a custom resource whose definition has rules, and of one without.
async fn rules(target: &Target) -> Vec<Figure> {
    for (name, rules) in [("plain", 0), ("ruled", RULES)] {
        target.define(name, &objects::definition(name, rules)).await;
    }

    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        for (name, loads) in [("plain", &mut without), ("ruled", &mut with)] {
            let access = target.access(&objects::resource(name));
            let object = |number| objects::ship(name, "v1", &format!("r{round}-{number}"));
            let load = target.create(&access, WRITES, CLIENTS, object).await;
            // The first round warms up.
            if round > 0 {
                loads.push(load);
            }
        }
    }

    let (plain, ruled) = (cpu(&without), cpu(&with));
    vec![
        figure("create of a custom resource, server CPU, µs", plain, ""),
        figure(format!("  with {RULES} rules, µs"), ruled, ""),
        figure("  with rules to without", ruled / plain, "≤ 1.3"),
    ]
}

/// Creates of ConfigMaps while policies are about another resource, and while there are none.
async fn policies(target: &Target) -> Vec<Figure> {
    let maps = target.access(&Resource::builtin("", "v1", "configmaps"));
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..=ROUNDS {
        let before = target.create(&maps, WRITES, CLIENTS, |number| {
            objects::config_map(&format!("without-{round}-{number}"))
        });
        let before = before.await;
        for number in 0..POLICIES {
            for (plural, object) in objects::policy(number) {
                target
                    .cluster_wide(plural)
                    .create(&object)
                    .await
                    .expect("a policy");
            }
        }

        // Policies are compiled when they come; the first requests see that they are there.
        let warm = |number| objects::config_map(&format!("warm-{round}-{number}"));
        target.create(&maps, WRITES / 4, CLIENTS, warm).await;
        let after = target.create(&maps, WRITES, CLIENTS, |number| {
            objects::config_map(&format!("with-{round}-{number}"))
        });
        let after = after.await;
        for number in 0..POLICIES {
            for (plural, object) in objects::policy(number) {
                target.delete(&target.cluster_wide(plural), &object).await;
            }
        }

        if round > 0 {
            without.push(before);
            with.push(after);
        }
    }

    let (none, some) = (cpu(&without), cpu(&with));
    vec![
        figure("create of a ConfigMap, server CPU, µs", none, ""),
        figure(
            format!("  with {POLICIES} policies that match nothing, µs"),
            some,
            "",
        ),
        figure("  with policies to without", some / none, "≤ 1.05"),
    ]
}

/// Creates through one mutating and one validating webhook.
async fn through_webhooks(target: &Target, webhooks: &Webhooks) -> Vec<Figure> {
    for (plural, object) in objects::webhooks(&webhooks.url(), &webhooks.ca_bundle()) {
        target
            .cluster_wide(plural)
            .create(&object)
            .await
            .expect("a configuration");
    }

    let maps = target.access(&Resource::builtin("", "v1", "configmaps"));
    // A new configuration takes a moment until upstream's server knows it.
    loop {
        let probe = objects::config_map("probe");
        let made = maps.create(&probe).await.expect("a ConfigMap");
        target.delete(&maps, &probe).await;
        if made.at(&["data", "seen"]).is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    let one = target.create(&maps, WRITES, 1, |number| {
        objects::config_map(&format!("one-{number}"))
    });
    let one = one.await;
    let mut loads = Vec::new();
    for round in 0..ROUNDS {
        let many = target.create(&maps, WRITES, CLIENTS, |number| {
            objects::config_map(&format!("many-{round}-{number}"))
        });
        loads.push(many.await);
    }

    for (plural, object) in objects::webhooks(&webhooks.url(), &webhooks.ca_bundle()) {
        target.delete(&target.cluster_wide(plural), &object).await;
    }
    vec![
        figure(
            "create through two webhooks, one client, median, ms",
            one.median_ms,
            "",
        ),
        figure("  99 of 100 within, ms", one.p99_ms, ""),
        figure(
            format!("  {CLIENTS} clients: server CPU, µs"),
            cpu(&loads),
            "",
        ),
    ]
}

/// Lists in a version that a webhook converts to.
async fn conversion(target: &Target, webhooks: &Webhooks) -> Vec<Figure> {
    let definition = objects::converted(&webhooks.url(), &webhooks.ca_bundle());
    target.define("turned", &definition).await;
    let stored = target.access(&objects::resource("turned"));
    let object = |number| objects::ship("turned", "v1", &format!("ship-{number}"));
    target.create(&stored, CONVERTED, CLIENTS, object).await;

    let shown = target.access(&Resource {
        version: coracle_api::Text::new("v2"),
        ..objects::resource("turned")
    });
    let mut all = Vec::new();
    for _ in 0..=ROUNDS {
        let (cpu, began) = (target.cpu(), Instant::now());
        let list = shown.list(&ListOptions::default()).await.expect("a list");
        assert_eq!(list.items.len(), CONVERTED);
        let took = began.elapsed();
        all.push((took, target.cpu().saturating_sub(cpu)));
    }

    let (first, first_cpu) = all.remove(0);
    let seconds =
        |durations: Vec<Duration>| median(durations.iter().map(Duration::as_secs_f64).collect());
    let later = seconds(all.iter().map(|(took, _)| *took).collect());
    let later_cpu = seconds(all.iter().map(|(_, cpu)| *cpu).collect());
    vec![
        figure(
            format!("list of {CONVERTED} converted objects, the first, s"),
            first.as_secs_f64(),
            "",
        ),
        figure("  server CPU, s", first_cpu.as_secs_f64(), ""),
        figure("  the next ones, median, s", later, ""),
        figure("  server CPU, s", later_cpu, ""),
    ]
}

/// Many definitions with rules: what they take of memory, and of the time to start.
fn definitions(runtime: &Runtime) -> Vec<Figure> {
    let server = Ours::start_empty(ALONE);
    let settle = || std::thread::sleep(Duration::from_secs(3));
    settle();
    let empty = servers::resident_mib(&server.processes());
    let (server, without) = server.restart();

    let began = Instant::now();
    runtime.block_on(async {
        let target = Target::of(&server).await;
        let names = (0..DEFINITIONS).map(|number| format!("many{number}"));
        target.define_all(names, RULES_OF_EACH, CLIENTS).await;
    });
    let created = began.elapsed();
    settle();
    let full = servers::resident_mib(&server.processes());
    let (server, with) = server.restart();
    settle();
    let restarted = servers::resident_mib(&server.processes());

    let about = format!("{DEFINITIONS} definitions with {RULES_OF_EACH} rules each");
    vec![
        figure(format!("{about}: created, s"), created.as_secs_f64(), ""),
        figure("  memory on top, MiB", full - empty, ""),
        figure(
            "  memory on top after a restart, MiB",
            restarted - empty,
            "",
        ),
        figure("  start until ready, ms", with.as_secs_f64() * 1e3, ""),
        figure("  start without them, ms", without.as_secs_f64() * 1e3, ""),
    ]
}

/// The server's CPU for one write, in microseconds: the median of rounds.
fn cpu(loads: &[Load]) -> f64 {
    median(loads.iter().map(|load| load.cpu_micros).collect())
}
