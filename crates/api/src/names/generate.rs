//! Generates names from `generateName`.

/// The base, truncated if necessary, and five characters derived from `random`.
pub fn generate(base: &str, random: u64) -> String {
    let mut name = String::with_capacity(MAX_LENGTH);
    name.push_str(&base[..base.floor_char_boundary(MAX_LENGTH - SUFFIX_LENGTH)]);
    let mut random = random;
    for _ in 0..SUFFIX_LENGTH {
        let letters = ALPHABET.len() as u64;
        let index = usize::try_from(random % letters).expect("less than the alphabet's length");
        name.push(char::from(ALPHABET[index]));
        random /= letters;
    }
    name
}

/// No vowels and nothing that looks like one, so that no generated name is a word.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const MAX_LENGTH: usize = 63;
const SUFFIX_LENGTH: usize = 5;
