//! `os`: fields that pods of one operating system may not have, and Windows host processes.

use coracle_api::Path;
use coracle_api::field_error::FieldError;
use k8s_openapi::api::core::v1::{
    PodSecurityContext, PodSpec, SecurityContext, WindowsSecurityContextOptions,
};

use super::{Frame, every_container, validate_enum};
use crate::strategy::Errors;
use crate::validate::items;

pub(super) fn validate_os(spec: &PodSpec, at: &Path<'_>, errors: &mut Errors) {
    let Some(os) = &spec.os else { return };
    match os.name.as_str() {
        "" => errors.push(FieldError::required(&at.field("os").field("name"), "")),
        "linux" => validate_linux(spec, at, errors),
        "windows" => validate_windows(spec, at, errors),
        other => validate_enum(other, &["linux", "windows"], &at.field("os"), errors),
    }
}

fn validate_linux(spec: &PodSpec, at: &Path<'_>, errors: &mut Errors) {
    let detail = "windows options cannot be set for a linux pod";
    if spec
        .security_context
        .as_ref()
        .is_some_and(|context| context.windows_options.is_some())
    {
        errors.push(FieldError::forbidden(
            &at.field("securityContext").field("windowsOptions"),
            detail,
        ));
    }

    every_container(spec, at, |container, at| {
        if container
            .security_context
            .as_ref()
            .is_some_and(|context| context.windows_options.is_some())
        {
            errors.push(FieldError::forbidden(
                &at.field("securityContext").field("windowsOptions"),
                detail,
            ));
        }
    });
}

const NOT_FOR_WINDOWS: &str = "cannot be set for a windows pod";

fn validate_windows(spec: &PodSpec, at: &Path<'_>, errors: &mut Errors) {
    let none = PodSecurityContext::default();
    let context = spec.security_context.as_ref().unwrap_or(&none);

    let inner = at.field("securityContext");
    let given = [
        (
            &inner,
            context.app_armor_profile.is_some(),
            "appArmorProfile",
        ),
        (&inner, context.se_linux_options.is_some(), "seLinuxOptions"),
        (at, spec.host_users.is_some(), "hostUsers"),
        (at, spec.host_pid == Some(true), "hostPID"),
        (at, spec.host_ipc == Some(true), "hostIPC"),
        (&inner, context.seccomp_profile.is_some(), "seccompProfile"),
        (&inner, context.fs_group.is_some(), "fsGroup"),
        (
            &inner,
            context.fs_group_change_policy.is_some(),
            "fsGroupChangePolicy",
        ),
        (&inner, !items(&context.sysctls).is_empty(), "sysctls"),
        (
            at,
            spec.share_process_namespace.is_some(),
            "shareProcessNamespace",
        ),
        (&inner, context.run_as_user.is_some(), "runAsUser"),
        (&inner, context.run_as_group.is_some(), "runAsGroup"),
        (
            &inner,
            context.supplemental_groups.is_some(),
            "supplementalGroups",
        ),
        (
            &inner,
            context.supplemental_groups_policy.is_some(),
            "supplementalGroupsPolicy",
        ),
        (
            &inner,
            context.se_linux_change_policy.is_some(),
            "seLinuxChangePolicy",
        ),
    ];

    for (at, _, name) in given.into_iter().filter(|(_, given, _)| *given) {
        errors.push(FieldError::forbidden(&at.field(name), NOT_FOR_WINDOWS));
    }

    every_container(spec, at, |container, at| {
        if let Some(context) = &container.security_context {
            validate_windows_container(context, &at.field("securityContext"), errors);
        }
    });
}

fn validate_windows_container(context: &SecurityContext, at: &Path<'_>, errors: &mut Errors) {
    let given = [
        (context.app_armor_profile.is_some(), "appArmorProfile"),
        (context.se_linux_options.is_some(), "seLinuxOptions"),
        (context.seccomp_profile.is_some(), "seccompProfile"),
        (context.capabilities.is_some(), "capabilities"),
        (
            context.read_only_root_filesystem.is_some(),
            "readOnlyRootFilesystem",
        ),
        (context.privileged.is_some(), "privileged"),
        (
            context.allow_privilege_escalation.is_some(),
            "allowPrivilegeEscalation",
        ),
        (context.proc_mount.is_some(), "procMount"),
        (context.run_as_user.is_some(), "runAsUser"),
        (context.run_as_group.is_some(), "runAsGroup"),
    ];

    for (_, name) in given.into_iter().filter(|(given, _)| *given) {
        errors.push(FieldError::forbidden(&at.field(name), NOT_FOR_WINDOWS));
    }
}

/// Validates which containers are Windows host processes: all or none, and in the host network.
pub(super) fn validate_host_processes(frame: &Frame<'_>, at: &Path<'_>, errors: &mut Errors) {
    let spec = frame.spec;
    let asked = |options: Option<&WindowsSecurityContextOptions>| {
        options.and_then(|options| options.host_process)
    };
    let of_pod = asked(
        spec.security_context
            .as_ref()
            .and_then(|context| context.windows_options.as_ref()),
    );

    let (mut containers, mut processes) = (0, 0);
    every_container(spec, at, |container, at| {
        let context = container.security_context.as_ref();
        let own = asked(context.and_then(|context| context.windows_options.as_ref()));
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let detail = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            let place = at.field("securityContext");

            let place = place.field("windowsOptions");
            errors.push(FieldError::invalid(
                &place.field("hostProcess"),
                own.to_string(),
                detail,
            ));
        }

        containers += 1;
        processes += usize::from(own.or(of_pod) == Some(true));
    });

    if processes == 0 {
        return;
    }

    if processes != containers {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid_str(at, "", detail));
    }

    if spec.host_network != Some(true) {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(
            &at.field("hostNetwork"),
            "false".to_owned(),
            detail,
        ));
    }

    if !frame.options.privileged {
        errors.push(FieldError::forbidden(
            at,
            "hostProcess containers are disallowed by cluster policy",
        ));
    }
}
