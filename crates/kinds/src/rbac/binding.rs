//! RoleBinding and ClusterRoleBinding.

use coracle_api::field_error::{FieldError, refuse};
use coracle_api::time::Timestamp;
use coracle_api::{Path, Value, names};
use futures_util::future::BoxFuture;
use k8s_openapi::api::rbac::v1::{ClusterRoleBinding, RoleBinding, RoleRef, Subject};

use super::{GROUP, OWN, escalation};
use crate::ApiError;
use crate::behaviour::Behaviour;
use crate::print::Row;
use crate::print::cells;
use crate::strategy::{Context, Errors, Settle, Strategy, View};
use crate::validate::{internal, items, text, validate_required};
use crate::{OwnMetadata, Part};

const ROLE_REF: Path<'static> = Path::Field(&Path::Root, "roleRef");

pub(crate) static ROLE_BINDINGS: Behaviour = Behaviour {
    strategy: &RoleBindings,
    printer: printer!(print_role_binding),
    ..Behaviour::DEFAULT
};

struct RoleBindings;

impl Strategy for RoleBindings {
    type Object = RoleBinding;

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
            escalation::check_binding(new, old, cx).await.map(|()| None)
        }))
    }

    fn validate(&self, new: &View<'_, RoleBinding>, _: &Context<'_>, errors: &mut Errors) {
        validate_role(&new.role_ref, &["Role", "ClusterRole"], errors);
        validate_subjects(items(&new.subjects), true, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, RoleBinding>,
        old: &View<'_, RoleBinding>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
        OWN.validate_change(new.tree, old.tree, errors);
        validate_kept(&new.role_ref, &old.role_ref, errors);
    }
}

pub(crate) static CLUSTER_ROLE_BINDINGS: Behaviour = Behaviour {
    strategy: &ClusterRoleBindings,
    printer: printer!(print_cluster_role_binding),
    ..Behaviour::DEFAULT
};

struct ClusterRoleBindings;

impl Strategy for ClusterRoleBindings {
    type Object = ClusterRoleBinding;

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
            escalation::check_binding(new, old, cx).await.map(|()| None)
        }))
    }

    fn validate(&self, new: &View<'_, ClusterRoleBinding>, _: &Context<'_>, errors: &mut Errors) {
        validate_role(&new.role_ref, &["ClusterRole"], errors);
        validate_subjects(items(&new.subjects), false, errors);
    }

    fn validate_update(
        &self,
        new: &View<'_, ClusterRoleBinding>,
        old: &View<'_, ClusterRoleBinding>,
        cx: &Context<'_>,
        errors: &mut Errors,
    ) {
        self.validate_anew(new, cx, errors);
        OWN.validate_change(new.tree, old.tree, errors);
        validate_kept(&new.role_ref, &old.role_ref, errors);
    }
}

fn validate_role(role: &RoleRef, kinds: &[&str], errors: &mut Errors) {
    if text(&role.api_group) != GROUP {
        let at = ROLE_REF.field("apiGroup");
        errors.push(FieldError::not_supported(
            &at,
            text(&role.api_group),
            &[GROUP],
        ));
    }

    if !kinds.contains(&role.kind.as_str()) {
        errors.push(FieldError::not_supported(
            &ROLE_REF.field("kind"),
            &role.kind,
            kinds,
        ));
    }

    validate_required(
        &role.name,
        names::path_segment_name,
        &ROLE_REF.field("name"),
        errors,
    );
}

/// Validates that the role is unchanged: permission to update a binding does not include binding to
/// another role.
fn validate_kept(new: &RoleRef, old: &RoleRef, errors: &mut Errors) {
    if new != old {
        let shown = internal::object(&[
            ("APIGroup", internal::text(text(&new.api_group))),
            ("Kind", internal::text(&new.kind)),
            ("Name", internal::text(&new.name)),
        ]);

        errors.push(FieldError::invalid(
            &ROLE_REF,
            shown,
            "cannot change roleRef",
        ));
    }
}

fn validate_subjects(subjects: &[Subject], namespaced: bool, errors: &mut Errors) {
    let at = Path::Root.field("subjects");
    for (index, subject) in subjects.iter().enumerate() {
        validate_subject(subject, namespaced, &at.index(index), errors);
    }
}

fn validate_subject(subject: &Subject, namespaced: bool, at: &Path<'_>, errors: &mut Errors) {
    if subject.name.is_empty() {
        errors.push(FieldError::required(&at.field("name"), ""));
    }

    let group = text(&subject.api_group);
    let mut in_group = |wanted: &str| {
        if group != wanted {
            errors.push(FieldError::not_supported(
                &at.field("apiGroup"),
                group,
                &[wanted],
            ));
        }
    };

    match subject.kind.as_str() {
        "ServiceAccount" => {
            if !subject.name.is_empty() {
                refuse(
                    &at.field("name"),
                    &subject.name,
                    names::dns1123_subdomain(&subject.name),
                    errors,
                );
            }

            if !group.is_empty() {
                errors.push(FieldError::not_supported(
                    &at.field("apiGroup"),
                    group,
                    &[""],
                ));
            }

            if !namespaced && text(&subject.namespace).is_empty() {
                errors.push(FieldError::required(&at.field("namespace"), ""));
            }
        }
        "User" | "Group" => in_group(GROUP),
        kind => {
            let known = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&at.field("kind"), kind, &known));
        }
    }
}

fn print_cluster_role_binding(binding: &ClusterRoleBinding, now: Timestamp) -> Row {
    let subjects = binding.subjects.as_deref().unwrap_or_default();
    row![
        cells::name(&binding.metadata),
        format!("{}/{}", binding.role_ref.kind, binding.role_ref.name),
        cells::age(&binding.metadata, now),
        named(subjects, "User"),
        named(subjects, "Group"),
        named(subjects, "ServiceAccount")
    ]
}

fn print_role_binding(binding: &RoleBinding, now: Timestamp) -> Row {
    let subjects = binding.subjects.as_deref().unwrap_or_default();
    row![
        cells::name(&binding.metadata),
        format!("{}/{}", binding.role_ref.kind, binding.role_ref.name),
        cells::age(&binding.metadata, now),
        named(subjects, "User"),
        named(subjects, "Group"),
        named(subjects, "ServiceAccount")
    ]
}

/// The names of all subjects of a kind. Service accounts are prefixed with their namespace.
pub(super) fn named(subjects: &[Subject], kind: &str) -> String {
    let names = subjects
        .iter()
        .filter(|subject| subject.kind == kind)
        .map(|subject| match kind {
            "ServiceAccount" => {
                format!(
                    "{}/{}",
                    subject.namespace.as_deref().unwrap_or_default(),
                    subject.name
                )
            }
            _ => subject.name.clone(),
        });

    names.collect::<Vec<_>>().join(", ")
}
