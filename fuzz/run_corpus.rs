// Runs a fuzz target over its stored inputs and over mutations of them. Included by the tests of each crate that has
// targets, because a library of its own would be one more crate to build for 80 lines.

use std::path::Path;

/// Runs `target` over every file of `fuzz/corpus/<name>`, then over `mutations` mutations of them, always the same ones.
pub(crate) fn run(name: &str, target: fn(&[u8]), mutations: usize) {
    let seeds = corpus(name);
    for (file, data) in &seeds {
        run_one(name, file, target, data);
    }

    let mut random = Random(0x5eed);
    for round in 0..mutations {
        let (file, seed) = &seeds[random.below(seeds.len())];
        let (_, other) = &seeds[random.below(seeds.len())];
        let mut data = seed.clone();
        for _ in 0..=random.below(4) {
            mutate(&mut data, other, &mut random);
        }

        let input = format!("{file}, mutated in round {round}");
        run_one(name, &input, target, &data);
    }
}

fn run_one(name: &str, input: &str, target: fn(&[u8]), data: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| target(data)) {
        eprintln!("{name}, {input}: {:?}", String::from_utf8_lossy(data));
        std::panic::resume_unwind(panic);
    }
}

/// The files of a target's corpus, sorted by name.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(name);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));

    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("the folder can be listed"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            (
                name,
                std::fs::read(entry.path()).expect("a file of the corpus can be read"),
            )
        })
        .collect();
    files.sort();

    assert!(!files.is_empty(), "{} is empty", folder.display());

    files
}

/// One mutation: a byte set, removed or inserted, a range repeated, or a range of another input inserted.
fn mutate(data: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let index = random.below(data.len() + 1);
    let byte = match random.below(3) {
        0 => random.next().to_le_bytes()[0],
        _ => *other.get(random.below(other.len().max(1))).unwrap_or(&b'0'),
    };

    match random.below(5) {
        0 if index < data.len() => data[index] = byte,
        1 if index < data.len() => drop(data.remove(index)),
        2 => data.insert(index, byte),
        3 => {
            let range = data[index..data.len().min(index + 16)].repeat(1 + random.below(4));
            data.splice(index..index, range);
        }
        _ => {
            let start = random.below(other.len() + 1);
            let range = &other[start..other.len().min(start + 16)];
            data.splice(index..index, range.iter().copied());
        }
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }
}
