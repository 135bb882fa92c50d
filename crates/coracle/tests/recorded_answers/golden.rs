//! The scenarios of `tests/golden`: requests, and the real server's answers to them.

use crate::recorded;

use coracle_api::Value;
use coracle_api::codec::json;
use recorded::Recorded;

#[test]
fn scenarios_are_answered_as_the_real_server_answered_them() {
    Recorded {
        name: "golden",
        extension: "json",
        case: |line| line.replacen(" / ", ":", 1),
        cases: |file, text| {
            let scenario = json::parse(text.as_bytes()).unwrap();
            let steps = scenario.get("steps").and_then(Value::as_array).unwrap();

            let name = |step: &Value| {
                format!(
                    "{file}:{}",
                    step.get("name").and_then(Value::as_str).unwrap()
                )
            };

            steps.iter().map(name).collect()
        },
    }
    .check();
}
