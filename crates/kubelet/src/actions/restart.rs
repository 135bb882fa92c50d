//! Whether a container that has ended is to run again.

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, Pod};

use crate::observed::{Observed, State};
use crate::pod::PodView;

/// Whether a container is to be started: it was never made, or it has ended and its policy says so.
/// One that was made but never ran, and one that nobody knows about, are to be started too.
pub fn wants_start(pod: &Pod, container: &Container, observed: &Observed) -> bool {
    if pod.is_being_deleted() {
        return false;
    }
    match observed.newest(&container.name).map(|seen| &seen.state) {
        None | Some(State::Created | State::Unknown) => true,
        Some(State::Running { .. }) => false,
        Some(State::Exited { code, .. }) => restarts_after(pod, container, *code),
    }
}

/// What the policies say about a container that ended with this code: its own rules first, its own
/// policy next, its pod's last.
pub fn restarts_after(pod: &Pod, container: &Container, code: i32) -> bool {
    if let Some(own) = container.restart_policy.as_deref() {
        if matching_rule(container, code).is_some_and(|rule| rule.action == "Restart") {
            return true;
        }
        if let Some(again) = by_policy(own, code) {
            return again;
        }
    }
    by_policy(pod.restart_policy(), code).unwrap_or(true)
}

/// Whether one that we kill, because it does not live, is to run again. Rules about exit codes do
/// not apply: it has none.
pub fn restarts_when_killed(pod: &Pod, container: &Container) -> bool {
    container
        .restart_policy
        .as_deref()
        .unwrap_or(pod.restart_policy())
        != "Never"
}

fn by_policy(policy: &str, code: i32) -> Option<bool> {
    match policy {
        "Always" => Some(true),
        "OnFailure" => Some(code != 0),
        "Never" => Some(false),
        _ => None,
    }
}

fn matching_rule(container: &Container, code: i32) -> Option<&ContainerRestartRule> {
    container
        .restart_policy_rules
        .iter()
        .flatten()
        .find(|rule| {
            rule.exit_codes.as_ref().is_some_and(|codes| {
                let named = codes.values.iter().flatten().any(|value| *value == code);
                match codes.operator.as_str() {
                    "In" => named,
                    "NotIn" => !named,
                    _ => false,
                }
            })
        })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ContainerRestartRuleOnExitCodes, PodSpec};

    use super::*;

    fn check(pod: &str, own: Option<&str>, rule: Option<(&str, &[i32])>, code: i32, again: bool) {
        let rules = rule.map(|(operator, values)| {
            vec![ContainerRestartRule {
                action: "Restart".into(),
                exit_codes: Some(ContainerRestartRuleOnExitCodes {
                    operator: operator.into(),
                    values: Some(values.to_vec()),
                }),
            }]
        });

        let container = Container {
            restart_policy: own.map(str::to_owned),
            restart_policy_rules: rules,
            ..Container::default()
        };

        let spec = PodSpec {
            restart_policy: Some(pod.into()),
            ..PodSpec::default()
        };

        let pod = Pod {
            spec: Some(spec),
            ..Pod::default()
        };

        assert_eq!(
            restarts_after(&pod, &container, code),
            again,
            "{pod:?} {container:?} {code}"
        );
    }

    #[test]
    fn rules_come_before_the_containers_policy_and_that_before_the_pods() {
        check("Always", None, None, 0, true);
        check("OnFailure", None, None, 0, false);
        check("OnFailure", None, None, 1, true);
        check("Never", None, None, 1, false);
        check("Never", Some("Always"), None, 0, true);

        check("Always", Some("Never"), None, 1, false);
        check("Always", Some("OnFailure"), None, 0, false);
        check("Never", Some("Never"), Some(("In", &[42])), 42, true);
        check("Never", Some("Never"), Some(("In", &[42])), 43, false);
        check("Never", Some("Never"), Some(("NotIn", &[0])), 7, true);

        // Rules without a policy of the container's own are refused by the API, and count for
        // nothing here.
        check("Never", None, Some(("In", &[42])), 42, false);
    }
}
