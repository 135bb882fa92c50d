//! Role and ClusterRole.

use coracle_api::field_error::FieldError;
use coracle_api::selector::{self, Values, has_bad_value};
use coracle_api::{Path, Value};
use futures_util::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule, Role};

use super::{OWN, escalation};
use crate::ApiError;
use crate::behaviour::Behaviour;
use crate::strategy::{Context, Errors, Settle, Strategy, View};
use crate::validate::{internal, items};
use crate::{OwnMetadata, Part};

pub(crate) static ROLES: Behaviour = Behaviour {
    strategy: &Roles,
    ..Behaviour::DEFAULT
};

struct Roles;

impl Strategy for Roles {
    type Object = Role;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OWN
    }

    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        Some(Box::pin(async move {
            escalation::check_role(new, old, cx).await.map(|()| None)
        }))
    }

    fn validate(&self, new: &View<'_, Role>, _: &Context<'_>, errors: &mut Errors) {
        validate_rules(items(&new.rules), true, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, Role>,
        old: &View<'_, Role>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
        OWN.validate_change(new.tree, old.tree, errors);
    }
}

pub(crate) static CLUSTER_ROLES: Behaviour = Behaviour {
    strategy: &ClusterRoles,
    ..Behaviour::DEFAULT
};

struct ClusterRoles;

impl Strategy for ClusterRoles {
    type Object = ClusterRole;

    fn own_metadata(&self, _: Part) -> OwnMetadata {
        OWN
    }

    fn begin<'n, 'a: 'n>(
        &'a self,
        new: &'n mut Value,
        old: Option<&'n Value>,
        cx: &'a Context<'a>,
    ) -> Option<BoxFuture<'n, Result<Option<Settle<'a>>, ApiError>>> {
        Some(Box::pin(async move {
            escalation::check_role(new, old, cx).await.map(|()| None)
        }))
    }

    fn validate(&self, new: &View<'_, ClusterRole>, _: &Context<'_>, errors: &mut Errors) {
        validate_cluster_role(new, Values::Validated, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ClusterRole>,
        old: &View<'_, ClusterRole>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        let selectors = old
            .aggregation_rule
            .iter()
            .flat_map(|rule| items(&rule.cluster_role_selectors));

        let was_bad = selectors
            .into_iter()
            .any(|selector| has_bad_value(Some(selector)));
        OWN.validate(new.tree, cx, errors);
        validate_cluster_role(
            new,
            if was_bad {
                Values::Kept
            } else {
                Values::Validated
            },
            errors,
        );

        OWN.validate_change(new.tree, old.tree, errors);
    }
}

fn validate_cluster_role(role: &ClusterRole, values: Values, errors: &mut Errors) {
    validate_rules(items(&role.rules), false, errors);
    let Some(rule) = &role.aggregation_rule else {
        return;
    };
    let at = Path::Root.field("aggregationRule.clusterRoleSelectors");

    let selectors = items(&rule.cluster_role_selectors);
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&at, detail));
    }

    for (index, found) in selectors.iter().enumerate() {
        let before = errors.len();
        selector::validate(Some(found), values, &at.index(index), errors);

        if errors.len() > before {
            // Such a role cannot be created, so nothing is printed.
            let detail = "invalid label selector.";
            errors.push(FieldError::invalid(
                &at.index(index),
                "null".to_owned(),
                detail,
            ));
        }
    }
}

fn validate_rules(rules: &[PolicyRule], namespaced: bool, errors: &mut Errors) {
    let at = Path::Root.field("rules");
    for (index, rule) in rules.iter().enumerate() {
        validate_rule(rule, namespaced, &at.index(index), errors);
    }
}

fn validate_rule(rule: &PolicyRule, namespaced: bool, at: &Path<'_>, errors: &mut Errors) {
    if rule.verbs.is_empty() {
        errors.push(FieldError::required(
            &at.field("verbs"),
            "verbs must contain at least one value",
        ));
    }

    let (groups, resources) = (items(&rule.api_groups), items(&rule.resources));
    let urls = items(&rule.non_resource_urls);
    if urls.is_empty() {
        if groups.is_empty() {
            let detail = "resource rules must supply at least one api group";
            errors.push(FieldError::required(&at.field("apiGroups"), detail));
        }

        if resources.is_empty() {
            let detail = "resource rules must supply at least one resource";
            errors.push(FieldError::required(&at.field("resources"), detail));
        }

        return;
    }

    let mut refuse = |detail: &str| {
        let shown = internal::texts(Some(urls));
        errors.push(FieldError::invalid(
            &at.field("nonResourceURLs"),
            shown,
            detail,
        ));
    };

    if namespaced {
        refuse("namespaced rules cannot apply to non-resource URLs");
    }
    if !groups.is_empty() || !resources.is_empty() || !items(&rule.resource_names).is_empty() {
        refuse("rules cannot apply to both regular resources and non-resource URLs");
    }
}
