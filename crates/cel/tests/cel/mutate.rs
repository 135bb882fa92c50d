//! Breaks an expression, as people who write them do: a character or a token is missing, doubled,
//! moved or another.

use fastrand::Rng;

const PIECES: &[&str] = &[
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    ":",
    "?",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "&&",
    "||",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    " in ",
    "=",
    "&",
    "|",
    "true",
    "null",
    "1",
    "0x",
    "1u",
    "1.5",
    "1e",
    "'",
    "\"",
    "'a'",
    "b'x'",
    "r'\\'",
    "x",
    "for",
    "if",
    "package",
    "has(",
    ".?",
    "[?",
    "\\",
    "\n",
    "\t",
    "//c\n",
    "`",
    "`a`",
    "@",
    "#",
    "$",
    "é",
    "日",
    "\u{1F600}",
    "1.",
    ".5",
    "9223372036854775808",
    "'''",
    "size",
    ".map(",
    ".all(x,",
    "a.b",
    "a{",
    "A{b:",
    "?",
    "_",
    "\u{a0}",
    "\u{feff}",
];

pub(crate) fn mutate(rng: &mut Rng, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=rng.usize(0..2) {
        let at = rng.usize(0..=characters.len());
        match rng.u8(0..6) {
            0 if at < characters.len() => {
                characters.remove(at);
            }
            1 if at < characters.len() => {
                let end = (at + rng.usize(1..6)).min(characters.len());
                characters.drain(at..end);
            }
            2 if at < characters.len() => {
                let end = (at + rng.usize(1..8)).min(characters.len());
                let piece: Vec<char> = characters[at..end].to_vec();
                let to = rng.usize(0..=characters.len());
                characters.splice(to..to, piece);
            }
            3 if at + 1 < characters.len() => characters.swap(at, at + 1),
            _ => {
                let piece = PIECES[rng.usize(0..PIECES.len())];
                characters.splice(at..at, piece.chars());
            }
        }
    }
    characters.into_iter().collect()
}
