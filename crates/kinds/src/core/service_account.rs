//! ServiceAccount: the identity of pods.

use coracle_api::time::Timestamp;
use coracle_api::{Map, Value};
use k8s_openapi::api::core::v1::ServiceAccount;

use crate::behaviour::{Behaviour, Handler};
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Strategy, View};

const MOUNTABLE_ONLY: &str = "kubernetes.io/enforce-mountable-secrets";

pub(crate) static BEHAVIOUR: Behaviour = Behaviour {
    strategy: &ServiceAccounts,
    printer: printer!(print_row),
    handlers: &[("token", Handler::TokenRequest)],
    ..Behaviour::DEFAULT
};

struct ServiceAccounts;

impl Strategy for ServiceAccounts {
    type Object = ServiceAccount;

    fn prepare_create(&self, new: &mut Value, _: &Context<'_>) {
        keep_names_of_secrets(new);
    }

    fn prepare_update(&self, new: &mut Value, _: &Value, _: &Context<'_>) {
        keep_names_of_secrets(new);
    }

    fn validate_update(
        &self,
        new: &View<'_, ServiceAccount>,
        _: &View<'_, ServiceAccount>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
    }

    fn warnings(
        &self,
        new: &View<'_, ServiceAccount>,
        old: Option<&View<'_, ServiceAccount>>,
        _: &Context<'_>,
    ) -> Vec<String> {
        let has = |account: &View<'_, ServiceAccount>| {
            account.tree.meta().annotation(MOUNTABLE_ONLY).is_some()
        };
        if !has(new) || old.is_some_and(has) {
            return Vec::new();
        }
        vec![format!(
            "metadata.annotations[{MOUNTABLE_ONLY}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        )]
    }
}

/// Drops all fields of a secret reference but the name.
fn keep_names_of_secrets(account: &mut Value) {
    let secrets = account
        .as_object_mut()
        .and_then(|account| account.get_mut("secrets")?.as_array_mut());
    for secret in secrets.into_iter().flatten() {
        let mut kept = Map::new();
        if let Some(name) = secret.get("name") {
            kept.insert("name", name.clone());
        }
        *secret = Value::Object(kept);
    }
}

fn print_row(account: &ServiceAccount, now: Timestamp) -> Row {
    row![
        cells::name(&account.metadata),
        cells::age(&account.metadata, now)
    ]
}
