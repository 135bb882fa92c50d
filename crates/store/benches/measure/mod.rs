//! The load on a store and its measurement. etcd runs through the same functions.

use bytes::Bytes;
use coracle_store::{Put, Revision, Store, StoreError, SwapError};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::{Duration, Instant},
};

/// Writers that replace keys of their own as fast as they are answered, and a concurrent reader.
pub(crate) struct Load {
    pub(crate) keys: usize,
    pub(crate) value: usize,
    pub(crate) writers: usize,
    pub(crate) spell: Duration,
}

pub(crate) struct Outcome {
    took: Duration,
    writes: Vec<Duration>,
    reads: Vec<Duration>,
}

/// One line of the table.
pub(crate) struct Row {
    engine: &'static str,
    writers: usize,
    puts_per_second: f64,
    write: [Duration; 2],
    read: [Duration; 2],
    cpu_per_10k: f64,
    bytes_per_put: f64,
}

impl Load {
    pub(crate) async fn run(&self, store: Arc<dyn Store>) -> Outcome {
        let start = now();
        let stop = Arc::new(AtomicBool::new(false));
        let mut writers = tokio::task::JoinSet::new();
        for writer in 0..self.writers {
            let share = self.keys / self.writers;
            let keys = writer * share..(writer + 1) * share;
            writers.spawn(write(store.clone(), keys, self.value, start + self.spell));
        }

        let reader = tokio::spawn(read(store, self.keys, stop.clone()));
        let writes = writers.join_all().await.concat();
        let took = start.elapsed();
        stop.store(true, Ordering::Relaxed);

        Outcome {
            took,
            writes,
            reads: reader.await.expect("the reader"),
        }
    }
}

async fn write(
    store: Arc<dyn Store>,
    keys: std::ops::Range<usize>,
    size: usize,
    until: Instant,
) -> Vec<Duration> {
    let mut took = Vec::new();
    let mut seen = vec![None; keys.len()];
    while now() < until {
        let place = took.len() * 7919 % keys.len();
        let value = value(took.len() as u64, size);
        let put = Put::new(key(keys.start + place), value);
        let start = now();
        let revision = match seen[place] {
            Some(revision) => store.replace(revision, put).await.expect("a put"),
            None => first(&*store, put).await.expect("a first put"),
        };

        took.push(start.elapsed());
        seen[place] = Some(revision);
    }

    took
}

/// An earlier run may have left the key: then it is replaced.
async fn first(store: &dyn Store, put: Put) -> Result<Revision, SwapError> {
    match store.create(put.clone()).await {
        Err(SwapError::Conflict {
            found: Some(found), ..
        }) => store.replace(found.mod_revision, put).await,
        created => created,
    }
}

async fn read(store: Arc<dyn Store>, keys: usize, stop: Arc<AtomicBool>) -> Vec<Duration> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let start = now();
        store
            .get(key(took.len() * 31 % keys))
            .await
            .expect("a read");
        took.push(start.elapsed());
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    took
}

impl Row {
    pub(crate) fn new(
        engine: &'static str,
        writers: usize,
        outcome: &Outcome,
        cpu: Duration,
        disk: u64,
    ) -> Self {
        let puts = outcome.writes.len() as f64;
        Row {
            engine,
            writers,
            puts_per_second: puts / outcome.took.as_secs_f64(),
            write: [
                percentile(&outcome.writes, 50),
                percentile(&outcome.writes, 99),
            ],
            read: [
                percentile(&outcome.reads, 50),
                percentile(&outcome.reads, 99),
            ],
            cpu_per_10k: cpu.as_secs_f64() / puts * 10_000.0,
            bytes_per_put: disk as f64 / puts,
        }
    }
}

pub(crate) fn print_table(rows: &[Row]) {
    println!(
        "{:<10} {:>7} {:>9} {:>16} {:>16} {:>15} {:>12}",
        "engine",
        "writers",
        "puts/s",
        "write p50/p99 µs",
        "read p50/p99 µs",
        "CPU s/10k puts",
        "bytes/put"
    );

    for row in rows {
        let micros =
            |[half, most]: [Duration; 2]| format!("{}/{}", half.as_micros(), most.as_micros());
        println!(
            "{:<10} {:>7} {:>9.0} {:>16} {:>16} {:>15.3} {:>12.0}",
            row.engine,
            row.writers,
            row.puts_per_second,
            micros(row.write),
            micros(row.read),
            row.cpu_per_10k,
            row.bytes_per_put
        );
    }
}

/// The ratio of the first engine to each of the others with this many writers.
pub(crate) fn print_ratios(rows: &[Row], writers: usize) {
    let mut alike = rows.iter().filter(|row| row.writers == writers);
    let Some(ours) = alike.next() else { return };
    for peer in alike {
        println!(
            "{} beside {} at {writers} writers: {:.1} times the puts/s, 1/{:.1} of the CPU per put, \
             1/{:.0} of the read p99, 1/{:.1} of the bytes per put",
            ours.engine,
            peer.engine,
            ours.puts_per_second / peer.puts_per_second,
            peer.cpu_per_10k / ours.cpu_per_10k,
            peer.read[1].as_secs_f64() / ours.read[1].as_secs_f64(),
            peer.bytes_per_put / ours.bytes_per_put,
        );
    }
}

fn percentile(of: &[Duration], percent: usize) -> Duration {
    let mut sorted = of.to_vec();
    sorted.sort_unstable();
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

pub(crate) fn key(number: usize) -> Bytes {
    format!(
        "/registry/pods/namespace-{:03}/a-pod-of-some-name-{number:06}",
        number % 100
    )
    .into()
}

pub(crate) fn value(seed: u64, size: usize) -> Bytes {
    let mut value = vec![b'v'; size];
    value[..8].copy_from_slice(&seed.to_le_bytes());
    value.into()
}

type Putting<'a> = Pin<Box<dyn Future<Output = Result<Revision, StoreError>> + Send + 'a>>;

/// Drives all futures at once.
pub(crate) async fn join(mut futures: Vec<Putting<'_>>) -> Vec<Result<Revision, StoreError>> {
    let mut done = Vec::with_capacity(futures.len());
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| match future.as_mut().poll(context) {
            Poll::Ready(outcome) => {
                done.push(outcome);
                false
            }
            Poll::Pending => true,
        });

        if futures.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;

    done
}

/// User and system time of a process, by its process id.
pub(crate) fn cpu_time_of(process: &str) -> Duration {
    const TICKS: u64 = 100; // per second, on every relevant Linux

    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process");
    let fields = stat
        .rsplit(')')
        .next()
        .expect("fields after the name")
        .split_whitespace();

    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .map(|field| field.parse::<u64>().expect("a number"))
        .sum();

    Duration::from_millis(ticks * 1000 / TICKS)
}

/// Bytes that a process has written to disk, by its process id.
pub(crate) fn bytes_written_by(process: &str) -> u64 {
    field(&format!("/proc/{process}/io"), "write_bytes:")
}

pub(crate) fn resident_bytes() -> u64 {
    field("/proc/self/status", "VmRSS:") * 1024
}

fn field(file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(file).expect("a file of the kernel's");
    let line = text
        .lines()
        .find(|line| line.starts_with(name))
        .expect("the field");
    line.split_whitespace()
        .nth(1)
        .expect("a value")
        .parse()
        .expect("a number")
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    Instant::now()
}
