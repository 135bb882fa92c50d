//! The rules of an aggregated role. Pure.

use std::sync::Arc;

use coracle_api::selector::LabelSelector;
use coracle_api::{Map, Value};
use coracle_client::{Cached, Whole};

/// A role and all others.
pub struct Observed {
    /// The role with the `aggregationRule`.
    pub role: Arc<Cached<Whole>>,
    /// All roles, sorted by name.
    pub all: Vec<Arc<Cached<Whole>>>,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Nothing.
    Keep,
    /// Apply these rules.
    Apply(Vec<Value>),
}

/// Collects the rules of all roles that match one of the selectors, each rule once.
pub fn plan(observed: &Observed) -> Plan {
    let Some(selectors) = selectors(&observed.role) else {
        return Plan::Keep;
    };

    let mut rules: Vec<Value> = Vec::new();
    for selector in selectors {
        let selector = LabelSelector::from_value(Some(selector));

        // An invalid selector matches nothing; validation rejects it.
        let Ok(selector) = selector else { continue };
        let matching = observed.all.iter().filter(|role| {
            role.key != observed.role.key
                && selector.matches(role.meta().labels().unwrap_or(&Map::new()))
        });

        for rule in matching.flat_map(|role| rules_of(role)) {
            if !rules.contains(rule) {
                rules.push(rule.clone());
            }
        }
    }

    if rules == rules_of(&observed.role) {
        Plan::Keep
    } else {
        Plan::Apply(rules)
    }
}

/// The selectors of its `aggregationRule`; `None` if it has none.
pub fn selectors(role: &Value) -> Option<&[Value]> {
    let rule = role.get("aggregationRule").filter(|rule| !rule.is_null())?;
    Some(
        rule.get("clusterRoleSelectors")
            .and_then(Value::as_array)
            .unwrap_or_default(),
    )
}

fn rules_of(role: &Value) -> &[Value] {
    role.get("rules")
        .and_then(Value::as_array)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn role(name: &str, labels: &str, rest: &str) -> Arc<Cached<Whole>> {
        let text = format!("{{metadata: {{name: {name}, labels: {labels}}}, {rest}}}");
        Arc::new(Cached::of(yaml::decode(text.as_bytes()).unwrap()).unwrap())
    }

    const GATHERS: &str =
        "aggregationRule: {clusterRoleSelectors: [{matchLabels: {a: x}}, {matchLabels: {b: x}}]}";

    #[test]
    fn rules_are_gathered_in_the_order_of_names_each_once() {
        let of = |verb: &str| {
            format!("rules: [{{apiGroups: [''], resources: [pods], verbs: [{verb}]}}]")
        };
        let one = role("one", "{a: x}", &of("get"));
        let two = role("two", "{a: x, b: x}", &of("list"));
        let twin = role("twin", "{b: x}", &of("get"));

        let other = role("other", "{}", &of("delete"));
        let all = |gathers: &Arc<Cached<Whole>>| {
            vec![
                gathers.clone(),
                one.clone(),
                other.clone(),
                twin.clone(),
                two.clone(),
            ]
        };

        let check = |rest: &str, expected: Option<Vec<&str>>| {
            // It matches its own selector, and is not aggregated.
            let gathers = role("gathers", "{a: x}", rest);
            let plan = plan(&Observed {
                all: all(&gathers),
                role: gathers,
            });

            let verbs = |rule: &Value| {
                rule.get("verbs").unwrap().as_array().unwrap()[0]
                    .as_str()
                    .unwrap()
                    .to_string()
            };

            match (plan, expected) {
                (Plan::Keep, None) => {}
                (Plan::Apply(rules), Some(expected)) => {
                    assert_eq!(rules.iter().map(verbs).collect::<Vec<_>>(), expected);
                }
                (plan, expected) => panic!("{plan:?}, not {expected:?}"),
            }
        };
        check(GATHERS, Some(vec!["get", "list"]));

        let (get, list) = (of("get"), of("list"));
        let rule = |text: &str| {
            text.strip_prefix("rules: [")
                .unwrap()
                .strip_suffix(']')
                .unwrap()
                .to_string()
        };

        check(
            &format!("{GATHERS}, rules: [{}, {}]", rule(&get), rule(&list)),
            None,
        );

        check(
            &format!("{GATHERS}, rules: [{}, {}]", rule(&list), rule(&get)),
            Some(vec!["get", "list"]),
        );

        check(&of("get"), None);
        check(
            "aggregationRule: {clusterRoleSelectors: [{matchLabels: {none: x}}]}, rules: []",
            None,
        );

        check(
            &format!("aggregationRule: {{clusterRoleSelectors: []}}, {get}"),
            Some(vec![]),
        );
    }
}
