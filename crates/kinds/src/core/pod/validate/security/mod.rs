//! `securityContext`, of a pod and of a container.

mod agreement;
mod profiles;
mod sysctls;
mod windows;

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{PodSecurityContext, SecurityContext};

use super::super::internal;
use super::{Frame, validate_enum, validate_range};
use crate::strategy::Errors;
use crate::validate::items;
pub(super) use agreement::validate_annotations_agree;
pub(in crate::core::pod) use profiles::validate_app_armor;
pub(in crate::core::pod) use sysctls::of_the_host as sysctl_of_the_host;

pub(super) fn validate_pod_security_context(frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    let (spec, options) = (frame.spec, frame.options);
    let none = PodSecurityContext::default();
    let context = spec.security_context.as_ref().unwrap_or(&none);
    validate_user_or_group_id(context.fs_group, &at.field("fsGroup"), errors);
    validate_user_or_group_id(context.run_as_user, &at.field("runAsUser"), errors);
    validate_user_or_group_id(context.run_as_group, &at.field("runAsGroup"), errors);

    for (index, group) in items(&context.supplemental_groups).iter().enumerate() {
        validate_user_or_group_id(
            Some(*group),
            &at.field("supplementalGroups").index(index),
            errors,
        );
    }

    if spec.share_process_namespace == Some(true) && spec.host_pid == Some(true) {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(
            &at.field("shareProcessNamespace"),
            "true".to_owned(),
            detail,
        ));
    }

    sysctls::validate_sysctls(items(&context.sysctls), frame, &at.field("sysctls"), errors);

    if let Some(policy) = &context.fs_group_change_policy {
        validate_enum(
            policy,
            &["Always", "OnRootMismatch"],
            &at.field("fsGroupChangePolicy"),
            errors,
        );
    }

    profiles::validate_seccomp(
        context.seccomp_profile.as_ref(),
        &at.field("seccompProfile"),
        errors,
    );

    windows::validate_windows_options(
        context.windows_options.as_ref(),
        &at.field("windowsOptions"),
        errors,
    );

    validate_app_armor(
        context.app_armor_profile.as_ref(),
        &at.field("appArmorProfile"),
        errors,
    );

    if let Some(policy) = &context.supplemental_groups_policy {
        validate_enum(
            policy,
            &["Merge", "Strict"],
            &at.field("supplementalGroupsPolicy"),
            errors,
        );
    }

    if let Some(policy) = &context.se_linux_change_policy {
        let known: &[&str] = if options.any_selinux_change {
            &["MountOption", "Recursive"]
        } else {
            &["Recursive"]
        };
        validate_enum(policy, known, &at.field("seLinuxChangePolicy"), errors);
    }
}

pub(super) fn validate_security_context(
    context: &SecurityContext,
    frame: &Frame<'_>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if context.privileged == Some(true) && !frame.options.privileged {
        errors.push(FieldError::forbidden(
            &at.field("privileged"),
            "disallowed by cluster policy",
        ));
    }

    validate_user_or_group_id(context.run_as_user, &at.field("runAsUser"), errors);
    validate_user_or_group_id(context.run_as_group, &at.field("runAsGroup"), errors);

    if let Some(mount) = &context.proc_mount {
        let place = at.field("procMount");
        validate_enum(mount, &["Default", "Unmasked"], &place, errors);
        if frame.host_users() && mount == "Unmasked" {
            let detail = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid_str(&place, mount, detail));
        }
    }

    profiles::validate_seccomp(
        context.seccomp_profile.as_ref(),
        &at.field("seccompProfile"),
        errors,
    );

    if context.allow_privilege_escalation == Some(false) {
        let mut contradiction = |detail: &str| {
            errors.push(FieldError::invalid(
                at,
                internal::security_context(context),
                detail,
            ))
        };

        if context.privileged == Some(true) {
            contradiction(
                "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
            );
        }

        let added = context
            .capabilities
            .iter()
            .flat_map(|capabilities| items(&capabilities.add));

        for _ in added.filter(|capability| *capability == "CAP_SYS_ADMIN") {
            contradiction(
                "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
            );
        }
    }

    windows::validate_windows_options(
        context.windows_options.as_ref(),
        &at.field("windowsOptions"),
        errors,
    );

    validate_app_armor(
        context.app_armor_profile.as_ref(),
        &at.field("appArmorProfile"),
        errors,
    );
}

/// Validates the number of a user or a group.
pub(in crate::core::pod) fn validate_user_or_group_id(
    found: Option<i64>,
    at: &Path<'_>,
    errors: &mut Errors,
) {
    if let Some(found) = found {
        validate_range(found, 0, i32::MAX.into(), at, errors);
    }
}
