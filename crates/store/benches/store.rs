//! The store compared with etcd, on the same disk, in one run: `cargo bench -p coracle-store`.
//!
//! Compare-and-swap puts of 1.5 KiB with 1, 16, 64 and 256 writers, each durable before it is
//! acknowledged, and one concurrent reader; then the memory that 100,000 keys take and how long
//! recovery takes.

#![expect(clippy::print_stdout, reason = "a benchmark prints its results")]

mod measure;
mod peer;

use bytes::Bytes;
use coracle_store::{
    Put, Revision, Store,
    embedded::{Config, Embedded, SystemClock, files::RealFiles},
};
use measure::{
    Load, Row, bytes_written_by, cpu_time_of, print_ratios, print_table, resident_bytes,
};
use peer::Peer;
use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

const KEYS: usize = 50_000;
const VALUE: usize = 1536;
const WRITERS: [usize; 4] = [1, 16, 64, 256];
const SPELL: Duration = Duration::from_secs(3);
const MANY: usize = 100_000;
/// Followed by a directory: only its recovery is measured.
const RECOVER: &str = "--recover";

fn main() {
    let mut arguments = std::env::args()
        .skip_while(|argument| argument != RECOVER)
        .skip(1);
    if let Some(directory) = arguments.next() {
        return recover(Path::new(&directory));
    }

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");

    let directory = tempfile::tempdir_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
        .expect("a directory on the disk");
    let mut rows = load(&runtime, &directory.path().join("load"));
    for (name, program) in peer::programs() {
        rows.extend(load_peer(
            &runtime,
            name,
            &program,
            &directory.path().join(name),
        ));
    }

    print_table(&rows);
    println!();
    print_ratios(&rows, 64);
    println!();

    hundred_thousand(&runtime, &directory.path().join("many"));
    let itself = std::env::current_exe().expect("the benchmark");
    let again = std::process::Command::new(itself)
        .arg(RECOVER)
        .arg(directory.path().join("many"))
        .status();
    assert!(again.expect("a second process").success());
}

fn load(runtime: &tokio::runtime::Runtime, directory: &Path) -> Vec<Row> {
    let store = Arc::new(open(directory));

    // The CPU time of this whole process, including writers and reader.
    let rows = spells(
        runtime,
        "embedded",
        &(store.clone() as Arc<dyn Store>),
        "self",
    );

    let (memory, status) = (
        store.memory(),
        runtime.block_on(store.status()).expect("a status"),
    );

    println!(
        "after the load: revision {}, files of {} MiB for {} MiB live, history of {} MiB in memory\n",
        status.revision,
        status.file_bytes >> 20,
        memory.live_bytes >> 20,
        memory.history_bytes >> 20
    );

    rows
}

/// The same for etcd. The CPU time is that of its own process, without writers and reader.
fn load_peer(
    runtime: &tokio::runtime::Runtime,
    name: &'static str,
    program: &Path,
    directory: &Path,
) -> Vec<Row> {
    let peer = Peer::start(program, directory);
    let store: Arc<dyn Store> = Arc::new(runtime.block_on(peer.store()));
    spells(runtime, name, &store, &peer.process())
}

fn spells(
    runtime: &tokio::runtime::Runtime,
    engine: &'static str,
    store: &Arc<dyn Store>,
    process: &str,
) -> Vec<Row> {
    let spell = |writers| {
        let load = Load {
            keys: KEYS,
            value: VALUE,
            writers,
            spell: SPELL,
        };

        let (cpu, disk) = (cpu_time_of(process), bytes_written_by(process));
        let outcome = runtime.block_on(load.run(store.clone()));
        let (cpu, disk) = (cpu_time_of(process) - cpu, bytes_written_by(process) - disk);

        Row::new(engine, writers, &outcome, cpu, disk)
    };

    WRITERS.map(spell).into()
}

fn open(directory: &Path) -> Embedded {
    let files = Arc::new(RealFiles::new(directory).expect("a directory"));
    Embedded::open(Config::default(), files, Arc::new(SystemClock::default())).expect("a store")
}

/// The memory of 100,000 keys just after they were written.
fn hundred_thousand(runtime: &tokio::runtime::Runtime, directory: &Path) {
    let before = resident_bytes();
    let store = open(directory);
    runtime.block_on(async {
        for start in (0..MANY).step_by(1000) {
            let puts =
                (start..start + 1000).map(|n| store.put(Put::new(measure::key(n), value(n))));
            for put in measure::join(puts.collect()).await {
                put.expect("a put");
            }
        }
    });

    report_memory("written", resident_bytes().saturating_sub(before));
}

/// Their memory after a restart, and how long the restart takes, in a process of its own.
fn recover(directory: &Path) {
    let before = resident_bytes();
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
    let start = Instant::now();
    let store = open(directory);
    println!(
        "recovery of {MANY} keys: {:.0} ms",
        start.elapsed().as_secs_f64() * 1000.0
    );
    assert!(store.revision() > Revision::new(MANY as u64));
    report_memory("recovered", resident_bytes().saturating_sub(before));
}

fn report_memory(when: &str, resident: u64) {
    let data = MANY * (VALUE + measure::key(0).len());
    let ratio = resident as f64 / data as f64;
    println!(
        "memory of {MANY} keys, {when}: {} MiB, {ratio:.2} times the data",
        resident >> 20
    );
}

fn value(number: usize) -> Bytes {
    measure::value(number as u64, VALUE)
}
