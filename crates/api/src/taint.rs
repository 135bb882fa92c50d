//! Taints and tolerations.
//!
//! The scheduler needs the first untolerated taint, the taint manager how long a pod may stay. Both
//! work on small borrowed structs.

use crate::names;
use crate::value::Value;

/// What a taint does to pods that do not tolerate it.
pub mod effect {
    /// No new pods.
    pub const NO_SCHEDULE: &str = "NoSchedule";
    /// New pods only if no other node fits.
    pub const PREFER_NO_SCHEDULE: &str = "PreferNoSchedule";
    /// No new pods, and running ones are evicted.
    pub const NO_EXECUTE: &str = "NoExecute";
}

/// A taint of a node, which repels pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Taint<'a> {
    pub key: &'a str,
    pub value: &'a str,
    pub effect: &'a str,
}

/// A toleration of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Toleration<'a> {
    /// Empty: any key.
    pub key: &'a str,
    pub operator: TolerationOperator,
    pub value: &'a str,
    /// Empty: any effect.
    pub effect: &'a str,
    /// How long a pod stays after a `NoExecute` taint was added. `None`: forever.
    pub seconds: Option<i64>,
}

/// How a toleration's value and a taint's are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TolerationOperator {
    Equal,
    Exists,
    /// The taint's number is less than the toleration's. Gate `TaintTolerationComparisonOperators`.
    Lt,
    /// The taint's number is greater than the toleration's. Gate
    /// `TaintTolerationComparisonOperators`.
    Gt,
    /// An unknown operator: tolerates nothing.
    Unknown,
}

impl<'a> Taint<'a> {
    pub fn from_value(taint: &'a Value) -> Taint<'a> {
        let text = |name| taint.get(name).and_then(Value::as_str).unwrap_or_default();
        Taint {
            key: text("key"),
            value: text("value"),
            effect: text("effect"),
        }
    }

    /// Whether the taint keeps new pods off the node, not only as a preference.
    pub fn repels(&self) -> bool {
        matches!(self.effect, effect::NO_SCHEDULE | effect::NO_EXECUTE)
    }
}

impl<'a> Toleration<'a> {
    pub fn from_value(toleration: &'a Value) -> Toleration<'a> {
        let text = |name| {
            toleration
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };

        Toleration {
            key: text("key"),
            operator: TolerationOperator::from_name(text("operator")),
            value: text("value"),
            effect: text("effect"),
            seconds: toleration.get("tolerationSeconds").and_then(Value::as_int),
        }
    }

    /// Whether the toleration covers the taint. `comparisons` is the gate of `Lt` and `Gt`.
    pub fn tolerates(&self, taint: &Taint<'_>, comparisons: bool) -> bool {
        let same_effect = self.effect.is_empty() || self.effect == taint.effect;
        let same_key = self.key.is_empty() || self.key == taint.key;
        same_effect && same_key && self.covers_value(taint.value, comparisons)
    }

    fn covers_value(&self, value: &str, comparisons: bool) -> bool {
        match self.operator {
            TolerationOperator::Equal => self.value == value,
            TolerationOperator::Exists => true,
            TolerationOperator::Lt if comparisons => {
                numbers(value, self.value).is_some_and(|(its, own)| its < own)
            }
            TolerationOperator::Gt if comparisons => {
                numbers(value, self.value).is_some_and(|(its, own)| its > own)
            }
            TolerationOperator::Lt | TolerationOperator::Gt | TolerationOperator::Unknown => false,
        }
    }
}

impl TolerationOperator {
    /// The operator of a name; an empty name is `Equal`.
    pub fn from_name(name: &str) -> TolerationOperator {
        match name {
            "" | "Equal" => TolerationOperator::Equal,
            "Exists" => TolerationOperator::Exists,
            "Lt" => TolerationOperator::Lt,
            "Gt" => TolerationOperator::Gt,
            _ => TolerationOperator::Unknown,
        }
    }
}

/// Both as numbers, if both are decimal integers.
fn numbers(one: &str, other: &str) -> Option<(i64, i64)> {
    let number = |text: &str| {
        text.parse()
            .ok()
            .filter(|_| names::decimal_integer(text).is_empty())
    };
    Some((number(one)?, number(other)?))
}

/// The first taint that no toleration covers.
pub fn find_untolerated<'t>(
    taints: impl IntoIterator<Item = Taint<'t>>,
    tolerations: &[Toleration<'_>],
    comparisons: bool,
) -> Option<Taint<'t>> {
    let tolerated = |taint: &Taint<'_>| {
        tolerations
            .iter()
            .any(|toleration| toleration.tolerates(taint, comparisons))
    };
    taints.into_iter().find(|taint| !tolerated(taint))
}

/// How long a pod may stay on a node with these taints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stay {
    /// Some taint is not tolerated, or no longer.
    Not,
    /// This many seconds after the taint was added.
    Seconds(i64),
    Forever,
}

/// How long a pod with these tolerations may stay on a node with these `NoExecute` taints. For
/// every taint the first toleration that covers it counts; the shortest stay decides.
pub fn stay<'t>(
    taints: impl IntoIterator<Item = Taint<'t>>,
    tolerations: &[Toleration<'_>],
    comparisons: bool,
) -> Stay {
    let under = |taint: Taint<'t>| {
        let toleration = tolerations
            .iter()
            .find(|toleration| toleration.tolerates(&taint, comparisons));
        match toleration.map(|toleration| toleration.seconds) {
            None => Stay::Not,
            Some(None) => Stay::Forever,
            Some(Some(seconds)) if seconds <= 0 => Stay::Not,
            Some(Some(seconds)) => Stay::Seconds(seconds),
        }
    };

    taints.into_iter().map(under).min().unwrap_or(Stay::Forever)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint<'a>(key: &'a str, value: &'a str, effect: &'a str) -> Taint<'a> {
        Taint { key, value, effect }
    }

    fn toleration<'a>(
        key: &'a str,
        operator: &str,
        value: &'a str,
        effect: &'a str,
    ) -> Toleration<'a> {
        let operator = TolerationOperator::from_name(operator);
        Toleration {
            key,
            operator,
            value,
            effect,
            seconds: None,
        }
    }

    #[test]
    fn a_toleration_covers_what_its_fields_say() {
        let check = |(key, operator, value, effect): (&str, &str, &str, &str), expected: bool| {
            let toleration = toleration(key, operator, value, effect);
            let found = toleration.tolerates(&taint("gpu", "5", effect::NO_SCHEDULE), true);
            assert_eq!(found, expected, "{toleration:?}");
        };

        check(("gpu", "Equal", "5", "NoSchedule"), true);
        check(("gpu", "", "5", ""), true);
        check(("gpu", "Equal", "6", ""), false);
        check(("gpu", "Exists", "", "NoSchedule"), true);
        check(("gpu", "Exists", "", "NoExecute"), false);
        check(("cpu", "Exists", "", ""), false);
        check(("", "Exists", "", ""), true);
        check(("", "Equal", "5", ""), true);

        check(("gpu", "Lt", "6", ""), true);
        check(("gpu", "Lt", "5", ""), false);
        check(("gpu", "Gt", "4", ""), true);
        check(("gpu", "Gt", "5", ""), false);
        check(("gpu", "Gt", "04", ""), false);
        check(("gpu", "Gt", "x", ""), false);
        check(("gpu", "Near", "5", ""), false);
    }

    #[test]
    fn comparisons_need_their_gate() {
        let toleration = toleration("gpu", "Gt", "4", "");
        assert!(toleration.tolerates(&taint("gpu", "5", effect::NO_SCHEDULE), true));
        assert!(!toleration.tolerates(&taint("gpu", "5", effect::NO_SCHEDULE), false));
    }

    #[test]
    fn the_first_untolerated_taint_is_found() {
        let taints = [
            taint("a", "", effect::NO_SCHEDULE),
            taint("b", "", effect::NO_EXECUTE),
        ];

        let tolerates_a = [toleration("a", "Exists", "", "")];
        assert_eq!(
            find_untolerated(taints, &tolerates_a, false),
            Some(taints[1])
        );

        assert_eq!(find_untolerated(taints, &[], false), Some(taints[0]));
        assert_eq!(
            find_untolerated(taints, &[toleration("", "Exists", "", "")], false),
            None
        );

        assert_eq!(find_untolerated([], &[], false), None);

        let soft = taint("c", "", effect::PREFER_NO_SCHEDULE);
        assert!(!soft.repels() && taints.iter().all(Taint::repels));
    }

    #[test]
    fn the_shortest_stay_decides() {
        let taints = [
            taint("a", "", effect::NO_EXECUTE),
            taint("b", "", effect::NO_EXECUTE),
        ];

        let for_seconds = |key, seconds| Toleration {
            seconds,
            ..toleration(key, "Exists", "", "")
        };

        let check = |tolerations: &[Toleration<'_>], expected: Stay| {
            assert_eq!(
                stay(taints, tolerations, false),
                expected,
                "{tolerations:?}"
            );
        };

        check(&[for_seconds("", None)], Stay::Forever);
        check(
            &[for_seconds("a", Some(300)), for_seconds("b", Some(20))],
            Stay::Seconds(20),
        );

        check(
            &[for_seconds("a", Some(300)), for_seconds("b", None)],
            Stay::Seconds(300),
        );

        check(
            &[for_seconds("a", Some(300)), for_seconds("b", Some(0))],
            Stay::Not,
        );

        check(&[for_seconds("a", Some(300))], Stay::Not);
        check(&[], Stay::Not);
        assert_eq!(stay([], &[], false), Stay::Forever);
    }

    #[test]
    fn taints_and_tolerations_come_from_objects() {
        let mut value = Value::object();
        let members = value.as_object_mut().unwrap();
        members.insert("key", "a");
        members.insert("effect", "NoExecute");
        assert_eq!(
            Taint::from_value(&value),
            taint("a", "", effect::NO_EXECUTE)
        );

        let members = value.as_object_mut().unwrap();
        members.insert("operator", "Exists");
        members.insert("tolerationSeconds", 300i64);

        let expected = Toleration {
            seconds: Some(300),
            ..toleration("a", "Exists", "", "NoExecute")
        };
        assert_eq!(Toleration::from_value(&value), expected);
    }
}
