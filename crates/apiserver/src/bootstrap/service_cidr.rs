//! The ServiceCIDR `kubernetes`: the Service address ranges of the command line. It is recreated
//! when it is deleted; one with other ranges is not changed.

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value, typed};
use coracle_kinds::Part;
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::{ServiceCIDR, ServiceCIDRSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use tracing::warn;

use super::{MANAGER, keep};
use crate::ApiError;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};

const NAME: &str = "kubernetes";

/// The field manager of its status.
const STATUS_MANAGER: &str = "kubernetes-service-cidr-controller";

/// What to do with the object.
#[derive(Debug, PartialEq)]
enum Step {
    Create,
    /// A second family joins the first.
    Replace(Value),
    SayReady,
    /// It differs from the command line.
    Differs,
    Nothing,
}

pub(super) async fn run(loopback: &Loopback, cidrs: &[IpNet], hook: &Hook) {
    let texts: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
    let listening = loopback
        .cache(resource("networking.k8s.io", "v1", "servicecidrs"))
        .notifier_of(NAME);
    keep(hook, &[&listening.notifier], async || {
        ensure(loopback, &texts).await
    })
    .await;
}

async fn ensure(loopback: &Loopback, cidrs: &[String]) -> Result<(), ApiError> {
    let of = resource("networking.k8s.io", "v1", "servicecidrs");
    loop {
        match plan(loopback.get(of, NAME).as_ref(), cidrs) {
            Step::Create => loopback.ensure(of, "", MANAGER, &new(cidrs)).await?,
            Step::Replace(object) => drop(
                loopback
                    .update(of, "", Part::Main, MANAGER, &object)
                    .await?,
            ),
            Step::SayReady => {
                let status = ready((loopback.registry.now)());
                loopback
                    .apply_status(of, "", STATUS_MANAGER, &status)
                    .await?;
                return Ok(());
            }
            Step::Differs => {
                warn!(name = NAME, wanted = ?cidrs, "ServiceCIDR differs from the command line");
                return Ok(());
            }
            Step::Nothing => return Ok(()),
        }
    }
}

fn plan(found: Option<&Value>, cidrs: &[String]) -> Step {
    let Some(found) = found else {
        return Step::Create;
    };
    let own: Vec<&str> = found
        .at(&["spec", "cidrs"])
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();

    if let ([first], [wanted, _]) = (&own[..], cidrs)
        && first == wanted
    {
        let mut upgraded = found.clone();
        let list: Vec<Value> = cidrs.iter().map(Value::string).collect();
        upgraded
            .as_object_mut()
            .expect("an object")
            .object_mut("spec")
            .insert("cidrs", list);
        return Step::Replace(upgraded);
    }

    if found.meta().is_being_deleted() {
        return Step::Nothing;
    }

    if own != cidrs {
        return Step::Differs;
    }

    let conditions = found
        .at(&["status", "conditions"])
        .and_then(Value::as_array);
    let mut conditions = conditions.into_iter().flatten();

    let ready =
        conditions.find(|condition| condition.get("type").and_then(Value::as_str) == Some("Ready"));
    match ready
        .and_then(|condition| condition.get("status"))
        .and_then(Value::as_str)
    {
        None | Some("Unknown") => Step::SayReady,
        Some(_) => Step::Nothing,
    }
}

fn new(cidrs: &[String]) -> Value {
    let object = ServiceCIDR {
        metadata: ObjectMeta {
            name: Some(NAME.to_string()),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceCIDRSpec {
            cidrs: Some(cidrs.to_vec()),
        }),
        status: None,
    };
    typed::to_tree(&object).expect("a typed object has a tree")
}

/// The status, as it is applied.
fn ready(now: Timestamp) -> Value {
    let mut condition = Map::new();
    condition.insert("type", "Ready");
    condition.insert("status", "True");
    condition.insert("message", "Kubernetes default Service CIDR is ready");
    condition.insert("lastTransitionTime", Time(now).to_string().as_str());
    let mut status = Map::new();
    status.insert("conditions", vec![Value::Object(condition)]);

    let mut metadata = Map::new();
    metadata.insert("name", NAME);
    let mut object = Map::new();
    object.insert("apiVersion", "networking.k8s.io/v1");
    object.insert("kind", "ServiceCIDR");
    object.insert("metadata", metadata);
    object.insert("status", status);

    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use coracle_api::codec::json;

    use super::*;

    fn check(found: &str, cidrs: &[&str], expected: &Step) {
        let found = json::parse(found.as_bytes()).unwrap();
        let cidrs: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
        assert_eq!(plan(Some(&found), &cidrs), *expected);
    }

    #[test]
    fn the_stored_object_decides_the_step() {
        assert_eq!(plan(None, &[]), Step::Create);

        let bare = r#"{"metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.0.0.0/16"]}}"#;
        check(bare, &["10.0.0.0/16"], &Step::SayReady);
        check(bare, &["10.1.0.0/16"], &Step::Differs);

        let dual = json::parse(
            br#"{"metadata":{"name":"kubernetes"},"spec":{"cidrs":["10.0.0.0/16","fd00::/112"]}}"#,
        );
        check(
            bare,
            &["10.0.0.0/16", "fd00::/112"],
            &Step::Replace(dual.unwrap()),
        );

        let said = |status: &str| {
            format!(
                r#"{{"metadata":{{"name":"kubernetes"}},"spec":{{"cidrs":["10.0.0.0/16"]}},
                "status":{{"conditions":[{{"type":"Ready","status":"{status}"}}]}}}}"#
            )
        };

        check(&said("True"), &["10.0.0.0/16"], &Step::Nothing);
        check(&said("False"), &["10.0.0.0/16"], &Step::Nothing);
        check(&said("Unknown"), &["10.0.0.0/16"], &Step::SayReady);
    }
}
