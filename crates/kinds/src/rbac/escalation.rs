//! Privilege escalation: the writer of a role or binding must have the permissions that it grants,
//! or the verb `escalate` on the role or `bind` on the role referred to.

use coracle_api::go_text::Quoted;
use coracle_api::{Value, typed};
use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef};

use super::{GROUP, Rule, Unresolved, aggregate, covers};
use crate::ApiError;
use crate::access::{Attributes, ResourceTarget};
use crate::strategy::Context;

const AGGREGATION: &str = "must have cluster-admin privileges to use the aggregationRule";

/// Whether the user may write a role.
pub(super) async fn check_role(
    new: &Value,
    old: Option<&Value>,
    cx: &Context<'_>,
) -> Result<(), ApiError> {
    let (user, resource) = (cx.user, cx.resource);
    let name = new.meta().name();
    let target_resource = ResourceTarget {
        group: GROUP,
        version: "*",
        resource: &resource.plural,
        name: if old.is_some() { name } else { "" },
        namespace: cx.namespace,
        ..ResourceTarget::default()
    };

    if user.is_master()
        || cx
            .cluster
            .authorize(Attributes::on(user, "escalate", target_resource))
            .await
        || old.is_some_and(|old| only_for_collection(new, old))
    {
        return Ok(());
    }

    let rules = new
        .get("rules")
        .map(typed::from_tree::<Option<Vec<PolicyRule>>>)
        .transpose();

    let rules = rules
        .map_err(|error| ApiError::internal(error.to_string()))?
        .flatten()
        .unwrap_or_default();
    let rules: Vec<Rule> = rules.iter().map(Rule::from).collect();
    check_owned(&rules, cx).map_err(|why| ApiError::forbidden(resource, name, &why))?;

    let gathers = |role: &Value| {
        let selectors = role
            .at(&["aggregationRule", "clusterRoleSelectors"])
            .and_then(Value::as_array);
        selectors.is_some_and(|selectors| !selectors.is_empty())
    };

    // An aggregated role can grant anything later.
    if (gathers(new) || old.is_some_and(gathers)) && check_owned(&everything(), cx).is_err() {
        return Err(ApiError::forbidden(resource, name, AGGREGATION));
    }

    Ok(())
}

/// Whether the user may write a binding.
pub(super) async fn check_binding(
    new: &Value,
    old: Option<&Value>,
    cx: &Context<'_>,
) -> Result<(), ApiError> {
    let (user, resource) = (cx.user, cx.resource);
    if user.is_master() || old.is_some_and(|old| only_for_collection(new, old)) {
        return Ok(());
    }

    let role = new.get("roleRef").map(typed::from_tree::<RoleRef>);
    let role = role
        .transpose()
        .map_err(|error| ApiError::internal(error.to_string()))?
        .unwrap_or_default();

    let plural = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        _ => "",
    };

    let target_resource = ResourceTarget {
        group: role.api_group.as_deref().unwrap_or_default(),
        version: "*",
        resource: plural,
        name: &role.name,
        namespace: cx.namespace,
        ..ResourceTarget::default()
    };

    if !plural.is_empty()
        && cx
            .cluster
            .authorize(Attributes::on(user, "bind", target_resource))
            .await
    {
        return Ok(());
    }

    let rules = cx
        .cluster
        .rules_of_role(&role, cx.namespace)
        .map_err(|error| match error {
            Unresolved::Kind(_) => ApiError::unexplained(error.to_string()),
            // Upstream names the resource of the request, regardless of the missing object.
            Unresolved::ClusterRole(_) | Unresolved::Role(_) => {
                ApiError::not_found(resource, &role.name)
            }
        })?;

    check_owned(&rules, cx).map_err(|why| ApiError::forbidden(resource, new.meta().name(), &why))
}

/// Whether the write changes only what the garbage collector changes.
fn only_for_collection(new: &Value, old: &Value) -> bool {
    let bare = |object: &Value| {
        let mut object = object.clone();
        for name in [
            "ownerReferences",
            "finalizers",
            "managedFields",
            "selfLink",
            "resourceVersion",
        ] {
            object.meta_mut().members().remove(name);
        }

        object
    };

    bare(new) == bare(old)
}

/// Whether the user has all of these permissions; the error lists the missing ones.
fn check_owned(rules: &[Rule], cx: &Context<'_>) -> Result<(), String> {
    let user = cx.user;
    let (owned, errors) = cx.cluster.rules_of_user(user, cx.namespace);
    let missing = covers::missing(&owned, rules);
    if missing.is_empty() {
        return Ok(());
    }

    let groups: Vec<String> = user
        .groups
        .iter()
        .map(|group| Quoted(group).to_string())
        .collect();

    let missing: Vec<String> = missing.into_iter().collect();
    let mut text = format!(
        "user {} (groups=[{}]) is attempting to grant RBAC permissions not currently held:\n{}",
        Quoted(&user.name),
        groups.join(" "),
        missing.join("\n")
    );

    if !errors.is_empty() {
        text.push_str(&format!("; resolution errors: [{}]", aggregate(&errors)));
    }

    Err(text)
}

fn everything() -> [Rule; 2] {
    let all = || vec!["*".into()].into_boxed_slice();
    let none = || Vec::new().into_boxed_slice();
    [
        Rule {
            verbs: all(),
            groups: all(),
            resources: all(),
            names: none(),
            urls: none(),
        },
        Rule {
            verbs: all(),
            groups: none(),
            resources: none(),
            names: none(),
            urls: all(),
        },
    ]
}
