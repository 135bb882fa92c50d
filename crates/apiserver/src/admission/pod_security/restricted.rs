//! The checks of the level `restricted`, in addition to `baseline`.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Volume;

use super::Violation;
use super::baseline::{added, is_good_seccomp, proc_mount, seccomp_of, seccomp_of_pod};
use super::pod_view::{
    ContainerView, PodView, containers, counted, quoted, setters, sorted, violation,
};

/// What is wrong with a pod by the rules of `v1.minor`, besides those of the baseline.
pub(super) fn violations(pod: &PodView<'_>, minor: u32) -> Vec<Violation> {
    let windows = minor >= 25 && pod.is_of_windows();
    let own_users = minor >= 35 && pod.has_own_users();
    let rules = [
        (minor >= 8 && !windows).then(|| escalation(pod)).flatten(),
        (minor >= 22 && !windows)
            .then(|| capabilities(pod))
            .flatten(),
        (minor >= 35).then(|| proc_mount(pod)).flatten(),
        volumes(pod),
        (!own_users).then(|| root(pod)).flatten(),
        (minor >= 23 && !own_users)
            .then(|| user_zero(pod))
            .flatten(),
        (minor >= 19 && !windows).then(|| seccomp(pod)).flatten(),
    ];

    rules.into_iter().flatten().collect()
}

fn escalation(pod: &PodView<'_>) -> Option<Violation> {
    let names = pod.named(|container| {
        container
            .security
            .is_none_or(|security| security.allow_privilege_escalation != Some(false))
    });

    let detail = || {
        format!(
            "{} must set securityContext.allowPrivilegeEscalation=false",
            containers(&names)
        )
    };

    (!names.is_empty())
        .then(|| violation("allowPrivilegeEscalation != false", detail()))
        .flatten()
}

fn capabilities(pod: &PodView<'_>) -> Option<Violation> {
    let keeping = pod.named(|container| {
        let capabilities = container
            .security
            .and_then(|security| security.capabilities.as_ref());
        let mut dropped = capabilities
            .and_then(|capabilities| capabilities.drop.as_ref())
            .into_iter()
            .flatten();
        !dropped.any(|name| name == "ALL")
    });

    let of = |container: &ContainerView<'_>| added(container, |name| name == "NET_BIND_SERVICE");
    let adding = pod.named(|container| !of(container).is_empty());
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            containers(&keeping)
        ));
    }

    if !adding.is_empty() {
        let all: BTreeSet<String> = pod.containers.iter().flat_map(of).collect();
        details.push(format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&adding),
            quoted(&sorted(&all))
        ));
    }

    (!details.is_empty())
        .then(|| violation("unrestricted capabilities", details.join("; ")))
        .flatten()
}

fn volumes(pod: &PodView<'_>) -> Option<Violation> {
    let bad: Vec<&Volume> = pod
        .spec
        .volumes
        .iter()
        .flatten()
        .filter(|volume| !is_harmless(volume))
        .collect();
    let names: Vec<&str> = bad.iter().map(|volume| volume.name.as_str()).collect();

    let kinds: BTreeSet<String> = bad.iter().map(|volume| kind(volume).to_owned()).collect();
    let detail = || {
        format!(
            "{} {} {} {} {}",
            counted("volume", "volumes", names.len()),
            quoted(&names),
            counted("uses", "use", names.len()),
            counted(
                "restricted volume type",
                "restricted volume types",
                kinds.len()
            ),
            quoted(&sorted(&kinds))
        )
    };

    (!names.is_empty())
        .then(|| violation("restricted volume types", detail()))
        .flatten()
}

fn is_harmless(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.csi.is_some()
        || volume.downward_api.is_some()
        || volume.empty_dir.is_some()
        || volume.ephemeral.is_some()
        || volume.image.is_some()
        || volume.persistent_volume_claim.is_some()
        || volume.projected.is_some()
        || volume.secret.is_some()
}

fn kind(volume: &Volume) -> &'static str {
    let kinds = [
        ("hostPath", volume.host_path.is_some()),
        ("gcePersistentDisk", volume.gce_persistent_disk.is_some()),
        (
            "awsElasticBlockStore",
            volume.aws_elastic_block_store.is_some(),
        ),
        ("gitRepo", volume.git_repo.is_some()),
        ("nfs", volume.nfs.is_some()),
        ("iscsi", volume.iscsi.is_some()),
        ("glusterfs", volume.glusterfs.is_some()),
        ("rbd", volume.rbd.is_some()),
        ("flexVolume", volume.flex_volume.is_some()),
        ("cinder", volume.cinder.is_some()),
        ("cephfs", volume.cephfs.is_some()),
        ("flocker", volume.flocker.is_some()),
        ("fc", volume.fc.is_some()),
        ("azureFile", volume.azure_file.is_some()),
        ("vsphereVolume", volume.vsphere_volume.is_some()),
        ("quobyte", volume.quobyte.is_some()),
        ("azureDisk", volume.azure_disk.is_some()),
        (
            "photonPersistentDisk",
            volume.photon_persistent_disk.is_some(),
        ),
        ("portworxVolume", volume.portworx_volume.is_some()),
        ("scaleIO", volume.scale_io.is_some()),
        ("storageos", volume.storageos.is_some()),
    ];

    kinds
        .into_iter()
        .find(|(_, is_it)| *is_it)
        .map_or("unknown", |(name, _)| name)
}

fn root(pod: &PodView<'_>) -> Option<Violation> {
    const REASON: &str = "runAsNonRoot != true";

    let whole = pod.security().and_then(|security| security.run_as_non_root);

    let of = |container: &ContainerView<'_>| {
        container
            .security
            .and_then(|security| security.run_as_non_root)
    };

    let explicit = pod.named(|container| of(container) == Some(false));
    if let Some(by) = setters(whole == Some(false), &explicit) {
        return violation(
            REASON,
            format!("{by} must not set securityContext.runAsNonRoot=false"),
        );
    }

    let implicit = pod.named(|container| of(container).is_none() && whole != Some(true));
    let detail = || {
        format!(
            "pod or {} must set securityContext.runAsNonRoot=true",
            containers(&implicit)
        )
    };

    (!implicit.is_empty())
        .then(|| violation(REASON, detail()))
        .flatten()
}

fn user_zero(pod: &PodView<'_>) -> Option<Violation> {
    let whole = pod.security().and_then(|security| security.run_as_user);
    let names = pod
        .named(|container| container.security.and_then(|security| security.run_as_user) == Some(0));
    let by = setters(whole == Some(0), &names)?;
    violation("runAsUser=0", format!("{by} must not set runAsUser=0"))
}

fn seccomp(pod: &PodView<'_>) -> Option<Violation> {
    const REASON: &str = "seccompProfile";

    let whole = seccomp_of_pod(pod);
    let is_good = whole.as_deref().is_some_and(is_good_seccomp);
    let bad = |kind: Option<String>| kind.filter(|kind| !is_good_seccomp(kind));

    let explicit = pod.named(|container| bad(seccomp_of(container)).is_some());
    if let Some(by) = setters(whole.is_some() && !is_good, &explicit) {
        let of_containers = pod
            .containers
            .iter()
            .filter_map(|container| bad(seccomp_of(container)));
        let kinds: BTreeSet<String> = bad(whole).into_iter().chain(of_containers).collect();
        let detail = format!(
            "{by} must not set securityContext.seccompProfile.type to {}",
            quoted(&sorted(&kinds))
        );

        return violation(REASON, detail);
    }

    let implicit = pod.named(|container| seccomp_of(container).is_none() && !is_good);
    let detail = || {
        format!(
            "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
            containers(&implicit)
        )
    };

    (!implicit.is_empty())
        .then(|| violation(REASON, detail()))
        .flatten()
}
