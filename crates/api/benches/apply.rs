//! What server-side apply costs for a typical running Pod.
//!
//! Rounds are interleaved and the median is shown: on a shared machine the ratios are what counts.

use std::hint::black_box;
use std::time::{Duration, Instant};

use coracle_api::Value;
use coracle_api::apply::{Tracker, Type, fields_v1, only_version};
use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::{canonical, json};
use coracle_api::time::Timestamp;

const POD: &[u8] = include_bytes!("pod.json");
const ROUNDS: usize = 15;
const REPEATS: u32 = 400;
const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

struct Case<'a> {
    name: &'static str,
    work: Box<dyn FnMut() + 'a>,
    rounds: Vec<Duration>,
}

impl<'a> Case<'a> {
    fn new<T>(name: &'static str, mut work: impl FnMut() -> T + 'a) -> Case<'a> {
        let work = Box::new(move || {
            black_box(work());
        });
        Case { name, work, rounds: Vec::new() }
    }

    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    fn round(&mut self) {
        let start = Instant::now();
        for _ in 0..REPEATS {
            (self.work)();
        }
        self.rounds.push(start.elapsed() / REPEATS);
    }

    fn median(&self) -> Duration {
        let mut sorted = self.rounds.clone();
        sorted.sort();
        sorted[sorted.len() / 2]
    }
}

#[expect(clippy::print_stdout, reason = "the result of a benchmark is what it prints")]
fn main() {
    let of: Struct<'static> = BUILTIN.root(BUILTIN.kind_of("v1", "Pod").expect("Pods are built in"));
    let tracker = Tracker {
        api_version: "v1",
        kind: "Pod",
        subresource: "",
        of: Type::of_kind("v1", "Pod").expect("Pods are built in"),
        filters: &[],
        convert: &only_version,
    };
    let mut pod = json::decode(POD, Some(of.node())).expect("the fixture decodes").value;
    canonical::canonicalize(&mut pod, of.node());
    // A configuration as somebody would write it: without what the server added.
    let mut config = json::parse(POD).expect("JSON");
    let members = config.as_object_mut().expect("an object");
    members.remove("status");
    members.object_mut("metadata").retain(|name, _| matches!(name, "name" | "namespace" | "labels"));
    let create = || tracker.apply(None, &config, "deployer", false, NOON).expect("applies to nothing");
    let live = tracker.update(None, pod.clone(), "kubelet", NOON).expect("a Pod");
    let live = tracker.apply(Some(&live), &config, "deployer", true, NOON).expect("applies");
    let mut changed = config.clone();
    let spec = changed.as_object_mut().expect("an object").object_mut("spec");
    spec.insert("terminationGracePeriodSeconds", 5i64);
    spec.remove("priority");
    let status = with_phase(&live, "Failed");
    let status_tracker = Tracker { subresource: "status", ..tracker };
    let entry =
        live.at(&["metadata", "managedFields"]).and_then(Value::as_array).and_then(|entries| entries.last());
    let Some(Value::Raw(fields)) = entry.and_then(|entry| entry.get("fieldsV1")) else { panic!("no entry") };
    let set = fields_v1::decode(fields.as_str()).expect("what was written can be read");
    let mut cases = [
        Case::new("apply to nothing         ", create),
        Case::new("apply, nothing changed   ", || {
            tracker.apply(Some(&live), &config, "deployer", false, NOON)
        }),
        Case::new("apply, a field changed   ", || {
            tracker.apply(Some(&live), &changed, "deployer", true, NOON)
        }),
        Case::new("update of the status     ", || {
            status_tracker.update(Some(&live), status.clone(), "kubelet", NOON)
        }),
        Case::new("copy of the Pod          ", || status.clone()),
        Case::new("FieldsV1            decode", || fields_v1::decode(fields.as_str())),
        Case::new("FieldsV1            encode", || fields_v1::encode(&set)),
    ];
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(Case::round);
    }
    println!("a Pod of {} bytes JSON, FieldsV1 of {} bytes", POD.len() - 1, fields.as_str().len());
    for case in &cases {
        println!("{}  {:7.2} µs", case.name, case.median().as_secs_f64() * 1e6);
    }
}

fn with_phase(pod: &Value, phase: &str) -> Value {
    let mut pod = pod.clone();
    let status = pod.as_object_mut().expect("an object").object_mut("status");
    status.insert("phase", phase);
    status.insert("reason", "Evicted");
    pod
}
