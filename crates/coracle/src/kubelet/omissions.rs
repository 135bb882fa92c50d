//! Flags and keys of upstream's kubelet that do not exist here, and why.

use coracle_settings::{Omission, Treatment};

pub(super) const OMISSIONS: &[Omission] = &[
    Omission {
        why: "there is no eviction",
        treatment: Treatment::Ignored,
        switches: &["kernel-memcg-notification"],
        values: &[
            "eviction-hard",
            "eviction-max-pod-grace-period",
            "eviction-minimum-reclaim",
            "eviction-pressure-transition-period",
            "eviction-soft",
            "eviction-soft-grace-period",
        ],
        keys: &[
            "evictionHard",
            "evictionMaxPodGracePeriod",
            "evictionMinimumReclaim",
            "evictionPressureTransitionPeriod",
            "evictionSoft",
            "evictionSoftGracePeriod",
            "kernelMemcgNotification",
            "mergeDefaultEvictionSettings",
        ],
    },
    Omission {
        why: "images and dead containers are not collected by age and number",
        treatment: Treatment::Ignored,
        values: &[
            "image-gc-high-threshold",
            "image-gc-low-threshold",
            "maximum-dead-containers",
            "maximum-dead-containers-per-container",
            "minimum-container-ttl-duration",
            "minimum-image-ttl-duration",
        ],
        keys: &[
            "imageGCHighThresholdPercent",
            "imageGCLowThresholdPercent",
            "imageMaximumGCAge",
            "imageMinimumGCAge",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "what pods may not use is fixed",
        treatment: Treatment::Ignored,
        values: &[
            "enforce-node-allocatable",
            "kube-reserved",
            "kube-reserved-cgroup",
            "qos-reserved",
            "system-reserved",
            "system-reserved-cgroup",
        ],
        keys: &[
            "enforceNodeAllocatable",
            "kubeReserved",
            "kubeReservedCgroup",
            "qosReserved",
            "systemReserved",
            "systemReservedCgroup",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "CPUs and memory of NUMA nodes are not assigned to containers",
        treatment: Treatment::Only(&["none", "None", "container", ""]),
        values: &[
            "cpu-manager-policy",
            "cpu-manager-policy-options",
            "memory-manager-policy",
            "reserved-cpus",
            "reserved-memory",
            "topology-manager-policy",
            "topology-manager-policy-options",
            "topology-manager-scope",
        ],
        keys: &[
            "cpuManagerPolicy",
            "cpuManagerPolicyOptions",
            "memoryManagerPolicy",
            "reservedMemory",
            "reservedSystemCPUs",
            "topologyManagerPolicy",
            "topologyManagerPolicyOptions",
            "topologyManagerScope",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "the kubelet follows events; these intervals are upstream's defaults",
        treatment: Treatment::Ignored,
        values: &[
            "cpu-manager-reconcile-period",
            "file-check-frequency",
            "node-status-update-frequency",
            "sync-frequency",
            "volume-stats-agg-period",
        ],
        keys: &[
            "configMapAndSecretChangeDetectionStrategy",
            "cpuManagerReconcilePeriod",
            "fileCheckFrequency",
            "nodeLeaseDurationSeconds",
            "nodeStatusReportFrequency",
            "nodeStatusUpdateFrequency",
            "syncFrequency",
            "volumeStatsAggPeriod",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "cgroups are made directly, with QoS classes, in the version that the machine has",
        treatment: Treatment::Ignored,
        switches: &[
            "cgroups-per-qos",
            "cpu-cfs-quota",
            "fail-cgroupv1",
            "fail-swap-on",
        ],
        values: &[
            "cgroup-driver",
            "cpu-cfs-quota-period",
            "kubelet-cgroups",
            "runtime-cgroups",
            "system-cgroups",
        ],
        keys: &[
            "cgroupDriver",
            "cgroupsPerQOS",
            "cpuCFSQuota",
            "cpuCFSQuotaPeriod",
            "failCgroupV1",
            "failSwapOn",
            "kubeletCgroups",
            "memoryReservationPolicy",
            "memorySwap",
            "memoryThrottlingFactor",
            "singleProcessOOMKill",
            "systemCgroups",
        ],
    },
    Omission {
        why: "the port without authentication is not served",
        treatment: Treatment::Only(&["0"]),
        values: &["read-only-port"],
        keys: &["readOnlyPort"],
        ..Omission::NONE
    },
    Omission {
        why: "the kubelet API is always served",
        treatment: Treatment::Ignored,
        switches: &[
            "contention-profiling",
            "enable-debugging-handlers",
            "enable-server",
        ],
        values: &["streaming-connection-idle-timeout"],
        keys: &[
            "enableContentionProfiling",
            "enableDebugFlagsHandler",
            "enableDebuggingHandlers",
            "enableProfilingHandler",
            "enableServer",
            "enableSystemLogHandler",
            "enableSystemLogQuery",
            "streamingConnectionIdleTimeout",
        ],
    },
    Omission {
        why: "cipher suites and curves are those of the TLS library, all of which are considered secure",
        values: &["tls-cipher-suites"],
        keys: &["tlsCipherSuites", "tlsCurvePreferences"],
        ..Omission::NONE
    },
    Omission {
        why: "requests are JSON; all API servers accept it",
        treatment: Treatment::Ignored,
        values: &["kube-api-content-type"],
        keys: &["contentType"],
        ..Omission::NONE
    },
    Omission {
        why: "events and pulls are limited in another way",
        treatment: Treatment::Ignored,
        values: &["event-burst", "event-qps", "registry-burst", "registry-qps"],
        keys: &[
            "eventBurst",
            "eventRecordQPS",
            "registryBurst",
            "registryPullQPS",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "packets are the pod network's and the proxy's",
        treatment: Treatment::Ignored,
        switches: &["make-iptables-util-chains"],
        values: &["hairpin-mode"],
        keys: &[
            "hairpinMode",
            "iptablesDropBit",
            "iptablesMasqueradeBit",
            "makeIPTablesUtilChains",
        ],
    },
    Omission {
        why: "the range of pods is that of the Node object",
        treatment: Treatment::Ignored,
        values: &["pod-cidr"],
        keys: &["podCIDR"],
        ..Omission::NONE
    },
    Omission {
        why: "static pods come from files",
        values: &[
            "http-check-frequency",
            "manifest-url",
            "manifest-url-header",
        ],
        keys: &["staticPodURL", "staticPodURLHeader"],
        ..Omission::NONE
    },
    Omission {
        why: "static pods come from files",
        treatment: Treatment::Ignored,
        keys: &["httpCheckFrequency"],
        ..Omission::NONE
    },
    Omission {
        why: "there is no cloud provider",
        treatment: Treatment::Only(&[""]),
        values: &["cloud-provider"],
        ..Omission::NONE
    },
    Omission {
        why: "there are no credential plugins of images",
        values: &[
            "image-credential-provider-bin-dir",
            "image-credential-provider-config",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "volumes of plugins are not mounted",
        treatment: Treatment::Ignored,
        switches: &[
            "enable-controller-attach-detach",
            "local-storage-capacity-isolation",
        ],
        values: &["experimental-mounter-path", "volume-plugin-dir"],
        keys: &[
            "enableControllerAttachDetach",
            "localStorageCapacityIsolation",
            "volumePluginDir",
        ],
    },
    Omission {
        why: "the default of containers is unconfined",
        treatment: Treatment::Only(&["false"]),
        switches: &["seccomp-default"],
        keys: &["seccompDefault"],
        ..Omission::NONE
    },
    Omission {
        why: "the kubelet runs until it is stopped",
        treatment: Treatment::Only(&["false"]),
        switches: &["exit-on-lock-contention", "runonce"],
        keys: &["runOnce"],
        ..Omission::NONE
    },
    Omission {
        why: "the kubelet takes no lock",
        values: &["lock-file"],
        ..Omission::NONE
    },
    Omission {
        why: "pods are not ended when the machine shuts down",
        treatment: Treatment::Ignored,
        keys: &[
            "shutdownGracePeriod",
            "shutdownGracePeriodByPodPriority",
            "shutdownGracePeriodCriticalPods",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "limits and OOM score of the process are those it is started with",
        treatment: Treatment::Ignored,
        switches: &["protect-kernel-defaults"],
        values: &["max-open-files", "oom-score-adj"],
        keys: &["maxOpenFiles", "oomScoreAdj", "protectKernelDefaults"],
    },
    Omission {
        why: "it is not implemented",
        treatment: Treatment::Ignored,
        switches: &["experimental-allocatable-ignore-eviction"],
        values: &[
            "node-status-max-images",
            "pods-per-core",
            "runtime-request-timeout",
        ],
        keys: &[
            "containerLogMaxWorkers",
            "crashLoopBackOff",
            "nodeStatusMaxImages",
            "podLogsDir",
            "podsPerCore",
            "runtimeRequestTimeout",
            "showHiddenMetricsForVersion",
            "tracing",
            "userNamespaces",
        ],
    },
];

/// Flags of the library with which upstream watches containers.
pub(super) const CADVISOR: &[Omission] = &[Omission {
    why: "usage is read from cgroups, without a daemon",
    treatment: Treatment::Ignored,
    switches: &[
        "enable-load-reader",
        "log-cadvisor-usage",
        "storage-driver-secure",
    ],
    values: &[
        "application-metrics-count-limit",
        "boot-id-file",
        "container-hints",
        "containerd",
        "containerd-namespace",
        "event-storage-age-limit",
        "event-storage-event-limit",
        "global-housekeeping-interval",
        "housekeeping-interval",
        "machine-id-file",
        "storage-driver-buffer-duration",
        "storage-driver-db",
        "storage-driver-host",
        "storage-driver-password",
        "storage-driver-table",
        "storage-driver-user",
    ],
    ..Omission::NONE
}];
