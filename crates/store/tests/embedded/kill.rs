//! SIGKILL of a real process, repeatedly: this test starts itself as a process that writes and
//! reports what was acknowledged, kills it at a random moment, and checks the store.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests may"
)]

use coracle_store::{
    KeyRange, Put, RangeRequest, Revision, Store, StoreError, WatchItem, WatchRequest,
    embedded::{Config, Embedded, SystemClock, commands, files::RealFiles},
};
use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

const ROUNDS: usize = 60;
const WRITERS: usize = 8;
/// Set for the process that writes: the store's directory.
const CHILD: &str = "STORE_KILL_TEST_DIRECTORY";

#[test]
fn kill_9_at_random_moments_loses_nothing_acknowledged() {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is how the test configures its child"
    )]
    if let Ok(directory) = std::env::var(CHILD) {
        return runtime().block_on(write_until_killed(Path::new(&directory)));
    }

    let directory = tempfile::tempdir().unwrap();
    let mut rng = fastrand::Rng::with_seed(9);

    let mut known = Known::default();
    for round in 0..ROUNDS {
        known.learn(run_and_kill(
            directory.path(),
            Duration::from_micros(rng.u64(2_000..90_000)),
        ));
        runtime().block_on(known.check(directory.path(), round));
    }

    assert!(
        known.revision > Revision::new(ROUNDS as u64),
        "hardly anything was written"
    );

    let report = commands::check(directory.path()).unwrap();
    assert_eq!(report.revision, known.revision);
}

/// Small files, so that segments and parts are created while processes are killed.
fn small() -> Config {
    let tiny = Config {
        segment_bytes: 20_000,
        part_bytes: 10_000,
        recent_bytes: 4_000,
        ..Config::default()
    };
    Config {
        retention: Duration::ZERO,
        retained_revisions: 300,
        ..tiny
    }
}

fn open(directory: &Path) -> Embedded {
    let files = Arc::new(RealFiles::new(directory).unwrap());
    Embedded::open(small(), files, Arc::new(SystemClock::default())).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Many writers, each with a key of its own; every acknowledgement is printed before the next
/// write.
async fn write_until_killed(directory: &Path) {
    let store = Arc::new(open(directory));
    println!("\nopen {}", store.revision());

    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            for number in 0_u64.. {
                let key = format!("key{writer}-{}", number % 20);
                let value = format!("{number}-{}", "x".repeat(200));
                let revision = store
                    .put(Put::new(key.clone(), value.clone()))
                    .await
                    .unwrap();

                let mut out = std::io::stdout().lock();
                writeln!(out, "ack {revision} {key} {value}").unwrap();
                out.flush().unwrap();
            }
        });
    }

    writers.join_next().await;
}

struct Acknowledged {
    revision: Revision,
    key: String,
    value: String,
}

fn run_and_kill(directory: &Path, after: Duration) -> Vec<Acknowledged> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "kill::kill_9_at_random_moments_loses_nothing_acknowledged",
            "--nocapture",
        ])
        .env(CHILD, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);

    // The time starts when the store is open: before, there is nothing to lose.
    assert!(
        lines.any(|line| line.starts_with("open ")),
        "the child did not open the store"
    );

    let killer = std::thread::spawn(move || {
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    });

    let acknowledged = lines.filter_map(|line| parse(&line)).collect();
    killer.join().unwrap();

    acknowledged
}

fn parse(line: &str) -> Option<Acknowledged> {
    let mut words = line.strip_prefix("ack ")?.split(' ');
    let revision = Revision::new(words.next()?.parse().ok()?);
    let (key, value) = (words.next()?.to_owned(), words.next()?.to_owned());
    // A line that was cut by the kill is not an acknowledgement.
    (value.len() > 200).then_some(Acknowledged {
        revision,
        key,
        value,
    })
}

/// What the store must contain.
#[derive(Default)]
struct Known {
    revision: Revision,
    state: BTreeMap<String, (Revision, String)>,
}

impl Known {
    fn learn(&mut self, acknowledged: Vec<Acknowledged>) {
        for Acknowledged {
            revision,
            key,
            value,
        } in acknowledged
        {
            self.revision = self.revision.max(revision);
            let newest = self.state.entry(key).or_default();
            if revision > newest.0 {
                *newest = (revision, value);
            }
        }
    }

    async fn check(&mut self, directory: &Path, round: usize) {
        let store = open(directory);
        let answer = store
            .range(RangeRequest::new(KeyRange::all()))
            .await
            .unwrap();

        assert!(
            answer.revision >= self.revision,
            "round {round}: the revision went back"
        );

        let found: BTreeMap<_, _> = answer.kvs.iter().map(|kv| (text(&kv.key), kv)).collect();
        for (key, (revision, value)) in &self.state {
            let kv = found
                .get(key)
                .unwrap_or_else(|| panic!("round {round}: {key} is lost"));
            assert!(
                kv.mod_revision >= *revision,
                "round {round}: {key} went back"
            );

            assert!(
                kv.mod_revision > *revision || text(&kv.value) == *value,
                "round {round}: {key}"
            );
        }

        events_are_whole(&store, round).await;

        // Unacknowledged writes may be there too; from now on they must stay.
        self.revision = answer.revision;
        self.state = found
            .into_iter()
            .map(|(key, kv)| (key, (kv.mod_revision, text(&kv.value))))
            .collect();
    }
}

/// Every revision in the window has its event, with the previous value.
async fn events_are_whole(store: &Embedded, round: usize) {
    let status = store.status().await.unwrap();
    let first = status.compacted.max(Revision::new(2));
    let request = WatchRequest::new(KeyRange::all())
        .from(first)
        .with_previous();
    let mut watch = match store.watch(request).await {
        Err(StoreError::Compacted { .. }) => return, // compacted meanwhile
        opened => opened.unwrap(),
    };

    let mut next = first;
    while next <= status.revision {
        let item = match watch.next().await {
            Err(StoreError::Compacted { .. }) => return,
            item => item.unwrap(),
        };

        let WatchItem::Events(events) = item else {
            continue;
        };
        for event in events {
            assert_eq!(event.kv.mod_revision, next, "round {round}");
            assert_eq!(
                event.kv.version > 1,
                event.previous.is_some(),
                "round {round}"
            );
            next = next.next();
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
