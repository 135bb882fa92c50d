//! Runs the fuzz targets briefly: over the corpus, over mutations of it, and over large hostile
//! inputs whose cost is counted in steps.

use std::path::{Path, PathBuf};

use coracle_api::fuzz::objects::Seeded;
use coracle_api::fuzz::{self, steps};

/// A target's name, which is its folder in `fuzz/corpus`, and its function.
type Target = (&'static str, fn(&[u8]));

const TARGETS: &[Target] = &[
    ("apply", fuzz::apply),
    ("fields_v1", fuzz::fields_v1),
    ("json", fuzz::json),
    ("json_patch", fuzz::json_patch),
    ("protobuf", fuzz::protobuf),
    ("quantities", fuzz::quantities),
    ("schema", fuzz::schema),
    ("selectors", fuzz::selectors),
    ("strategic_merge", fuzz::strategic_merge),
    ("yaml", fuzz::yaml),
];

/// Inputs that would be slow for a careless parser: the target, and what is repeated between a
/// start and an end.
const HOSTILE: &[(&str, &str, &str, &str)] = &[
    ("apply", "{\"spec\":{\"tolerations\":[", "{},", "{}]}}"),
    (
        "apply",
        "{\"metadata\":{\"labels\":{",
        "\"b\":\"\",\"a\":\"\",",
        "\"c\":\"\"}}}",
    ),
    (
        "apply",
        "{}\n{\"spec\":{\"containers\":[",
        "{\"name\":\"a\"},",
        "{\"name\":\"b\"}]}}",
    ),
    (
        "apply",
        "{}\n{\"metadata\":{\"managedFields\":[",
        "{\"manager\":\"a\"},",
        "{}]}}",
    ),
    (
        "apply",
        "{\"a\":[",
        "1,",
        "2]}\n{}\n{\"properties\":{\"a\":{\"x-kubernetes-list-type\":\"set\"}}}",
    ),
    ("fields_v1", "", "{\"f:a\":", ""),
    ("fields_v1", "{\"z:\":", "[", ""),
    ("fields_v1", "{\"f:", "a", "\":{}}"),
    ("fields_v1", "{\"f:", "\\n", "\":{}}"),
    ("fields_v1", "{\"z:\":{}", ",\"f:a\":{\"f:b\":{}}", "}"),
    ("fields_v1", "", " ", "{}"),
    ("json", "", "[", ""),
    ("json", "", "{\"a\":", ""),
    ("json", "[", "0,", "0]"),
    (
        "json",
        "{\"metadata\":{\"labels\":{",
        "\"b\":\"\",\"a\":\"\",",
        "\"c\":\"\"}}}",
    ),
    ("json", "{", "\"kind\":\"\",", "\"x\":0}"),
    ("json", "{\"spec\":{\"containers\":[", "{},", "{}]}}"),
    ("json", "\"", "\\ud800", "\""),
    ("json", "", " ", "1"),
    ("json", "-", "9", "e1"),
    ("json", "{\"data\":[", "[],", "[]]}"),
    (
        "json_patch",
        "{}\n[",
        "{\"op\":\"test\",\"path\":\"/a\"},",
        "{}]",
    ),
    (
        "json_patch",
        "{\"a\":[",
        "1,",
        "2]}\n[{\"op\":\"test\",\"path\":\"/a\",\"value\":[1]}]",
    ),
    (
        "json_patch",
        "{}\n[{\"op\":\"add\",\"path\":\"",
        "/a",
        "\"}]",
    ),
    ("json_patch", "{}\n{", "\"b\":0,\"a\":1,", "\"c\":0}"),
    ("protobuf", "", "\n\0", ""),
    ("protobuf", "", "\u{13}", ""),
    ("protobuf", "\u{12}\u{7f}", "\u{12}\0", ""),
    ("protobuf", "", "\n\u{2}\n\0", ""),
    ("quantities", "", "9", ""),
    ("quantities", "", "0", "1"),
    ("quantities", "0.", "9", "Ei"),
    ("quantities", "0.", "0", "1Ki"),
    ("quantities", "1e", "9", ""),
    ("quantities", "1", "Ki", ""),
    ("quantities", "1", "-", ""),
    (
        "schema",
        "{\"schema\":{\"properties\":{",
        "\"b\":{\"default\":1},\"a\":{},",
        "\"c\":{}}},\"value\":{}}",
    ),
    (
        "schema",
        "{\"schema\":{\"enum\":[",
        "0,",
        "1]},\"value\":2}",
    ),
    (
        "schema",
        "{\"schema\":{\"properties\":{\"x\":{\"x-kubernetes-list-type\":\"set\"}}},\"value\":{\"x\":[",
        "[1,2],",
        "0]}}",
    ),
    ("selectors", "", "application=frontend,", "c=d"),
    ("selectors", "a in (", "x,", "y)"),
    ("selectors", "a in (", ",", ")"),
    ("selectors", "a notin (", "(", ")"),
    ("selectors", "", "!", "a"),
    ("selectors", "", "=", ""),
    ("selectors", "", " ", "a"),
    ("selectors", "", "a", ""),
    ("selectors", "a=", "\\,", ""),
    ("selectors", "", "a=b\\\\,", ""),
    ("selectors", "", "\0", ""),
    (
        "strategic_merge",
        "{\"metadata\":{\"finalizers\":[",
        "\"a\",",
        "\"b\"]}}\n{\"metadata\":{\"finalizers\":[\"c\"]}}",
    ),
    (
        "strategic_merge",
        "{\"spec\":{\"volumes\":[",
        "{\"name\":1},",
        "{\"name\":2}]}}\n{\"spec\":{\"volumes\":[{\"name\":1}]}}",
    ),
    (
        "strategic_merge",
        "{}\n{\"spec\":{",
        "\"$setElementOrder/volumes\":[],",
        "\"volumes\":[]}}",
    ),
    (
        "strategic_merge",
        "{\"a\":[{}]}\n{\"a\":[",
        "{\"$patch\":\"delete\"},",
        "{}]}",
    ),
    ("yaml", "", "[", ""),
    ("yaml", "", "{a: ", ""),
    ("yaml", "[", "a, ", "b]"),
    ("yaml", "", "- a\n", ""),
    ("yaml", "a: \"", "\\x41 ", "\""),
    ("yaml", "a: |\n", "  b\n", ""),
    ("yaml", "&a a: [", "*a, ", "b]"),
    ("yaml", "", "%TAG !a! b\n", ""),
    ("yaml", "", "---\n", "a"),
];

const CHANGES_PER_TARGET: usize = 4000;

#[test]
fn the_corpus_keeps_every_property() {
    for (name, target) in TARGETS {
        for (file, data) in corpus(name) {
            run(name, &file, *target, &data);
        }
    }
}

#[test]
fn mutations_of_the_corpus_keep_every_property() {
    for (name, target) in TARGETS {
        let seeds = corpus(name);
        let mut random = Seeded::new(0x5eed);
        for round in 0..CHANGES_PER_TARGET {
            let (file, seed) = &seeds[below(&mut random, seeds.len())];
            let (_, other) = &seeds[below(&mut random, seeds.len())];
            let mut data = seed.clone();
            for _ in 0..=below(&mut random, 4) {
                change(&mut data, other, &mut random);
            }

            run(
                name,
                &format!("{file}, changed in round {round}"),
                *target,
                &data,
            );
        }
    }
}

#[test]
fn four_times_the_input_costs_at_most_six_times_the_steps() {
    if !cfg!(debug_assertions) {
        eprintln!("left out: steps are counted only in builds with debug assertions");
        return;
    }
    // Steps are counted per thread.
    std::thread::scope(|scope| {
        for hostile in HOSTILE {
            scope.spawn(move || check_cost(*hostile));
        }
    });
}

fn check_cost((name, start, repeated, end): (&str, &str, &str, &str)) {
    let (_, target) = TARGETS
        .iter()
        .find(|(target, _)| *target == name)
        .expect("a target of the table");

    let cost = |size: usize| {
        let input = [start, repeated.repeat(size / repeated.len()).as_str(), end].concat();
        steps::taken_by(|| target(input.as_bytes()))
    };
    let (small, large) = (cost(256 << 10), cost(1 << 20));

    let what = format!("{name}: {start:?}, then {repeated:?} over and over, then {end:?}");
    assert!(small > 0, "nothing counts the steps of {what}");
    assert!(
        large <= 6 * small,
        "{small} steps for 256 KiB, {large} for 1 MiB of {what}"
    );
}

#[test]
fn every_corpus_has_a_target() {
    // Other crates have targets too, and run their corpora themselves.
    let targets = corpus_root().join("../fuzz_targets");
    for folder in std::fs::read_dir(corpus_root()).unwrap() {
        let folder = folder.unwrap().file_name().into_string().unwrap();
        assert!(
            targets.join(format!("{folder}.rs")).exists(),
            "fuzz/corpus/{folder} has no target"
        );
    }

    for (name, _) in TARGETS {
        assert!(targets.join(format!("{name}.rs")).exists(), "{name}");
    }
}

fn run(name: &str, input: &str, target: fn(&[u8]), data: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| target(data)) {
        eprintln!("{name}, {input}: {:?}", String::from_utf8_lossy(data));
        std::panic::resume_unwind(panic);
    }
}

fn corpus_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// The files of a target's corpus, sorted by name.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = corpus_root().join(name);
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|file| file.expect("the folder can be listed").path())
        .map(|path| {
            let name = path
                .file_name()
                .expect("a file of the folder")
                .to_string_lossy()
                .into_owned();
            (name, std::fs::read(&path).expect("a file of the corpus"))
        })
        .collect();
    files.sort();

    assert!(!files.is_empty(), "{} is empty", folder.display());

    files
}

/// One mutation: a byte set, removed or inserted, a range repeated, or a range of another input
/// inserted.
fn change(data: &mut Vec<u8>, other: &[u8], random: &mut Seeded) {
    let index = below(random, data.len() + 1);
    let byte = match below(random, 3) {
        0 => u8::try_from(below(random, 256)).expect("below 256"),
        _ => *other
            .get(below(random, other.len().max(1)))
            .unwrap_or(&b'0'),
    };

    match below(random, 5) {
        0 if index < data.len() => data[index] = byte,
        1 if index < data.len() => drop(data.remove(index)),
        2 => data.insert(index, byte),
        3 => {
            let stretch = data[index..data.len().min(index + 16)].repeat(1 + below(random, 4));
            data.splice(index..index, stretch);
        }
        _ => {
            let start = below(random, other.len() + 1);
            let stretch = &other[start..other.len().min(start + 16)];
            data.splice(index..index, stretch.iter().copied());
        }
    }
}

fn below(random: &mut Seeded, bound: usize) -> usize {
    usize::try_from(random.below(bound as u64)).expect("below a usize")
}
