//! Values as upstream's errors show them where it marshals its internal types: Go's names, in the
//! order of the struct, with null for what is absent.

use coracle_api::codec::json;
use coracle_api::{Value, typed};
use k8s_openapi::api::core::v1::{
    Capabilities, NodeSelectorRequirement, NodeSelectorTerm, PodResourceClaim, SELinuxOptions,
    SeccompProfile, SecurityContext, WindowsSecurityContextOptions,
};
use serde::Serialize;

use crate::validate::internal::{list, object, pointer};

pub(super) fn resource_claim(claim: &PodResourceClaim) -> String {
    object(&[
        ("Name", shown(&claim.name)),
        ("ResourceClaimName", shown(&claim.resource_claim_name)),
        (
            "ResourceClaimTemplateName",
            shown(&claim.resource_claim_template_name),
        ),
    ])
}

pub(super) fn seccomp_profile(profile: &SeccompProfile) -> String {
    object(&[
        ("Type", shown(&profile.type_)),
        ("LocalhostProfile", shown(&profile.localhost_profile)),
    ])
}

pub(super) fn security_context(context: &SecurityContext) -> String {
    let app_armor = context.app_armor_profile.as_ref().map(|profile| {
        object(&[
            ("Type", shown(&profile.type_)),
            ("LocalhostProfile", shown(&profile.localhost_profile)),
        ])
    });

    object(&[
        (
            "Capabilities",
            pointer(context.capabilities.as_ref().map(capabilities)),
        ),
        ("Privileged", shown(&context.privileged)),
        (
            "SELinuxOptions",
            pointer(context.se_linux_options.as_ref().map(selinux_options)),
        ),
        (
            "WindowsOptions",
            pointer(context.windows_options.as_ref().map(windows_options)),
        ),
        ("RunAsUser", shown(&context.run_as_user)),
        ("RunAsGroup", shown(&context.run_as_group)),
        ("RunAsNonRoot", shown(&context.run_as_non_root)),
        (
            "ReadOnlyRootFilesystem",
            shown(&context.read_only_root_filesystem),
        ),
        (
            "AllowPrivilegeEscalation",
            shown(&context.allow_privilege_escalation),
        ),
        ("ProcMount", shown(&context.proc_mount)),
        (
            "SeccompProfile",
            pointer(context.seccomp_profile.as_ref().map(seccomp_profile)),
        ),
        ("AppArmorProfile", pointer(app_armor)),
    ])
}

fn capabilities(capabilities: &Capabilities) -> String {
    object(&[
        ("Add", shown(&capabilities.add)),
        ("Drop", shown(&capabilities.drop)),
    ])
}

fn selinux_options(options: &SELinuxOptions) -> String {
    let text = |given: &Option<String>| shown(&given.as_deref().unwrap_or_default());
    object(&[
        ("User", text(&options.user)),
        ("Role", text(&options.role)),
        ("Type", text(&options.type_)),
        ("Level", text(&options.level)),
    ])
}

fn windows_options(options: &WindowsSecurityContextOptions) -> String {
    object(&[
        (
            "GMSACredentialSpecName",
            shown(&options.gmsa_credential_spec_name),
        ),
        ("GMSACredentialSpec", shown(&options.gmsa_credential_spec)),
        ("RunAsUserName", shown(&options.run_as_user_name)),
        ("HostProcess", shown(&options.host_process)),
    ])
}

pub(super) fn node_selector_term(term: &NodeSelectorTerm) -> String {
    let requirements = |given: &Option<Vec<NodeSelectorRequirement>>| {
        pointer(
            given
                .as_ref()
                .map(|given| list(given.iter().map(node_selector_requirement))),
        )
    };
    object(&[
        ("MatchExpressions", requirements(&term.match_expressions)),
        ("MatchFields", requirements(&term.match_fields)),
    ])
}

fn node_selector_requirement(requirement: &NodeSelectorRequirement) -> String {
    object(&[
        ("Key", shown(&requirement.key)),
        ("Operator", shown(&requirement.operator)),
        ("Values", shown(&requirement.values)),
    ])
}

/// A value whose JSON is the same for the internal type.
pub(super) fn shown<T: Serialize>(value: &T) -> String {
    json::to_string(&typed::to_tree(value).unwrap_or(Value::Null))
}
