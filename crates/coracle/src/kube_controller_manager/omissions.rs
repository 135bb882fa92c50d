//! Flags of upstream that the controller manager does not have, and why.

use coracle_settings::{Omission, Treatment};

pub(super) const OMISSIONS: &[Omission] = &[
    Omission {
        why: "Leases are the only lock of leader election",
        treatment: Treatment::Only(&["leases"]),
        values: &["leader-elect-resource-lock"],
        ..Omission::NONE
    },
    Omission {
        why: "there are no cloud providers in this program",
        treatment: Treatment::Only(&["", "external"]),
        values: &[
            "cloud-provider",
            "cloud-config",
            "external-cloud-volume-plugin",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "only controllers of cloud providers use it",
        treatment: Treatment::Ignored,
        switches: &["allow-untagged-cloud", "configure-cloud-routes"],
        values: &[
            "cluster-name",
            "concurrent-service-syncs",
            "node-sync-period",
            "route-reconciliation-period",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "controllers follow events; nothing is done periodically",
        treatment: Treatment::Ignored,
        values: &[
            "min-resync-period",
            "namespace-sync-period",
            "pvclaimbinder-sync-period",
            "resource-quota-sync-period",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "requests are JSON; all API servers accept it",
        treatment: Treatment::Ignored,
        values: &["kube-api-content-type"],
        ..Omission::NONE
    },
    Omission {
        why: "ranges of nodes are allocated from --cluster-cidr",
        treatment: Treatment::Only(&["RangeAllocator"]),
        values: &["cidr-allocator-type"],
        ..Omission::NONE
    },
    Omission {
        why: "all controllers start at once",
        treatment: Treatment::Only(&["0", "0s"]),
        values: &["controller-start-interval"],
        ..Omission::NONE
    },
    Omission {
        why: "controllers stop at once",
        treatment: Treatment::Ignored,
        values: &["controller-shutdown-timeout"],
        ..Omission::NONE
    },
    Omission {
        why: "controllers do not migrate between processes",
        treatment: Treatment::Only(&["", "false"]),
        switches: &["enable-leader-migration"],
        values: &["leader-migration-config"],
        ..Omission::NONE
    },
    Omission {
        why: "there is no horizontal pod autoscaler",
        values: &[
            "concurrent-horizontal-pod-autoscaler-syncs",
            "horizontal-pod-autoscaler-cpu-initialization-period",
            "horizontal-pod-autoscaler-downscale-stabilization",
            "horizontal-pod-autoscaler-initial-readiness-delay",
            "horizontal-pod-autoscaler-sync-period",
            "horizontal-pod-autoscaler-tolerance",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "there are no controllers that bind, provision, expand or attach volumes",
        switches: &[
            "disable-attach-detach-reconcile-sync",
            "disable-force-detach-on-timeout",
            "enable-dynamic-provisioning",
            "enable-hostpath-provisioner",
        ],
        values: &[
            "attach-detach-reconcile-sync-period",
            "concurrent-ephemeralvolume-syncs",
            "flex-volume-plugin-dir",
            "pv-recycler-increment-timeout-nfs",
            "pv-recycler-minimum-timeout-hostpath",
            "pv-recycler-minimum-timeout-nfs",
            "pv-recycler-pod-template-filepath-hostpath",
            "pv-recycler-pod-template-filepath-nfs",
            "pv-recycler-timeout-increment-hostpath",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "there are no controllers of dynamic resources",
        values: &[
            "concurrent-device-taint-eviction-syncs",
            "concurrent-resourceclaim-syncs",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "tokens of service accounts in Secrets are not cleaned up",
        values: &["legacy-service-account-token-clean-up-period"],
        ..Omission::NONE
    },
];
