//! Accepted licences and banned crates.

use super::expression::Expression;

/// Licences that are accepted by themselves. Others (`Unlicense`, `CC0-1.0`, `0BSD`) are fine where
/// the package offers one of these as an alternative.
const ACCEPTED: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "MPL-2.0",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "CDLA-Permissive-2.0",
];

/// Exceptions that only add rights.
const ACCEPTED_EXCEPTIONS: &[&str] = &["LLVM-exception"];

/// Banned crates, and what to use instead.
const BANNED: &[(&str, &str)] = &[
    (
        "openssl",
        "rustls with ring: no C library of the host's, no headers to build",
    ),
    (
        "openssl-sys",
        "rustls with ring: no C library of the host's, no headers to build",
    ),
    (
        "native-tls",
        "rustls with ring: no C library of the host's, no headers to build",
    ),
    (
        "aws-lc-sys",
        "rustls with ring: aws-lc takes minutes to build and needs cmake",
    ),
];

/// What to use instead, if a crate is banned.
pub(super) fn ban(name: &str) -> Option<&'static str> {
    BANNED
        .iter()
        .find(|(banned, _)| *banned == name)
        .map(|(_, instead)| *instead)
}

/// Whether a licence expression is accepted: of alternatives one, of conjunctions all.
pub(super) fn accepts(expression: &Expression<'_>) -> bool {
    match expression {
        Expression::Licence { name, exception } => {
            // `MPL-2.0+`: that version or a later one, as one likes.
            ACCEPTED.contains(&name.trim_end_matches('+'))
                && exception.is_none_or(|exception| ACCEPTED_EXCEPTIONS.contains(&exception))
        }
        Expression::Any(alternatives) => alternatives.iter().any(accepts),
        Expression::All(parts) => parts.iter().all(accepts),
    }
}

#[cfg(test)]
mod tests {
    use super::super::expression::parse;
    use super::*;

    #[test]
    fn one_accepted_alternative_is_enough_and_every_part_must_be_accepted() {
        check("MIT", true);
        check("MIT OR GPL-2.0-only", true);
        check("MIT AND GPL-2.0-only", false);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("GPL-2.0-only OR MIT AND LGPL-3.0-only", false);
        check("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", true);
        check("GPL-2.0-only WITH Classpath-exception-2.0", false);
        check("MIT WITH Some-exception", false);
        check("Apache-2.0 AND ISC", true);
        check("MPL-2.0+", true);
        check("GPL-2.0+", false);
    }

    #[test]
    fn some_licences_are_fine_only_beside_another() {
        check("Unlicense", false);
        check("Unlicense OR MIT", true);
        check("CC0-1.0", false);
        check("CC0-1.0 OR MIT-0 OR Apache-2.0", true);
        check("0BSD OR MIT OR Apache-2.0", true);
    }

    fn check(licence: &str, accepted: bool) {
        assert_eq!(accepts(&parse(licence).unwrap()), accepted, "{licence}");
    }
}
