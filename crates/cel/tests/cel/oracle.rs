//! Asks upstream: a process of `tests/tools/cel-oracle`, which ends with its `Oracle`.

use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::answer::Answer;
use crate::question::Question;

pub(crate) struct Oracle {
    process: Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(tool("cel-oracle"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the oracle starts");
        let input = BufWriter::new(process.stdin.take().expect("piped"));
        let output = BufReader::new(process.stdout.take().expect("piped"));
        Self {
            process,
            input,
            output,
        }
    }

    pub(crate) fn ask(&mut self, question: &Question) -> Answer {
        self.ask_all(std::slice::from_ref(question))
            .pop()
            .expect("one answer to one question")
    }

    /// Asks all at once, so that neither side waits for the other.
    pub(crate) fn ask_all(&mut self, questions: &[Question]) -> Vec<Answer> {
        let input = &mut self.input;
        let output = &mut self.output;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for question in questions {
                    serde_json::to_writer(&mut *input, question).expect("the oracle reads");
                    input.write_all(b"\n").expect("the oracle reads");
                }
                input.flush().expect("the oracle reads");
            });
            questions.iter().map(|asked| read(output, asked)).collect()
        })
    }
}

fn read(output: &mut BufReader<ChildStdout>, asked: &Question) -> Answer {
    let mut line = String::new();
    output.read_line(&mut line).expect("the oracle answers");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?} to {asked:?}"))
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.process.kill().expect("the process is ours");
        self.process.wait().expect("the process is ours");
    }
}

/// What `scripts/build-cel-oracle.sh` made.
pub(crate) fn tool(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("test-tools")
        .join(name);
    assert!(
        path.exists(),
        "missing {}: run scripts/test-prereqs.sh",
        path.display()
    );
    path
}
