//! What a disruption budget allows, and how it is charged.

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use http::StatusCode;
use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus};

use crate::ApiError;
use crate::status::{Cause, Details, Reason};

const VIOLATED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

/// Evictions that the budget's controller has not seen yet.
const UNCONFIRMED: usize = 2000;

/// Whether a pod that is not ready may be evicted without a charge: it does not serve, and enough
/// other pods do.
pub fn spares_unready(budget: &PodDisruptionBudget) -> bool {
    let policy = budget
        .spec
        .as_ref()
        .and_then(|spec| spec.unhealthy_pod_eviction_policy.as_deref());
    let enough = |status: &PodDisruptionBudgetStatus| {
        let (current, desired) = healthy(status);
        current >= desired && desired > 0
    };
    policy == Some("AlwaysAllow") || budget.status.as_ref().is_some_and(enough)
}

/// Whether one more pod may be evicted now.
pub fn allows(budget: &PodDisruptionBudget) -> Result<(), ApiError> {
    let name = budget.metadata.name.as_deref().unwrap_or_default();
    let none = PodDisruptionBudgetStatus::default();
    let status = budget.status.as_ref().unwrap_or(&none);
    if status.observed_generation.unwrap_or(0) < budget.metadata.generation.unwrap_or(0) {
        return Err(still_processed(name));
    }

    let allowed = status.disruptions_allowed.unwrap_or(0);
    if allowed < 0 {
        return Err(forbidden(name, "pdb disruptions allowed is negative"));
    }

    if status
        .disrupted_pods
        .as_ref()
        .is_some_and(|pods| pods.len() > UNCONFIRMED)
    {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(forbidden(name, why));
    }

    if allowed == 0 {
        return Err(too_many(None, why_not(name, status)));
    }

    Ok(())
}

/// How many pods are healthy, and how many should be.
fn healthy(status: &PodDisruptionBudgetStatus) -> (i32, i32) {
    (
        status.current_healthy.unwrap_or(0),
        status.desired_healthy.unwrap_or(0),
    )
}

fn why_not(name: &str, status: &PodDisruptionBudgetStatus) -> String {
    let mut conditions = status.conditions.iter().flatten();
    let condition = conditions
        .find(|condition| condition.type_ == "DisruptionAllowed")
        .filter(|condition| condition.status == "False" && !condition.message.is_empty());

    let (current, desired) = healthy(status);
    match condition {
        // A budget whose computation failed has no numbers.
        Some(condition) if condition.reason == "SyncFailed" => format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {}",
            condition.message
        ),
        _ if current <= desired => {
            format!(
                "The disruption budget {name} needs {desired} healthy pods and has {current} currently"
            )
        }
        Some(condition) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({}): {}",
            condition.reason, condition.message
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

/// Records the eviction of a pod in the budget's status.
pub fn charge(budget: &mut Value, pod: &str, now: Timestamp) {
    let Some(budget) = budget.as_object_mut() else {
        return;
    };

    let status = budget.object_mut("status");
    let left = status
        .get("disruptionsAllowed")
        .and_then(Value::as_int)
        .unwrap_or(0)
        - 1;
    status.insert("disruptionsAllowed", left);

    if left == 0 {
        disallow(status, now);
    }

    status
        .object_mut("disruptedPods")
        .insert(pod, Time(now).to_string().as_str());
}

fn disallow(status: &mut Map, now: Timestamp) {
    let observed = status.get("observedGeneration").cloned();
    let conditions = status.get_or_insert_with("conditions", || Value::Array(Vec::new()));
    let Some(conditions) = conditions.as_array_mut() else {
        return;
    };

    let text = |condition: &Value, name: &str| {
        condition
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };

    let found = conditions
        .iter()
        .position(|condition| text(condition, "type") == "DisruptionAllowed");
    let before = found
        .map(|place| &conditions[place])
        .filter(|before| text(before, "status") == "False");
    let since = before.map_or_else(
        || Time(now).to_string(),
        |before| text(before, "lastTransitionTime"),
    );

    let mut condition = Map::new();
    condition.insert("type", "DisruptionAllowed");
    condition.insert("status", "False");

    if let Some(observed) = observed {
        condition.insert("observedGeneration", observed);
    }

    condition.insert("lastTransitionTime", since.as_str());
    condition.insert("reason", "InsufficientPods");
    condition.insert("message", "");

    match found {
        Some(place) => conditions[place] = Value::Object(condition),
        None => conditions.push(Value::Object(condition)),
    }
}

/// The status is older than the spec of the budget.
pub fn still_processed(name: &str) -> ApiError {
    too_many(
        Some(10),
        format!("The disruption budget {name} is still being processed by the server."),
    )
}

fn too_many(retry_after: Option<u32>, message: String) -> ApiError {
    let mut refused = ApiError::new(
        StatusCode::TOO_MANY_REQUESTS,
        Reason::TooManyRequests,
        VIOLATED,
    );
    let cause = Cause {
        reason: "DisruptionBudget",
        message,
        field: String::new(),
    };

    refused.details = Some(Box::new(Details {
        causes: vec![cause],
        ..Details::default()
    }));

    refused.retry_after = retry_after;

    refused
}

fn forbidden(name: &str, why: &str) -> ApiError {
    let message = format!("poddisruptionbudget.policy \"{name}\" is forbidden: {why}");
    let mut refused = ApiError::new(StatusCode::FORBIDDEN, Reason::Forbidden, message);
    refused.details = Some(Box::new(Details {
        name: name.to_owned(),
        group: "policy".to_owned(),
        kind: "poddisruptionbudget".to_owned(),
        ..Details::default()
    }));
    refused
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;
    use coracle_api::typed;

    use super::*;

    fn budget(status: &str) -> PodDisruptionBudget {
        let text = format!(r#"{{"metadata":{{"name":"b","generation":2}},"status":{status}}}"#);
        typed::from_tree(&json::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn refused_eviction_has_a_reason() {
        let check = |status: &str, reason: &str, expected: &str| {
            let refused = allows(&budget(status)).err();
            let found = refused
                .as_ref()
                .map(|refused| refused.reason.as_str())
                .unwrap_or_default();
            assert_eq!(found, reason, "{status}");

            let text = refused.map_or_else(String::new, |refused| {
                match &refused.details.as_ref().unwrap().causes[..] {
                    [cause] => cause.message.clone(),
                    _ => refused.message.clone(),
                }
            });
            assert!(text.contains(expected), "{text}");
        };

        let allowed = r#"{"observedGeneration":2,"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1}"#;
        check(allowed, "", "");
        check(
            r#"{"observedGeneration":1,"disruptionsAllowed":1}"#,
            "TooManyRequests",
            "still being processed",
        );

        check(
            r#"{"observedGeneration":2,"disruptionsAllowed":-1}"#,
            "Forbidden",
            "allowed is negative",
        );

        check(
            r#"{"observedGeneration":2,"currentHealthy":1,"desiredHealthy":1}"#,
            "TooManyRequests",
            "needs 1 healthy pods and has 1 currently",
        );

        check(
            r#"{"observedGeneration":2,"currentHealthy":2,"desiredHealthy":1}"#,
            "TooManyRequests",
            "b does not allow evicting pods currently",
        );

        let failed = r#"{"observedGeneration":2,"conditions":[{"type":"DisruptionAllowed","status":"False",
            "lastTransitionTime":"2026-01-01T00:00:00Z","reason":"SyncFailed","message":"no scale"}]}"#;
        check(
            failed,
            "TooManyRequests",
            "because it failed sync: no scale",
        );
    }

    #[test]
    fn unready_pods_are_not_charged_if_enough_are_healthy() {
        let check = |status: &str, spared: bool| {
            assert_eq!(spares_unready(&budget(status)), spared, "{status}")
        };
        check(r#"{"currentHealthy":2,"desiredHealthy":2}"#, true);
        check(r#"{"currentHealthy":1,"desiredHealthy":2}"#, false);
        check(r#"{"currentHealthy":0,"desiredHealthy":0}"#, false);
    }

    #[test]
    fn charge_decrements_and_reports_the_last_disruption() {
        let now = Timestamp::from_unix(0, 0);
        let mut budget =
            json::parse(br#"{"status":{"observedGeneration":3,"disruptionsAllowed":2}}"#).unwrap();
        charge(&mut budget, "p", now);

        assert_eq!(
            budget
                .at(&["status", "disruptionsAllowed"])
                .and_then(Value::as_int),
            Some(1)
        );

        let gone = budget
            .at(&["status", "disruptedPods", "p"])
            .and_then(Value::as_str);
        assert_eq!(gone, Some("1970-01-01T00:00:00Z"));
        assert!(budget.at(&["status", "conditions"]).is_none());

        charge(&mut budget, "q", now);
        let condition = budget
            .at(&["status", "conditions"])
            .and_then(Value::as_array)
            .unwrap()[0]
            .clone();

        assert_eq!(
            condition.get("reason").and_then(Value::as_str),
            Some("InsufficientPods")
        );

        assert_eq!(
            condition.get("observedGeneration").and_then(Value::as_int),
            Some(3)
        );
    }
}
