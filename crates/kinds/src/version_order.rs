//! Which of two versions is preferred.

use std::cmp::Ordering;

/// The order in which discovery lists versions: stable ones before betas before alphas, newer
/// before older, and behind them names of another form, in alphabetical order.
pub fn kube_aware(one: &str, other: &str) -> Ordering {
    match (Rank::of(one), Rank::of(other)) {
        (Some(one), Some(other)) => other.cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// The stability of a version; its number; the number of its beta or alpha.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u8, u64, u64);

impl Rank {
    fn of(version: &str) -> Option<Rank> {
        let rest = version.strip_prefix('v')?;
        let (major, rest) = number(rest)?;
        if rest.is_empty() {
            return Some(Rank(2, major, 0));
        }

        let (stage, rest) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(rest), _) => (1, rest),
            (_, Some(rest)) => (0, rest),
            _ => return None,
        };
        let (minor, rest) = number(rest)?;

        rest.is_empty().then_some(Rank(stage, major, minor))
    }
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferred_version_comes_first() {
        let mut versions = [
            "foo1",
            "v1alpha1",
            "v11alpha2",
            "v2",
            "v10",
            "v3beta1",
            "foo10",
            "v1",
            "v11beta2",
            "v10beta3",
            "v12alpha1",
        ];
        versions.sort_by(|one, other| kube_aware(one, other));

        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v10beta3",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "v1alpha1",
                "foo1",
                "foo10"
            ]
        );
    }
}
