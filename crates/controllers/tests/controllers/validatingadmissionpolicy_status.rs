//! Type-checking of validating policies against a real server, under its upstream identity.

use crate::common;

use common::{Controlled, number};
use coracle_api::Value;
use coracle_api::codec::json;
use coracle_client::Patch;
use coracle_testkit::eventually;
use coracle_testkit::objects::object;

const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: types}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], resources: [deployments, replicasets], operations: [CREATE]}
    - {apiGroups: [stable.example.com], apiVersions: [v1], resources: [crontabs], operations: [CREATE]}
  paramKind: {apiVersion: v1, kind: ConfigMap}
  variables:
  - {name: replicas, expression: object.spec.replicas}
  validations:
  - {expression: variables.replicas < 100}
  - {expression: object.spec.replicas > '3'}
  - {expression: 'true', messageExpression: string(object.spec.cronSpec)}
  - {expression: params.data.limit == 1}
";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {cronSpec: {type: string}, replicas: {type: integer}}}
";

/// Field and text of each warning.
fn warnings(policy: &Value) -> Vec<(&str, &str)> {
    let found = policy.at(&["status", "typeChecking", "expressionWarnings"]);
    let found = found.and_then(Value::as_array).unwrap_or_default();
    found
        .iter()
        .map(|warning| {
            let text = |name| warning.get(name).and_then(Value::as_str).unwrap();
            (text("fieldRef"), text("warning"))
        })
        .collect()
}

#[tokio::test]
async fn expressions_that_do_not_fit_the_kinds_are_warned_of() {
    let cluster = Controlled::start().await;
    let definitions = cluster.of("apiextensions.k8s.io", "customresourcedefinitions");
    definitions.create(&object(DEFINITION)).await.unwrap();
    eventually("the custom resource is served", async || {
        let definition = definitions
            .get("crontabs.stable.example.com")
            .await
            .unwrap();
        let conditions = definition.at(&["status", "conditions"])?.as_array()?;
        let established = conditions.iter().find(|condition| {
            condition.get("type").and_then(Value::as_str) == Some("Established")
        })?;
        (established.get("status")?.as_str() == Some("True")).then_some(())
    })
    .await;

    let policies = cluster.of(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
    );
    policies.create(&object(POLICY)).await.unwrap();

    let checked = async |generation| {
        eventually("the policy is checked", async || {
            let policy = policies.get("types").await.unwrap();
            let observed = number(&policy, &["status", "observedGeneration"]);
            (observed == generation).then_some(policy)
        })
        .await
    };

    let policy = checked(1).await;
    let cron_spec = |kind: &str| {
        format!(
            "apps/v1, Kind={kind}: ERROR: <input>:1:19: undefined field 'cronSpec'\n \
             | string(object.spec.cronSpec)\n | ..................^\n"
        )
    };
    let compared = |kind: &str| {
        format!(
            "{kind}: ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'\n \
             | object.spec.replicas > '3'\n | .....................^\n"
        )
    };
    let limit = |kind: &str| {
        format!(
            "{kind}: ERROR: <input>:1:19: found no matching overload for '_==_' applied to '(string, int)'\n \
             | params.data.limit == 1\n | ..................^\n"
        )
    };
    let kinds = [
        "apps/v1, Kind=Deployment",
        "apps/v1, Kind=ReplicaSet",
        "stable.example.com/v1, Kind=CronTab",
    ];

    assert_eq!(
        warnings(&policy),
        [
            (
                "spec.validations[1].expression",
                kinds.map(compared).join("\n").as_str()
            ),
            (
                "spec.validations[2].messageExpression",
                [cron_spec("Deployment"), cron_spec("ReplicaSet")]
                    .join("\n")
                    .as_str()
            ),
            (
                "spec.validations[3].expression",
                kinds.map(limit).join("\n").as_str()
            ),
        ]
    );

    // Another generation, of which nothing is wrong.
    let merge = "{\"spec\": {\"validations\": [{\"expression\": \"object.spec.replicas > 3\"}]}}";
    let patch = Patch::Merge(json::parse(merge.as_bytes()).unwrap());
    policies.patch("types", &patch).await.unwrap();
    let policy = checked(2).await;
    assert_eq!(warnings(&policy), []);
    assert!(policy.at(&["status", "typeChecking"]).is_some());

    cluster.stop().await;
}
