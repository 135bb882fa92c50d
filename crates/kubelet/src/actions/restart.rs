//! Whether a container that has exited restarts.

use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, Pod};

use crate::observed::{Observed, State};
use crate::pod::PodView;

/// Whether a container must be started: it was never created, it has exited and its restart policy
/// says so, it was created but never ran, or its state is unknown.
pub fn must_start(pod: &Pod, container: &Container, observed: &Observed) -> bool {
    if pod.is_being_deleted() {
        return false;
    }
    match observed.newest(&container.name).map(|seen| &seen.state) {
        None | Some(State::Created | State::Unknown) => true,
        Some(State::Running { .. }) => false,
        Some(State::Exited { code, .. }) => restarts_after(pod, container, *code),
    }
}

/// Whether a container that exited with this code restarts. The container's rules take precedence
/// over the container's policy, and that over the pod's.
pub fn restarts_after(pod: &Pod, container: &Container, code: i32) -> bool {
    if let Some(own) = container.restart_policy.as_deref() {
        if matching_rule(container, code).is_some_and(|rule| rule.action == "Restart") {
            return true;
        }
        if let Some(restart) = by_policy(own, code) {
            return restart;
        }
    }
    by_policy(pod.restart_policy(), code).unwrap_or(true)
}

/// Whether a container that the kubelet kills because of a probe restarts. Rules about exit codes
/// do not apply: there is none.
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
                let listed = codes.values.iter().flatten().any(|value| *value == code);
                match codes.operator.as_str() {
                    "In" => listed,
                    "NotIn" => !listed,
                    _ => false,
                }
            })
        })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{ContainerRestartRuleOnExitCodes, PodSpec};

    use super::*;

    fn check(pod: &str, own: Option<&str>, rule: Option<(&str, &[i32])>, code: i32, restart: bool) {
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
            restart,
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

        // The API rejects rules without a container policy; they are ignored here.
        check("Never", None, Some(("In", &[42])), 42, false);
    }
}
