//! Annotations with a meaning for pods.

/// On the mirror pod of a static pod.
pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";

/// How much it costs to delete this pod rather than another of the same set.
pub(super) const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

pub(super) const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";

/// Followed by the name of a container.
pub(super) const SECCOMP_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";

/// Followed by the name of a container.
pub(super) const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
