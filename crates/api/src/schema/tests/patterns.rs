//! Regular expressions in Go's syntax: which of a few texts they match, or Go's error. Recorded
//! from Go.

use crate::schema::Pattern;

#[test]
fn expressions_match_what_go_matches_and_fail_in_gos_words() {
    for (pattern, expected) in ROWS {
        match (Pattern::new(pattern), expected) {
            (Ok(compiled), Ok(matched)) => {
                let found: Vec<&str> = TEXTS
                    .iter()
                    .copied()
                    .filter(|text| compiled.is_match(text))
                    .collect();
                assert_eq!(found, *matched, "{pattern:?}");
            }
            (Err(error), Err(words)) => assert_eq!(error.to_string(), *words),
            (found, expected) => panic!("{pattern:?}: {found:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn hostile_expressions_are_bounded_in_time_and_memory() {
    let text = "a".repeat(100_000);
    for pattern in [
        "(a*)*b",
        "(a|aa)+$b",
        "(.*)(.*)(.*)(.*)(.*)c",
        "(a{1,30}){1,30}b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
    ] {
        assert!(!Pattern::new(pattern).unwrap().is_match(&text), "{pattern}");
    }

    for (pattern, words) in [
        (r"((\pL{100}){10}|\pN{1000}){2}", "invalid repeat count"),
        (
            &*format!("({}){{1000}}", "a".repeat(4000)),
            "expression too large",
        ),
        (&*r"\pL".repeat(30_000), "expression too large"),
        (
            &*format!("{}a{}", "(".repeat(1001), ")".repeat(1001)),
            "expression nests too deeply",
        ),
    ] {
        let error = Pattern::new(pattern).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("error parsing regexp: {words}")),
            "{error}"
        );
    }
}

#[test]
fn large_classes_are_counted_as_often_as_go_counts_them() {
    let check = |pattern: &str, text: &str, expected: bool| {
        assert_eq!(
            Pattern::new(pattern).unwrap().is_match(text),
            expected,
            "{pattern} on {text:?}"
        );
    };

    check(r"^[\pL]{0,200}$", "Ελληνικά", true);
    check(r"^[\pL]{0,200}$", &"ж".repeat(200), true);
    check(r"^[\pL]{0,200}$", &"ж".repeat(201), false);
    check(r"^[\pL]{0,200}$", "a1", false);
    check(r"^[\pL\pN _.-]{1,1000}$", &"é 1".repeat(333), true);
    check(r"^[\pL\pN _.-]{1,1000}$", &"é 1".repeat(334), false);
    check(r"(\pL{100}){10}", &"a".repeat(999), false);
    check(r"(\pL{100}){10}", &"a".repeat(1000), true);
    check(r"\b\pL{300}\b", &"a".repeat(300), true);
    check(r"\b\pL{300}\b", &"a".repeat(301), false);

    // The maximum nesting in Go.
    let high = format!("{}a{}", "(?:".repeat(990), ")?".repeat(990));
    check(&high, "a", true);
    let many = r"[\pL\pN\pS]{999}".repeat(20);
    check(&many, &"a".repeat(19_980), true);
    check(&many, &"a".repeat(19_979), false);
}

#[test]
fn reading_an_expression_does_not_compile_it() {
    // As many as fit into a definition; each would take milliseconds to compile.
    let patterns: Vec<Pattern> = (0..5000)
        .map(|index| Pattern::new(&format!(r"^[\pL\d]{{0,{}}}$", index % 1000)).unwrap())
        .collect();
    assert!(patterns.iter().all(|pattern| pattern.weight() > 500));
    assert!(patterns[3].is_match("abc") && !patterns[3].is_match("abcd"));
}

const TEXTS: &[&str] = &[
    "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀", "{",
    "a{", "&", "~", "[", "]", "a{2}",
];

const ROWS: &[(&str, Result<&[&str], &str>)] = &[
    ("a", Ok(&["a", "aaa", "a\nb", "a.b", "a{", "a{2}"])),
    ("b", Ok(&["b", "a\nb", "a.b"])),
    (
        ".",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    ("\\d", Ok(&["1", "a{2}"])),
    (
        "\\w",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "1", "_", "a\nb", "a.b", "a{", "a{2}",
        ]),
    ),
    ("\\s", Ok(&[" ", "a\nb"])),
    (
        "\\D",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "٣", "_", "-", " ", "a\nb", "a.b", "😀", "{",
            "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\W",
        Ok(&[
            "é", "α", "٣", "-", " ", "a\nb", "a.b", "😀", "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\S",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", "a\nb", "a.b", "😀", "{",
            "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\b",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "1", "_", "a\nb", "a.b", "a{", "a{2}",
        ]),
    ),
    (
        "\\B",
        Ok(&[
            "aaa", "é", "α", "٣", "-", " ", "😀", "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "[a-z]",
        Ok(&["a", "b", "aaa", "k", "a\nb", "a.b", "a{", "a{2}"]),
    ),
    (
        "[^a-z]",
        Ok(&[
            "A", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀", "{", "a{", "&", "~",
            "[", "]", "a{2}",
        ]),
    ),
    ("[\\d-]", Ok(&["1", "-", "a{2}"])),
    ("[]a]", Ok(&["a", "aaa", "a\nb", "a.b", "a{", "]", "a{2}"])),
    (
        "[^]a]",
        Ok(&[
            "b", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀", "{", "a{",
            "&", "~", "[", "a{2}",
        ]),
    ),
    (
        "[a\\]b]",
        Ok(&["a", "b", "aaa", "a\nb", "a.b", "a{", "]", "a{2}"]),
    ),
    (
        "[[:alpha:]]",
        Ok(&["a", "b", "aaa", "A", "k", "K", "a\nb", "a.b", "a{", "a{2}"]),
    ),
    (
        "[[:^digit:]x]",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "٣", "_", "-", " ", "a\nb", "a.b", "😀", "{",
            "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "[[:foo:]]",
        Err("error parsing regexp: invalid character class range: `[:foo:]`"),
    ),
    (
        "\\pL",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "a\nb", "a.b", "a{", "a{2}",
        ]),
    ),
    ("\\p{Greek}", Ok(&["α"])),
    (
        "\\P{L}",
        Ok(&[
            "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀", "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\p{^L}",
        Ok(&[
            "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀", "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\p{Foo}",
        Err("error parsing regexp: invalid character class range: `\\p{Foo}`"),
    ),
    (
        "\\pX",
        Err("error parsing regexp: invalid character class range: `\\pX`"),
    ),
    ("\\x41", Ok(&["A"])),
    ("\\x{1F600}", Ok(&["😀"])),
    (
        "\\x{zz}",
        Err("error parsing regexp: invalid escape sequence: `\\x{z`"),
    ),
    (
        "\\x4",
        Err("error parsing regexp: invalid escape sequence: `\\x4`"),
    ),
    ("\\101", Ok(&["A"])),
    ("\\0", Ok(&[])),
    (
        "\\1",
        Err("error parsing regexp: invalid escape sequence: `\\1`"),
    ),
    (
        "\\8",
        Err("error parsing regexp: invalid escape sequence: `\\8`"),
    ),
    ("\\Qa.b\\E", Ok(&["a.b"])),
    ("\\Qa", Ok(&["a", "aaa", "a\nb", "a.b", "a{", "a{2}"])),
    (
        "\\A",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\z",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\Z",
        Err("error parsing regexp: invalid escape sequence: `\\Z`"),
    ),
    (
        "\\C",
        Err("error parsing regexp: invalid escape sequence: `\\C`"),
    ),
    ("\\a", Ok(&[])),
    (
        "\\q",
        Err("error parsing regexp: invalid escape sequence: `\\q`"),
    ),
    ("\\_", Ok(&["_"])),
    ("\\-", Ok(&["-"])),
    ("é", Ok(&["é"])),
    ("{", Ok(&["{", "a{", "a{2}"])),
    ("}", Ok(&["a{2}"])),
    ("{,2}", Ok(&[])),
    ("{1", Ok(&[])),
    ("a{2}", Ok(&["aaa"])),
    ("a{2,3}", Ok(&["aaa"])),
    (
        "a{3,2}",
        Err("error parsing regexp: invalid repeat count: `{3,2}`"),
    ),
    (
        "a{1001}",
        Err("error parsing regexp: invalid repeat count: `{1001}`"),
    ),
    (
        "a{0}",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "(a{30}){40}",
        Err("error parsing regexp: invalid repeat count: `{40}`"),
    ),
    (
        "(?:a|b)",
        Ok(&["a", "b", "aaa", "a\nb", "a.b", "a{", "a{2}"]),
    ),
    ("(a)", Ok(&["a", "aaa", "a\nb", "a.b", "a{", "a{2}"])),
    ("(?i)a", Ok(&["a", "aaa", "A", "a\nb", "a.b", "a{", "a{2}"])),
    (
        "(?i:A)",
        Ok(&["a", "aaa", "A", "a\nb", "a.b", "a{", "a{2}"]),
    ),
    (
        "(?s).",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    ("(?m)^a$", Ok(&["a", "a\nb"])),
    ("(?U)a+", Ok(&["a", "aaa", "a\nb", "a.b", "a{", "a{2}"])),
    ("(?P<n>a)", Ok(&["a", "aaa", "a\nb", "a.b", "a{", "a{2}"])),
    ("(?<n>a)", Ok(&["a", "aaa", "a\nb", "a.b", "a{", "a{2}"])),
    (
        "(?P<n-x>a)",
        Err("error parsing regexp: invalid named capture: `(?P<n-x>`"),
    ),
    (
        "(?P<n",
        Err("error parsing regexp: invalid named capture: `(?P<n`"),
    ),
    (
        "(?=a)",
        Err("error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
    ),
    (
        "(?!a)",
        Err("error parsing regexp: invalid or unsupported Perl syntax: `(?!`"),
    ),
    (
        "(?<=a)",
        Err("error parsing regexp: invalid named capture: `(?<=a)`"),
    ),
    (
        "(?x) a",
        Err("error parsing regexp: invalid or unsupported Perl syntax: `(?x`"),
    ),
    ("(?-i)a", Ok(&["a", "aaa", "a\nb", "a.b", "a{", "a{2}"])),
    (
        "(?i-)a",
        Err("error parsing regexp: invalid or unsupported Perl syntax: `(?i-)`"),
    ),
    (
        "(?)",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "(?#c)",
        Err("error parsing regexp: invalid or unsupported Perl syntax: `(?#`"),
    ),
    ("(", Err("error parsing regexp: missing closing ): `(`")),
    (")", Err("error parsing regexp: unexpected ): `)`")),
    ("[", Err("error parsing regexp: missing closing ]: `[`")),
    ("[a", Err("error parsing regexp: missing closing ]: `[a`")),
    (
        "[z-a]",
        Err("error parsing regexp: invalid character class range: `z-a`"),
    ),
    (
        "[a-\\d]",
        Err("error parsing regexp: invalid escape sequence: `\\d`"),
    ),
    (
        "[a&&b]",
        Ok(&["a", "b", "aaa", "a\nb", "a.b", "a{", "&", "a{2}"]),
    ),
    (
        "[a--b]",
        Err("error parsing regexp: invalid character class range: `a--`"),
    ),
    ("[a-]", Ok(&["a", "aaa", "-", "a\nb", "a.b", "a{", "a{2}"])),
    ("[-a]", Ok(&["a", "aaa", "-", "a\nb", "a.b", "a{", "a{2}"])),
    (
        "[\\w.-]",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "1", "_", "-", "a\nb", "a.b", "a{", "a{2}",
        ]),
    ),
    (
        "*",
        Err("error parsing regexp: missing argument to repetition operator: `*`"),
    ),
    (
        "+",
        Err("error parsing regexp: missing argument to repetition operator: `+`"),
    ),
    (
        "?",
        Err("error parsing regexp: missing argument to repetition operator: `?`"),
    ),
    (
        "a**",
        Err("error parsing regexp: invalid nested repetition operator: `**`"),
    ),
    (
        "a*?",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "a*+",
        Err("error parsing regexp: invalid nested repetition operator: `*+`"),
    ),
    (
        "a{2}{3}",
        Err("error parsing regexp: invalid nested repetition operator: `{2}{3}`"),
    ),
    (
        "|",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "^",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "$",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\",
        Err("error parsing regexp: trailing backslash at end of expression: ``"),
    ),
    (
        "x*",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "[\\pL\\d]",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "a\nb", "a.b", "a{", "a{2}",
        ]),
    ),
    ("[\\x{100}-\\x{200}]", Ok(&[])),
    ("\\.", Ok(&["a.b"])),
    ("/", Ok(&[])),
    ("#", Ok(&[])),
    (" ", Ok(&[" "])),
    ("\\ ", Ok(&[" "])),
    ("&", Ok(&["&"])),
    ("~", Ok(&["~"])),
    ("-", Ok(&["-"])),
    ("\"", Ok(&[])),
    ("<", Ok(&[])),
    ("\\/", Ok(&[])),
    ("[~]", Ok(&["~"])),
    ("[#]", Ok(&[])),
    ("[{]", Ok(&["{", "a{", "a{2}"])),
    ("[(]", Ok(&[])),
    ("\\n", Ok(&["a\nb"])),
    ("\n", Ok(&["a\nb"])),
    (
        "\\e",
        Err("error parsing regexp: invalid escape sequence: `\\e`"),
    ),
    (
        "[\\b]",
        Err("error parsing regexp: invalid escape sequence: `\\b`"),
    ),
    (
        "[\\Q]",
        Err("error parsing regexp: invalid escape sequence: `\\Q`"),
    ),
    ("(?i)[k]", Ok(&["k", "K"])),
    ("(?i)ſ", Ok(&[])),
    ("(?i)K", Ok(&["k", "K"])),
    (
        "(|a)",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "()",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "(?:)",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "a|*",
        Err("error parsing regexp: missing argument to repetition operator: `*`"),
    ),
    (
        "(*)",
        Err("error parsing regexp: missing argument to repetition operator: `*`"),
    ),
    ("\\pN", Ok(&["1", "٣", "a{2}"])),
    (
        "\\p{Any}",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "\\p{L}+",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "a\nb", "a.b", "a{", "a{2}",
        ]),
    ),
    ("[[a]]", Ok(&[])),
    (
        "[a[b]",
        Ok(&["a", "b", "aaa", "a\nb", "a.b", "a{", "[", "a{2}"]),
    ),
    ("[^\\S]", Ok(&[" ", "a\nb"])),
    ("\\x{D800}", Ok(&[])),
    ("[\\x{D7FF}-\\x{E000}]", Ok(&[])),
    (
        "{2}",
        Err("error parsing regexp: missing argument to repetition operator: `{2}`"),
    ),
    ("a{,3}", Ok(&[])),
    ("a{2,", Ok(&[])),
    (
        "(?i)",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
    (
        "a(?i)*",
        Ok(&[
            "a", "b", "aaa", "A", "k", "K", "é", "α", "1", "٣", "_", "-", " ", "a\nb", "a.b", "😀",
            "{", "a{", "&", "~", "[", "]", "a{2}",
        ]),
    ),
];
