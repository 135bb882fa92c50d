//! The default roles and bindings, reconciled at every start.
//!
//! What an administrator has added is kept; what is missing is restored, unless the object's
//! annotation disables that. Aggregated roles have no rules here: a controller fills them in.

mod defaults;
mod reconcile;

use coracle_api::catalog::Resource;
use coracle_api::{Value, typed};
use coracle_kinds::Part;
use coracle_kinds::rbac::Rule;
use futures_util::future::try_join_all;
use http::StatusCode;
use k8s_openapi::api::rbac::v1::PolicyRule;

use super::{MANAGER, once};
use crate::ApiError;
use crate::hooks::Hook;
use crate::loopback::{Loopback, resource};
use reconcile::Reconciled;

const GROUP: &str = "rbac.authorization.k8s.io";

/// What every node may do that is not about objects of one node: the rules of `system:node`.
pub fn node_rules() -> Vec<Rule> {
    let all = defaults::all();
    let role = all
        .iter()
        .find(|(_, object)| object.meta().name() == "system:node");
    let rules = role
        .and_then(|(_, role)| role.get("rules")?.as_array())
        .unwrap_or_default();
    let rules = rules
        .iter()
        .filter_map(|rule| typed::from_tree::<PolicyRule>(rule).ok());
    rules.map(|rule| Rule::from(&rule)).collect()
}

pub(super) async fn run(loopback: &Loopback, hook: &Hook) {
    let wanted = defaults::all();
    once(hook, async || {
        // All at once: each waits for the disk, and the disk takes them together.
        try_join_all(
            wanted
                .iter()
                .map(|(plural, object)| ensure(loopback, plural, object)),
        )
        .await
        .map(drop)
    })
    .await;
}

async fn ensure(loopback: &Loopback, plural: &str, wanted: &Value) -> Result<(), ApiError> {
    let of = resource(GROUP, "v1", plural);
    let (namespace, name) = (wanted.meta().namespace(), wanted.meta().name());
    let key = if of.namespaced {
        format!("{namespace}/{name}")
    } else {
        name.to_string()
    };

    let Some(found) = loopback.get(of, &key) else {
        return loopback.ensure(of, namespace, MANAGER, wanted).await;
    };
    match reconcile::reconcile(plural, &found, wanted) {
        Reconciled::Unchanged => Ok(()),
        Reconciled::Changed(object) => update(loopback, of, namespace, &object).await,
        // A binding is always to the same role.
        Reconciled::MustRecreate => {
            loopback.delete(of, namespace, name).await?;
            loopback.ensure(of, namespace, MANAGER, wanted).await
        }
    }
}

async fn update(
    loopback: &Loopback,
    of: &'static Resource,
    namespace: &str,
    object: &Value,
) -> Result<(), ApiError> {
    match loopback
        .update(of, namespace, Part::Main, MANAGER, object)
        .await
    {
        // Deleted a moment ago, on purpose.
        Err(error) if error.code == StatusCode::NOT_FOUND => Ok(()),
        result => result.map(drop),
    }
}
