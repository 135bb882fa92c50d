//! The cases of `tests/corpus`: single changes to valid objects, and the real server's answers to
//! them.

use crate::recorded;

use coracle_api::Value;
use coracle_api::codec::json;
use recorded::Recorded;

#[test]
fn changed_objects_are_judged_as_the_real_server_judged_them() {
    Recorded {
        name: "corpus",
        extension: "jsonl",
        case: ToString::to_string,
        cases: |file, text| {
            // The first line is the head.
            let cases = text
                .lines()
                .skip(1)
                .map(|line| json::parse(line.as_bytes()).unwrap());
            cases
                .map(|case| format!("{file}:{}", case.get("id").and_then(Value::as_str).unwrap()))
                .collect()
        },
    }
    .check();
}
