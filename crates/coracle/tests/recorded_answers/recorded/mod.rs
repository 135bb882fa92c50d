//! The recorded answers of the real server, played against `coracle kube-apiserver`, and the list
//! of what is owed.
//!
//! The runners in `tests/tools` name every case that fails. A case that fails and is not in the
//! list fails the test; so does one in the list that passes: it is to be taken off, so that the
//! list only shrinks. `scripts/owed.sh` runs cases manually, and rewrites the lists.

mod server;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

use server::Server;

/// A kind of recorded answers.
pub(crate) struct Recorded {
    /// The folder below `tests`, and the runner's name.
    pub(crate) name: &'static str,
    /// How the names of its files end.
    pub(crate) extension: &'static str,
    /// `FILE:CASE` of a line that reports a failure, after `FAIL `.
    pub(crate) case: fn(&str) -> String,
    /// `FILE:CASE` of everything in a file.
    pub(crate) cases: fn(&str, &str) -> Vec<String>,
}

/// So many servers share the work: most of a scenario is waiting.
const SERVERS: usize = 8;

impl Recorded {
    /// Plays everything and compares with the list.
    pub(crate) fn check(&self) {
        let only = environment("CORACLE_ONLY");
        let rewrite = environment("CORACLE_OWED").is_some_and(|mode| mode == "rewrite");
        let (files, cases) = self.select(only.as_deref());
        let owed = self.owed();
        let (mut failed, mut log) = self.play(&files, only.as_deref());
        failed.retain(|case| cases.contains(case));

        // Some cases wait for time to pass, and a busy machine takes its own: what surprises is
        // tried once more, alone.
        let surprises: BTreeSet<String> = failed.difference(&owed).cloned().collect();
        if !surprises.is_empty() {
            let is_in = |file: &PathBuf, case: &String| {
                let stem = file.file_stem().unwrap().to_str().unwrap();
                case.strip_prefix(stem)
                    .is_some_and(|rest| rest.starts_with(':'))
            };

            let mut again = files.clone();
            again.retain(|file| surprises.iter().any(|case| is_in(file, case)));
            let (failed_again, log_again) = self.play(&again, only.as_deref());
            failed.retain(|case| !surprises.contains(case) || failed_again.contains(case));
            log.push_str(&log_again);
        }

        if only.is_some() {
            eprintln!("{log}");
        }

        if rewrite {
            let rest = owed.into_iter().filter(|case| !cases.contains(case));
            let all: BTreeSet<String> = rest
                .filter(|_| only.is_some())
                .chain(failed.clone())
                .collect();

            fs::write(
                self.list(),
                all.iter()
                    .fold(String::new(), |text, case| text + case + "\n"),
            )
            .unwrap();

            return;
        }

        let mut complaints = String::new();
        for case in failed.difference(&owed) {
            writeln!(complaints, "fails: {case}").unwrap();
        }

        for case in owed.difference(&failed) {
            if cases.contains(case) {
                writeln!(complaints, "passes, take it off the list: {case}").unwrap();
            } else if only.is_none() {
                writeln!(complaints, "is in the list and nowhere else: {case}").unwrap();
            }
        }

        let count = complaints.lines().count();
        assert!(
            count == 0,
            "{count} differences to {}:\n{complaints}\n{log}",
            self.list().display()
        );
    }

    /// The files to play, and every case in them.
    fn select(&self, only: Option<&str>) -> (Vec<PathBuf>, BTreeSet<String>) {
        let mut files: Vec<PathBuf> = fs::read_dir(folder(self.name))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();

        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == self.extension)
        });

        let mut cases = BTreeSet::new();
        files.retain(|file| {
            let stem = file.file_stem().unwrap().to_str().unwrap();
            let mut found = (self.cases)(stem, &fs::read_to_string(file).unwrap());
            found.retain(|case| only.is_none_or(|only| case.contains(only)));
            let any = !found.is_empty();
            cases.extend(found);
            any
        });

        (files, cases)
    }

    /// What failed, and all that the runners said.
    fn play(&self, files: &[PathBuf], only: Option<&str>) -> (BTreeSet<String>, String) {
        let waiting = Mutex::new(files.iter());
        let next = || waiting.lock().unwrap().next();
        let texts: Vec<String> = thread::scope(|scope| {
            let work = || {
                let server = Server::start();
                std::iter::from_fn(&next)
                    .map(|file| self.play_file(&server, file, only))
                    .collect::<String>()
            };

            let threads: Vec<_> = (0..SERVERS.min(files.len()))
                .map(|_| scope.spawn(work))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });

        let log = texts.concat();
        let failed = log
            .lines()
            .filter_map(|line| line.strip_prefix("FAIL "))
            .map(self.case)
            .collect();

        (failed, log)
    }

    fn play_file(&self, server: &Server, file: &Path, only: Option<&str>) -> String {
        let mut command = Command::new("python3");
        command
            .arg(folder("tools").join(format!("{}.py", self.name)))
            .args(["check", "-v"]);

        command.args(["--server", &server.url(), "--ca", &server.file("ca.crt")]);
        command.args([
            "--cert",
            &server.file("admin.crt"),
            "--key",
            &server.file("admin.key"),
        ]);

        // Steps of a scenario build on each other: it is played whole.
        if let Some(only) = only.filter(|_| self.name == "corpus") {
            command.args(["--only", only]);
        }

        let Output {
            status,
            stdout,
            stderr,
        } = command.arg(file).output().unwrap();

        let text = String::from_utf8_lossy(&stdout).into_owned();
        assert!(
            status.code().is_some_and(|code| code < 2) && text.lines().last().is_some_and(is_total),
            "{}: the runner ended with {status}:\n{text}\n{}",
            file.display(),
            String::from_utf8_lossy(&stderr)
        );

        text
    }

    fn list(&self) -> PathBuf {
        folder(self.name).join("owed.txt")
    }

    fn owed(&self) -> BTreeSet<String> {
        fs::read_to_string(self.list())
            .unwrap()
            .lines()
            .map(ToString::to_string)
            .collect()
    }
}

/// `N passed, M failed`.
fn is_total(line: &str) -> bool {
    line.split_once(" passed, ")
        .is_some_and(|(passed, failed)| {
            passed.parse::<u32>().is_ok()
                && failed.trim_end_matches(" failed").parse::<u32>().is_ok()
        })
}

fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.into_string().unwrap())
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests")
        .join(name)
}
