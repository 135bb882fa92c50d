//! The status of a quota. Pure.

use coracle_api::quantity::Quantity;
use coracle_api::quota::{Amounts, Counter};
use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};

/// The objects of one resource in a quota's namespace.
#[derive(Clone, Debug, PartialEq)]
pub enum Counted {
    /// Their number, if nothing else counts.
    Count(i64),
    /// The objects.
    Objects(Vec<Value>),
}

/// A resource and its objects.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceObjects {
    /// Empty for the core group.
    pub group: String,
    /// `pods`.
    pub plural: String,
    /// Its objects.
    pub found: Counted,
}

/// The resource names that a quota limits.
pub fn limited(quota: &Value) -> impl Iterator<Item = &str> {
    let hard = quota.at(&["spec", "hard"]).and_then(Value::as_object);
    hard.into_iter().flat_map(|hard| hard.keys())
}

/// Whether a quota limits objects of a resource.
pub fn limits_resource(quota: &Value, counter: Counter<'_>) -> bool {
    limited(quota).any(|name| counter.counts(name))
}

/// Whether a quota needs only the number of objects: no scopes, and object counts only.
pub fn only_counts(quota: &Value, counter: Counter<'_>) -> bool {
    let is_set = |path: &[&str]| quota.at(path).is_some_and(|value| !value.is_null());
    let scoped = is_set(&["spec", "scopes"]) || is_set(&["spec", "scopeSelector"]);
    counter.kind() == coracle_api::quota::Kind::Objects && !scoped
}

/// The usage of what a quota limits: at least zero for everything that can be counted.
pub fn used(quota: &Value, found: &[ResourceObjects], now: Timestamp) -> Amounts {
    let mut used = Amounts::new();
    for of in found {
        let counter = Counter::of(&of.group, &of.plural);
        let names: Vec<&str> = limited(quota).filter(|name| counter.counts(name)).collect();
        for name in &names {
            used.entry((*name).to_string()).or_default();
        }

        match &of.found {
            Counted::Count(count) => {
                for name in names {
                    let format = coracle_api::quantity::Format::DecimalSi;
                    used.insert(name.to_string(), Quantity::new(*count, format));
                }
            }
            Counted::Objects(objects) => {
                for object in objects
                    .iter()
                    .filter(|object| counter.is_in_scope(quota, object))
                {
                    let needs = counter.usage(object, now);
                    for (name, amount) in needs
                        .iter()
                        .filter(|(name, _)| names.contains(&name.as_str()))
                    {
                        if let Some(sum) = used.get_mut(name) {
                            sum.add(amount);
                        }
                    }
                }
            }
        }
    }

    used
}

/// The desired status; `None` if unchanged. What could not be counted keeps its value.
pub fn status(quota: &Value, used: &Amounts) -> Option<Map> {
    let hard = quota
        .at(&["spec", "hard"])
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();

    let known = |side: &str| quota.at(&["status", side]).and_then(Value::as_object);
    let mut amounts = read(known("used"));
    amounts.extend(
        used.iter()
            .map(|(name, amount)| (name.clone(), amount.clone())),
    );

    amounts.retain(|name, _| hard.contains_key(name));
    let same_limits = known("hard").is_some_and(|known| read(Some(known)) == read(Some(&hard)));
    if same_limits && known("used").is_some_and(|known| read(Some(known)) == amounts) {
        return None;
    }

    let mut written = Map::new();
    for (name, amount) in &amounts {
        written.insert(name.as_str(), amount.to_string());
    }

    let mut status = Map::new();
    status.insert("hard", hard);
    status.insert("used", written);

    Some(status)
}

fn read(amounts: Option<&Map>) -> Amounts {
    let amounts = amounts.into_iter().flat_map(|amounts| amounts.iter());
    amounts
        .map(|(name, amount)| {
            (
                name.to_owned(),
                Quantity::from_value(amount).unwrap_or_default(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::yaml;

    use super::*;

    fn value(text: &str) -> Value {
        yaml::decode(text.as_bytes()).unwrap()
    }

    fn of(plural: &str, found: Counted) -> ResourceObjects {
        ResourceObjects {
            group: String::new(),
            plural: plural.to_string(),
            found,
        }
    }

    const NOON: Timestamp = Timestamp::from_unix(1_772_366_400, 0);

    #[test]
    fn usage_is_summed_up_by_the_names_that_are_limited() {
        let quota = value(
            "{spec: {hard: {pods: 10, requests.cpu: 4, count/configmaps: 5, configmaps: 5, services.nodeports: 2, \
             unknown: 1}}}",
        );

        let pods = ["{cpu: 500m}", "{cpu: '1'}"].map(|wants| {
            value(&format!(
                "{{spec: {{containers: [{{name: c, resources: {{requests: {wants}}}}}]}}}}"
            ))
        });

        let ended = value(
            "{spec: {containers: [{name: c, resources: {requests: {cpu: '9'}}}]}, status: {phase: Failed}}",
        );
        let found = [
            of(
                "pods",
                Counted::Objects(pods.into_iter().chain([ended]).collect()),
            ),
            of("configmaps", Counted::Count(3)),
            of("services", Counted::Objects(vec![])),
        ];

        let used = used(&quota, &found, NOON);
        let shown: Vec<String> = used
            .iter()
            .map(|(name, amount)| format!("{name}={amount}"))
            .collect();

        assert_eq!(
            shown,
            [
                "configmaps=3",
                "count/configmaps=3",
                "pods=2",
                "requests.cpu=1500m",
                "services.nodeports=0"
            ]
        );

        let status = status(&quota, &used).unwrap();
        assert_eq!(status.below("used").unwrap().len(), 5);
        assert_eq!(status.below("hard").unwrap().len(), 6);
    }

    #[test]
    fn only_what_is_in_scope_is_counted() {
        let quota = value("{spec: {hard: {pods: 10}, scopes: [BestEffort]}}");
        let pods = ["BestEffort", "Burstable"].map(|class| {
            value(&format!(
                "{{spec: {{containers: []}}, status: {{qosClass: {class}}}}}"
            ))
        });
        let used = used(&quota, &[of("pods", Counted::Objects(pods.to_vec()))], NOON);
        assert_eq!(used["pods"].to_string(), "1");

        assert!(!only_counts(&quota, Counter::of("", "configmaps")));
        assert!(only_counts(
            &value("{spec: {hard: {}}}"),
            Counter::of("", "configmaps")
        ));

        assert!(!only_counts(
            &value("{spec: {hard: {}}}"),
            Counter::of("", "pods")
        ));
    }

    #[test]
    fn a_status_that_says_the_same_in_other_words_stays() {
        let check = |status_now: &str, changes: bool| {
            let quota = value(&format!(
                "{{spec: {{hard: {{requests.cpu: '1'}}}}, status: {status_now}}}"
            ));
            let used = Amounts::from([("requests.cpu".to_string(), "500m".parse().unwrap())]);
            assert_eq!(status(&quota, &used).is_some(), changes, "{status_now}");
        };

        check("{}", true);
        check("{hard: {requests.cpu: '1'}}", true);
        check(
            "{hard: {requests.cpu: 1000m}, used: {requests.cpu: '0.5'}}",
            false,
        );

        check(
            "{hard: {requests.cpu: '2'}, used: {requests.cpu: 500m}}",
            true,
        );

        check(
            "{hard: {requests.cpu: '1'}, used: {requests.cpu: 500m, pods: '1'}}",
            true,
        );
    }
}
