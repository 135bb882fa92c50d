//! What it costs to read and write a typical running Pod, beside `serde_json` and typed structs, in one run.
//!
//! Rounds are interleaved and the median is shown: on a shared machine the ratios are what counts.

use std::hint::black_box;
use std::time::{Duration, Instant};

use coracle_api::Value;
use coracle_api::catalog::{BUILTIN, Struct};
use coracle_api::codec::{canonical, json, protobuf, yaml};
use coracle_api::typed;
use k8s_openapi::api::core::v1::Pod;

const POD: &[u8] = include_bytes!("pod.json");
const ROUNDS: usize = 15;
const REPEATS: u32 = 400;

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
    let decode = || json::decode(POD, Some(of.node())).expect("the fixture decodes").value;
    let tree = decode();
    let bytes = protobuf::encode(&tree, of).expect("the fixture encodes");
    let yaml_text = yaml::print(&tree);
    let serde_tree: serde_json::Value = serde_json::from_slice(POD).expect("JSON");
    let pod: Pod = serde_json::from_slice(POD).expect("a Pod");
    let mut canonical_tree = tree.clone();
    canonical::canonicalize(&mut canonical_tree, of.node());
    let mut cases = [
        Case::new("serde_json::Value  decode", || serde_json::from_slice::<serde_json::Value>(POD)),
        Case::new("k8s-openapi Pod    decode", || serde_json::from_slice::<Pod>(POD)),
        Case::new("json               decode", decode),
        Case::new("json untyped       decode", || json::parse(POD)),
        Case::new("protobuf           decode", || protobuf::decode(&bytes, &BUILTIN)),
        Case::new("yaml               decode", || yaml::decode(yaml_text.as_bytes())),
        Case::new("serde_json::Value  encode", || serde_json::to_vec(&serde_tree)),
        Case::new("k8s-openapi Pod    encode", || serde_json::to_vec(&pod)),
        Case::new("json               encode", || json::to_vec(&tree)),
        Case::new("protobuf           encode", || protobuf::encode(&tree, of)),
        Case::new("yaml               encode", || yaml::print(&tree)),
        Case::new("tree to typed Pod        ", || typed::from_tree::<Pod>(&tree)),
        Case::new("canonical form, settled  ", || {
            let mut value: Value = canonical_tree.clone();
            canonical::canonicalize(&mut value, of.node());
            value
        }),
    ];
    for _ in 0..ROUNDS {
        cases.iter_mut().for_each(Case::round);
    }
    println!("a Pod of {} bytes JSON, {} protobuf, {} YAML", POD.len() - 1, bytes.len(), yaml_text.len());
    let peers = [cases[0].median(), cases[6].median()];
    for case in &cases {
        let peer = if case.name.contains("encode") { peers[1] } else { peers[0] };
        let micros = case.median().as_secs_f64() * 1e6;
        println!(
            "{}  {micros:7.2} µs  {:5.2}x of serde_json::Value",
            case.name,
            case.median().as_secs_f64() / peer.as_secs_f64()
        );
    }
    let (protobuf, peer) = (cases[4].median(), peers[0]);
    println!(
        "protobuf decode is {:.2} times as fast as serde_json parsing the same object's JSON",
        peer.as_secs_f64() / protobuf.as_secs_f64()
    );
}
