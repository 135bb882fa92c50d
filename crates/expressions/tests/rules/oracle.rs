//! A process of `tests/tools/cel-oracle`, which ends with its `Oracle`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

pub(crate) struct Oracle(Child);

impl Oracle {
    pub(crate) fn start() -> Oracle {
        let tools = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("test-tools");
        let program = tools.join("cel-oracle");
        assert!(
            program.exists(),
            "{} is missing: run scripts/test-prereqs.sh",
            program.display()
        );

        let mut command = Command::new(program);
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Oracle(piped.spawn().unwrap())
    }

    /// The answers to questions, all asked at once so that neither side waits for the other.
    pub(crate) fn ask(&mut self, questions: &[Value]) -> Vec<Value> {
        let mut input = self.0.stdin.take().unwrap();
        let output = BufReader::new(self.0.stdout.take().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for question in questions {
                    writeln!(input, "{question}").unwrap();
                }
            });

            let answers = output.lines().take(questions.len());
            answers
                .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
                .collect()
        })
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}
