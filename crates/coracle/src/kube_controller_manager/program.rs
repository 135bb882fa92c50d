//! The settings of the controller manager, with upstream's names, sections and defaults.

use coracle_settings::{Format, Program, Section, Setting};

use super::omissions::OMISSIONS;
use super::options::Options;
use crate::settings::{
    HIDDEN_METRICS, LOGGING, METRICS, PROFILING, SERVING, VERSIONS, authentication, authorization,
    burst, election, feature_gates, kubeconfig, logs, master, qps, serving,
};

pub(super) const PROGRAM: Program<Options> = Program {
    name: "kube-controller-manager",
    about: "Runs the Kubernetes controllers, which reconcile the cluster's objects with their desired state.",
    sections: &[
        section("generic", &[qps("20"), burst("30")]),
        section("generic", &election("kube-controller-manager")),
        section("generic", GENERIC),
        section("generic", &feature_gates()),
        section("secure serving", &serving("10257", PORT, "")),
        section("authentication", &authentication("false")),
        section("authorization", &authorization()),
        section(
            "certificatesigningrequest-signing-controller",
            CERTIFICATESIGNINGREQUEST_SIGNING,
        ),
        section("deployment-controller", DEPLOYMENT),
        section("statefulset-controller", STATEFULSET),
        section("daemonset-controller", DAEMONSET),
        section("endpoints-controller", ENDPOINTS),
        section("endpointslice-controller", ENDPOINTSLICE),
        section(
            "endpointslice-mirroring-controller",
            ENDPOINTSLICE_MIRRORING,
        ),
        section("garbage-collector-controller", GARBAGE_COLLECTOR),
        section("job-controller", JOB),
        section("cronjob-controller", CRONJOB),
        section("namespace-controller", NAMESPACE),
        section("node-ipam-controller", NODE_IPAM),
        section("node-lifecycle-controller", NODE_LIFECYCLE),
        section("pod-garbage-collector-controller", POD_GARBAGE_COLLECTOR),
        section("replicaset-controller", REPLICASET),
        section("replicationcontroller-controller", REPLICATIONCONTROLLER),
        section("resourcequota-controller", RESOURCEQUOTA),
        section("serviceaccount-controller", SERVICEACCOUNT),
        section("ttl-after-finished-controller", TTL_AFTER_FINISHED),
        section(
            "validatingadmissionpolicy-status-controller",
            VALIDATING_ADMISSION_POLICY_STATUS,
        ),
        section("logs", &logs()),
        section("misc", &[kubeconfig(), master()]),
    ],
    omissions: &[
        OMISSIONS,
        HIDDEN_METRICS,
        LOGGING,
        METRICS,
        PROFILING,
        SERVING,
        VERSIONS,
    ],
    format: Format::None,
};

const PORT: &str = "Port to listen on, with TLS; 0: none";

type S = Setting<Options>;

const fn section(name: &'static str, settings: &'static [S]) -> Section<Options> {
    Section { name, settings }
}

const GENERIC: &[S] = &[
    S::new(
        "allocate-node-cidrs",
        "false",
        "Allocate a pod CIDR of --cluster-cidr to every node",
        |options| &mut options.manager.node_ipam.allocate,
    )
    .key("KubeCloudShared.AllocateNodeCIDRs"),
    S::new(
        "cluster-cidr",
        "",
        "Address ranges of pods: one, or one of each IP family",
        |options| &mut options.manager.node_ipam.cluster_cidrs,
    )
    .key("KubeCloudShared.ClusterCIDR"),
    S::new(
        "controllers",
        "*",
        "Controllers to run: '*' enables the default set, 'name' enables one, '-name' disables one",
        |options| &mut options.controllers,
    )
    .key("Generic.Controllers"),
    S::new(
        "node-monitor-period",
        "5s",
        "Interval of node health checks",
        |options| &mut options.monitor_period,
    )
    .key("KubeCloudShared.NodeMonitorPeriod"),
    S::new(
        "use-service-account-credentials",
        "false",
        "Run each controller with its own service account credentials",
        |options| &mut options.own_accounts,
    )
    .key("KubeCloudShared.UseServiceAccountCredentials"),
];

const CERTIFICATESIGNINGREQUEST_SIGNING: &[S] = &[
    S::new(
        "cluster-signing-cert-file",
        "",
        "CA certificate of all signers",
        |options| &mut options.signing.all.certificate,
    )
    .key("CSRSigningController.ClusterSigningCertFile"),
    S::new(
        "cluster-signing-duration",
        "8760h0m0s",
        "Maximum validity of issued certificates",
        |options| &mut options.manager.signing.duration,
    )
    .key("CSRSigningController.ClusterSigningDuration"),
    S::new(
        "cluster-signing-key-file",
        "",
        "Key of --cluster-signing-cert-file",
        |options| &mut options.signing.all.key,
    )
    .key("CSRSigningController.ClusterSigningKeyFile"),
    S::new(
        "cluster-signing-kube-apiserver-client-cert-file",
        "",
        "CA certificate of kubernetes.io/kube-apiserver-client",
        |options| &mut options.signing.apiserver_client.certificate,
    )
    .key("CSRSigningController.KubeAPIServerClientSignerConfiguration.CertFile"),
    S::new(
        "cluster-signing-kube-apiserver-client-key-file",
        "",
        "Key of --cluster-signing-kube-apiserver-client-cert-file",
        |options| &mut options.signing.apiserver_client.key,
    )
    .key("CSRSigningController.KubeAPIServerClientSignerConfiguration.KeyFile"),
    S::new(
        "cluster-signing-kubelet-client-cert-file",
        "",
        "CA certificate of kubernetes.io/kube-apiserver-client-kubelet",
        |options| &mut options.signing.kubelet_client.certificate,
    )
    .key("CSRSigningController.KubeletClientSignerConfiguration.CertFile"),
    S::new(
        "cluster-signing-kubelet-client-key-file",
        "",
        "Key of --cluster-signing-kubelet-client-cert-file",
        |options| &mut options.signing.kubelet_client.key,
    )
    .key("CSRSigningController.KubeletClientSignerConfiguration.KeyFile"),
    S::new(
        "cluster-signing-kubelet-serving-cert-file",
        "",
        "CA certificate of kubernetes.io/kubelet-serving",
        |options| &mut options.signing.kubelet_serving.certificate,
    )
    .key("CSRSigningController.KubeletServingSignerConfiguration.CertFile"),
    S::new(
        "cluster-signing-kubelet-serving-key-file",
        "",
        "Key of --cluster-signing-kubelet-serving-cert-file",
        |options| &mut options.signing.kubelet_serving.key,
    )
    .key("CSRSigningController.KubeletServingSignerConfiguration.KeyFile"),
    S::new(
        "cluster-signing-legacy-unknown-cert-file",
        "",
        "CA certificate of kubernetes.io/legacy-unknown",
        |options| &mut options.signing.legacy_unknown.certificate,
    )
    .key("CSRSigningController.LegacyUnknownSignerConfiguration.CertFile"),
    S::new(
        "cluster-signing-legacy-unknown-key-file",
        "",
        "Key of --cluster-signing-legacy-unknown-cert-file",
        |options| &mut options.signing.legacy_unknown.key,
    )
    .key("CSRSigningController.LegacyUnknownSignerConfiguration.KeyFile"),
];

const DEPLOYMENT: &[S] = &[S::new(
    "concurrent-deployment-syncs",
    "5",
    "Number of Deployments synced in parallel",
    |options| &mut options.manager.concurrent_deployment_syncs,
)
.key("DeploymentController.ConcurrentDeploymentSyncs")];

const STATEFULSET: &[S] = &[S::new(
    "concurrent-statefulset-syncs",
    "5",
    "Number of StatefulSets synced in parallel",
    |options| &mut options.manager.concurrent_statefulset_syncs,
)
.key("StatefulSetController.ConcurrentStatefulSetSyncs")];

const DAEMONSET: &[S] = &[S::new(
    "concurrent-daemonset-syncs",
    "2",
    "Number of DaemonSets synced in parallel",
    |options| &mut options.manager.concurrent_daemonset_syncs,
)
.key("DaemonSetController.ConcurrentDaemonSetSyncs")];

const ENDPOINTS: &[S] = &[
    S::new(
        "concurrent-endpoint-syncs",
        "5",
        "Number of Endpoints synced in parallel",
        |options| &mut options.manager.concurrent_endpoint_syncs,
    )
    .key("EndpointController.ConcurrentEndpointSyncs"),
    S::new(
        "endpoint-updates-batch-period",
        "0s",
        "Time for which pod changes are batched",
        |options| &mut options.manager.endpoint_updates_batch,
    )
    .key("EndpointController.EndpointUpdatesBatchPeriod"),
];

const ENDPOINTSLICE: &[S] = &[
    S::new(
        "concurrent-service-endpoint-syncs",
        "5",
        "Number of Services synced in parallel",
        |options| &mut options.manager.endpointslice.workers,
    )
    .key("EndpointSliceController.ConcurrentServiceEndpointSyncs"),
    S::new(
        "endpointslice-updates-batch-period",
        "0s",
        "Time for which pod changes are batched",
        |options| &mut options.manager.endpointslice.batch,
    )
    .key("EndpointSliceController.EndpointUpdatesBatchPeriod"),
    S::new(
        "max-endpoints-per-slice",
        "100",
        "Maximum number of endpoints of an EndpointSlice",
        |options| &mut options.manager.endpointslice.max_endpoints_per_slice,
    )
    .key("EndpointSliceController.MaxEndpointsPerSlice"),
];

const ENDPOINTSLICE_MIRRORING: &[S] = &[
    S::new(
        "mirroring-concurrent-service-endpoint-syncs",
        "5",
        "Number of Endpoints mirrored in parallel",
        |options| &mut options.manager.mirroring.workers,
    )
    .key("EndpointSliceMirroringController.MirroringConcurrentServiceEndpointSyncs"),
    S::new(
        "mirroring-endpointslice-updates-batch-period",
        "0s",
        "Time for which changes are batched",
        |options| &mut options.manager.mirroring.batch,
    )
    .key("EndpointSliceMirroringController.MirroringEndpointUpdatesBatchPeriod"),
    S::new(
        "mirroring-max-endpoints-per-subset",
        "1000",
        "Maximum number of mirrored addresses of a subset",
        |options| &mut options.manager.mirroring.max_endpoints_per_subset,
    )
    .key("EndpointSliceMirroringController.MirroringMaxEndpointsPerSubset"),
];

const GARBAGE_COLLECTOR: &[S] = &[
    S::new(
        "concurrent-gc-syncs",
        "20",
        "Number of garbage collector workers",
        |options| &mut options.manager.concurrent_gc_syncs,
    )
    .key("GarbageCollectorController.ConcurrentGCSyncs"),
    S::new(
        "enable-garbage-collector",
        "true",
        "Run the garbage collector. Must be as --enable-garbage-collector of the API server",
        |options| &mut options.garbage_collector,
    )
    .key("GarbageCollectorController.EnableGarbageCollector"),
];

const JOB: &[S] = &[S::new(
    "concurrent-job-syncs",
    "5",
    "Number of Jobs synced in parallel",
    |options| &mut options.manager.concurrent_job_syncs,
)
.key("JobController.ConcurrentJobSyncs")];

const CRONJOB: &[S] = &[S::new(
    "concurrent-cron-job-syncs",
    "5",
    "Number of CronJobs synced in parallel",
    |options| &mut options.manager.concurrent_cron_job_syncs,
)
.key("CronJobController.ConcurrentCronJobSyncs")];

const NAMESPACE: &[S] = &[S::new(
    "concurrent-namespace-syncs",
    "10",
    "Number of namespaces synced in parallel",
    |options| &mut options.manager.concurrent_namespace_syncs,
)
.key("NamespaceController.ConcurrentNamespaceSyncs")];

const NODE_IPAM: &[S] = &[
    S::new(
        "node-cidr-mask-size",
        "0",
        "Mask size of a node's pod CIDR in a single-stack cluster; 0: 24, of IPv6 64",
        |options| &mut options.node_mask,
    )
    .key("NodeIPAMController.NodeCIDRMaskSize"),
    S::new(
        "node-cidr-mask-size-ipv4",
        "0",
        "Mask size of a node's IPv4 pod CIDR; 0: 24",
        |options| &mut options.node_mask_v4,
    ),
    S::new(
        "node-cidr-mask-size-ipv6",
        "0",
        "Mask size of a node's IPv6 pod CIDR; 0: 64",
        |options| &mut options.node_mask_v6,
    ),
    S::new(
        "service-cluster-ip-range",
        "",
        "Address ranges of Services, excluded from pod CIDRs",
        |options| &mut options.manager.node_ipam.service_cidrs,
    )
    .key("NodeIPAMController.ServiceCIDR"),
];

const NODE_LIFECYCLE: &[S] = &[
    S::new(
        "large-cluster-size-threshold",
        "50",
        "Size of a zone up to which no pods are evicted while it is unhealthy",
        |options| &mut options.manager.node_lifecycle.large_cluster_size,
    )
    .key("NodeLifecycleController.LargeClusterSizeThreshold"),
    S::new(
        "node-eviction-rate",
        "0.1",
        "Nodes per second whose pods are evicted in a healthy zone",
        |options| &mut options.manager.node_lifecycle.eviction_rate,
    )
    .key("NodeLifecycleController.NodeEvictionRate"),
    S::new(
        "node-monitor-grace-period",
        "50s",
        "Time without a heartbeat after which a node is marked unhealthy",
        |options| &mut options.manager.node_lifecycle.monitor_grace,
    )
    .key("NodeLifecycleController.NodeMonitorGracePeriod"),
    S::new(
        "node-startup-grace-period",
        "1m0s",
        "Time without a heartbeat after which a starting node is marked unhealthy",
        |options| &mut options.manager.node_lifecycle.startup_grace,
    )
    .key("NodeLifecycleController.NodeStartupGracePeriod"),
    S::new(
        "secondary-node-eviction-rate",
        "0.01",
        "Nodes per second whose pods are evicted in an unhealthy zone",
        |options| &mut options.manager.node_lifecycle.secondary_eviction_rate,
    )
    .key("NodeLifecycleController.SecondaryNodeEvictionRate"),
    S::new(
        "unhealthy-zone-threshold",
        "0.55",
        "Fraction of NotReady nodes from which on a zone is unhealthy",
        |options| &mut options.manager.node_lifecycle.unhealthy_zone_threshold,
    )
    .key("NodeLifecycleController.UnhealthyZoneThreshold"),
];

const POD_GARBAGE_COLLECTOR: &[S] = &[S::new(
    "terminated-pod-gc-threshold",
    "12500",
    "Number of terminated pods that may exist before the oldest are deleted; 0: no limit",
    |options| &mut options.ended_pods,
)
.key("PodGCController.TerminatedPodGCThreshold")];

const REPLICASET: &[S] = &[S::new(
    "concurrent-replicaset-syncs",
    "5",
    "Number of ReplicaSets synced in parallel",
    |options| &mut options.manager.concurrent_replicaset_syncs,
)
.key("ReplicaSetController.ConcurrentRSSyncs")];

const REPLICATIONCONTROLLER: &[S] = &[S::new(
    "concurrent-rc-syncs",
    "5",
    "Number of ReplicationControllers synced in parallel",
    |options| &mut options.manager.concurrent_rc_syncs,
)
.key("ReplicationController.ConcurrentRCSyncs")];

const RESOURCEQUOTA: &[S] = &[S::new(
    "concurrent-resource-quota-syncs",
    "5",
    "Number of ResourceQuotas synced in parallel",
    |options| &mut options.manager.concurrent_resource_quota_syncs,
)
.key("ResourceQuotaController.ConcurrentResourceQuotaSyncs")];

const SERVICEACCOUNT: &[S] = &[
    S::new(
        "concurrent-serviceaccount-token-syncs",
        "5",
        "Number of token Secrets synced in parallel",
        |options| &mut options.manager.concurrent_serviceaccount_token_syncs,
    )
.key("SAController.ConcurrentSATokenSyncs"),
    S::new(
        "root-ca-file",
        "",
        "CA certificate of the API server, published to pods in kube-root-ca.crt. Default: that of the kubeconfig",
        |options| &mut options.root_ca_file,
    )
.key("SAController.RootCAFile"),
    S::new(
        "service-account-private-key-file",
        "",
        "Private key that signs service account tokens in Secrets. Without it none are created",
        |options| &mut options.service_account_private_key_file,
    )
.key("SAController.ServiceAccountKeyFile"),
];

const VALIDATING_ADMISSION_POLICY_STATUS: &[S] = &[S::new(
    "concurrent-validating-admission-policy-status-syncs",
    "5",
    "Number of ValidatingAdmissionPolicies type-checked in parallel",
    |options| {
        &mut options
            .manager
            .concurrent_validating_admission_policy_status_syncs
    },
)
.key("ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs")];

const TTL_AFTER_FINISHED: &[S] = &[S::new(
    "concurrent-ttl-after-finished-syncs",
    "5",
    "Number of finished Jobs synced in parallel",
    |options| &mut options.manager.concurrent_ttl_after_finished_syncs,
)
.key("TTLAfterFinishedController.ConcurrentTTLSyncs")];
