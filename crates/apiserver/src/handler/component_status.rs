//! ComponentStatus: the health of the control plane's components, asked when it is read. Deprecated,
//! and not stored; `kubectl get componentstatuses` shows it still.

use std::sync::Arc;
use std::time::Duration;

use coracle_api::catalog::BUILTIN;
use coracle_api::selector::FieldSelector;
use coracle_api::{Map, Value};
use coracle_store::{Revision, Store};
use http::StatusCode;

use super::Server;
use super::resource::Checked;
use crate::ApiError;
use crate::answer::Answer;
use crate::cache::Entry;
use crate::registry::{List, field_selector};
use crate::render::Shown;
use crate::request::{ListOptions, Verb};

/// How long a component may take to answer.
const WITHIN: Duration = Duration::from_secs(20);

/// Components with the ports on which they serve their health by default. As upstream's server
/// does, this one supposes that they are on its machine.
const ON_PORTS: [(&str, u16); 2] = [("controller-manager", 10257), ("scheduler", 10259)];
const STORE: &str = "etcd-0";

/// What a component says of itself: its text, or the reason why there is none.
struct Condition {
    healthy: bool,
    message: String,
    error: String,
}

impl Server {
    pub(super) async fn component_statuses(
        &self,
        request: &Checked<'_>,
    ) -> Result<Answer, ApiError> {
        let name = request.target.name.as_str();
        if request.info.verb == Verb::Get {
            let Some(condition) = self.condition(name).await else {
                return Err(ApiError::not_found(request.scope.resource, name));
            };
            let status = status(name, condition);
            return self.shown(StatusCode::OK, Shown::Tree(&status), request);
        }

        let options = ListOptions::parse(request.query)?;
        let fields: FieldSelector = field_selector(&request.scope, &options.fields)?;
        let names = [STORE, ON_PORTS[0].0, ON_PORTS[1].0];
        let conditions = tokio::join!(
            self.condition(names[0]),
            self.condition(names[1]),
            self.condition(names[2])
        );

        let resource = request.scope.resource;
        let found = names
            .into_iter()
            .zip([conditions.0, conditions.1, conditions.2]);
        let entries = found.filter_map(|(name, condition)| {
            let status = status(name, condition?);
            Some(Arc::new(Entry::new(
                name,
                &status,
                &BUILTIN,
                resource,
                Revision::ZERO,
            )))
        });
        let list = List {
            revision: Revision::ZERO,
            entries: entries
                .filter(|entry| entry.matches(&options.labels, &fields, resource))
                .collect(),
            continue_token: String::new(),
            remaining: None,
        };
        self.listed(list, request)
    }

    /// `None`: there is no such component.
    async fn condition(&self, name: &str) -> Option<Condition> {
        if name == STORE {
            return Some(store_condition(&*self.registry.store).await);
        }
        let (_, port) = ON_PORTS.iter().find(|(known, _)| *known == name)?;
        let asked = tokio::time::timeout(WITHIN, self.connect.component_health(*port)).await;
        let (healthy, message) = match asked {
            Ok(Ok((status, text))) if status.as_u16() < 400 => (true, text),
            Ok(Ok((status, _))) => {
                let text = format!("HTTP probe failed with statuscode: {}", status.as_u16());
                (false, text)
            }
            Ok(Err(error)) => (false, error),
            Err(_) => (false, "context deadline exceeded".to_owned()),
        };
        Some(Condition {
            healthy,
            message,
            error: String::new(),
        })
    }
}

async fn store_condition(store: &dyn Store) -> Condition {
    let failed = |error: String| Condition {
        healthy: false,
        message: String::new(),
        error,
    };
    match tokio::time::timeout(WITHIN, store.status()).await {
        Ok(Ok(_)) => Condition {
            healthy: true,
            message: "ok".to_owned(),
            error: String::new(),
        },
        Ok(Err(error)) => failed(error.to_string()),
        Err(_) => failed("context deadline exceeded".to_owned()),
    }
}

fn status(name: &str, condition: Condition) -> Value {
    let mut healthy = Map::new();
    healthy.insert("type", "Healthy");
    healthy.insert("status", if condition.healthy { "True" } else { "False" });
    for (field, text) in [("message", condition.message), ("error", condition.error)] {
        if !text.is_empty() {
            healthy.insert(field, text.as_str());
        }
    }

    let mut metadata = Map::new();
    metadata.insert("name", name);
    let mut status = Map::new();
    status.insert("apiVersion", "v1");
    status.insert("kind", "ComponentStatus");
    status.insert("metadata", metadata);
    status.insert("conditions", vec![Value::Object(healthy)]);
    Value::Object(status)
}
