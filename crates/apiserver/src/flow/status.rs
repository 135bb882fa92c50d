//! The condition `Dangling` of each flow schema: whether the priority level it names is missing.

use coracle_api::time::{Time, Timestamp};
use coracle_api::{Map, Value};
use coracle_kinds::flowcontrol::defaults;
use http::StatusCode;
use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use tracing::warn;

use super::flow_schemas;
use crate::loopback::Loopback;

/// The field manager of the condition.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// The wanted condition `Dangling` of a schema.
#[derive(Debug, PartialEq, Eq)]
struct Dangling {
    status: &'static str,
    reason: &'static str,
    message: String,
}

/// Writes the conditions that differ.
pub(super) async fn write(
    loopback: &Loopback,
    schemas: &[FlowSchema],
    levels: &[PriorityLevelConfiguration],
) {
    for schema in schemas {
        let Some(dangling) = due(schema, levels) else {
            continue;
        };
        let name = schema.metadata.name.as_deref().unwrap_or_default();

        let object = applied(name, &dangling, (loopback.registry.now)());
        match loopback
            .apply_status(flow_schemas(), "", MANAGER, &object)
            .await
        {
            // It went meanwhile; the next round knows.
            Err(error) if error.code == StatusCode::NOT_FOUND => {}
            Err(error) => warn!(
                name,
                error = error.message,
                "cannot update FlowSchema status"
            ),
            Ok(()) => {}
        }
    }
}

/// `None`: the schema has it already.
fn due(schema: &FlowSchema, levels: &[PriorityLevelConfiguration]) -> Option<Dangling> {
    let wanted = &schema.spec.as_ref()?.priority_level_configuration.name;
    let exists = defaults::MANDATORY.contains(&wanted.as_str())
        || levels
            .iter()
            .any(|level| level.metadata.name.as_ref() == Some(wanted));

    let object = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {wanted:?}"
    );
    let due = if exists {
        Dangling {
            status: "False",
            reason: "Found",
            message: format!("{object} and it exists"),
        }
    } else {
        Dangling {
            status: "True",
            reason: "NotFound",
            message: format!("{object} but there is no such object"),
        }
    };

    let conditions = schema
        .status
        .iter()
        .flat_map(|status| status.conditions.iter().flatten());

    let mut own = conditions.filter(|condition| condition.type_.as_deref() == Some("Dangling"));
    let is_set = own.any(|condition| {
        condition.status.as_deref() == Some(due.status)
            && condition.reason.as_deref() == Some(due.reason)
            && condition.message.as_ref() == Some(&due.message)
    });

    (!is_set).then_some(due)
}

fn applied(name: &str, dangling: &Dangling, now: Timestamp) -> Value {
    let mut condition = Map::new();
    condition.insert("type", "Dangling");
    condition.insert("status", dangling.status);
    condition.insert("lastTransitionTime", Time(now).to_string().as_str());
    condition.insert("reason", dangling.reason);
    condition.insert("message", dangling.message.as_str());
    let mut status = Map::new();
    status.insert("conditions", vec![Value::Object(condition)]);

    let mut metadata = Map::new();
    metadata.insert("name", name);
    let mut object = Map::new();
    object.insert("apiVersion", "flowcontrol.apiserver.k8s.io/v1");
    object.insert("kind", "FlowSchema");
    object.insert("metadata", Value::Object(metadata));
    object.insert("status", Value::Object(status));

    Value::Object(object)
}
