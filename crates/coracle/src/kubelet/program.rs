//! The settings of the kubelet, with upstream's names, sections, keys and defaults.

use coracle_settings::{Format, Program, Section, Setting, Unknown};

use super::omissions::{CADVISOR, OMISSIONS};
use super::options::Options;
use crate::settings::{LOGGING, feature_gates, logs};

pub(super) const PROGRAM: Program<Options> = Program {
    name: "kubelet",
    about: "Runs the pods of this machine for the API server of --kubeconfig, with the built-in container runtime or that of \
            --container-runtime-endpoint. Pods keep running when it stops.",
    sections: &[
        section("kubelet", KUBELET),
        section("kubelet", NETWORK),
        section("config", API),
        section("config", ACCESS),
        section("config", PODS),
        section("config", IMAGES),
        section("config", NODE),
        section("config", GATES),
        section("config", &logs()),
        section("", FILE),
    ],
    omissions: &[OMISSIONS, CADVISOR, LOGGING],
    format: Format::Kind {
        api_version: "kubelet.config.k8s.io/v1beta1",
        kind: "KubeletConfiguration",
        unknown: Unknown::Warning,
    },
};

type S = Setting<Options>;

const fn section(name: &'static str, settings: &'static [S]) -> Section<Options> {
    Section { name, settings }
}

const GATES: &[S] = &{
    let [gates] = feature_gates();
    [gates.key("featureGates")]
};

/// What only flags set.
const KUBELET: &[S] = &[
    S::new(
        "bootstrap-kubeconfig",
        "",
        "Kubeconfig with credentials that may request the client certificate of the node, if --kubeconfig has none that is \
         valid. The certificate is kept in --cert-dir, and --kubeconfig is written",
        |options| &mut options.bootstrap_kubeconfig,
    ),
    S::new(
        "cert-dir",
        "/var/lib/kubelet/pki",
        "Directory of the certificates that the kubelet requests or makes",
        |options| &mut options.cert_dir,
    ),
    S::new(
        "config",
        "",
        "File with a KubeletConfiguration. Flags override it",
        |options| &mut options.config,
    ),
    S::new(
        "config-dir",
        "",
        "Directory of further configurations (*.conf), each merged into those before it in the order of their names",
        |options| &mut options.config_dir,
    ),
    S::new(
        "hostname-override",
        "",
        "Name of the node. Default: the hostname",
        |options| &mut options.hostname_override,
    ),
    S::new(
        "kubeconfig",
        "",
        "Kubeconfig with the API server and the credentials of the node",
        |options| &mut options.kubeconfig,
    ),
    S::new(
        "node-ip",
        "",
        "Addresses of the node, at most one of each family, separated by commas. Default: the address of the interface with \
         the default route",
        |options| &mut options.node_ip,
    ),
    S::new(
        "node-labels",
        "",
        "Labels with which the node is registered: name=value, separated by commas",
        |options| &mut options.labels,
    ),
    S::new(
        "root-dir",
        "/var/lib/kubelet",
        "Directory of the kubelet's files, and of the built-in runtime with its images",
        |options| &mut options.root_dir,
    ),
];

/// The network of the built-in runtime; these flags are not upstream's.
const NETWORK: &[S] = &[
    S::new(
        "cluster-cidr",
        "",
        "Address ranges of pods: traffic of pods to other addresses gets the node's address. With the built-in bridge only",
        |options| &mut options.cluster_cidrs,
    ),
    S::new(
        "cni-bin-dir",
        "/opt/cni/bin",
        "Directories of CNI plugin binaries, separated by commas",
        |options| &mut options.cni.bin_dirs,
    ),
    S::new(
        "cni-conf-dir",
        "",
        "Use CNI plugins for the pod network, with the first configuration in this directory, instead of the built-in \
         bridge",
        |options| &mut options.cni.conf_dir,
    ),
];

/// The API server and the kubelet's own ports.
const API: &[S] = &[
    S::new(
        "address",
        "0.0.0.0",
        "Address on which the kubelet API listens",
        |options| &mut options.address,
    )
    .key("address"),
    S::new(
        "healthz-bind-address",
        "127.0.0.1",
        "Address of /healthz, without TLS",
        |options| &mut options.healthz_address,
    )
    .key("healthzBindAddress"),
    S::new(
        "healthz-port",
        "10248",
        "Port of /healthz; 0: none",
        |options| &mut options.healthz_port,
    )
    .key("healthzPort"),
    S::new(
        "kube-api-burst",
        "100",
        "Burst of API requests above --kube-api-qps",
        |options| &mut options.burst,
    )
    .key("kubeAPIBurst")
    .zero_is_default(),
    S::new(
        "kube-api-qps",
        "50",
        "Maximum rate of API requests per second; less than 0: no limit",
        |options| &mut options.qps,
    )
    .key("kubeAPIQPS"),
    S::new("port", "10250", "Port of the kubelet API", |options| {
        &mut options.port
    })
    .key("port")
    .zero_is_default(),
    S::new(
        "rotate-certificates",
        "false",
        "Replace the client certificate before it expires, by requests to the API server",
        |options| &mut options.rotate_certificates,
    )
    .key("rotateCertificates"),
    S::new(
        "rotate-server-certificates",
        "false",
        "Request the serving certificate from the API server, and replace it before it expires. Somebody must approve the \
         requests",
        |options| &mut options.server_tls_bootstrap,
    )
    .key("serverTLSBootstrap"),
    S::new(
        "tls-cert-file",
        "",
        "Serving certificate, followed by intermediate certificates. Default: a self-signed one in --cert-dir",
        |options| &mut options.tls_cert_file,
    )
    .key("tlsCertFile"),
    S::new(
        "tls-min-version",
        "",
        "Minimum TLS version: VersionTLS12 or VersionTLS13",
        |options| &mut options.tls_min_version,
    )
    .key("tlsMinVersion"),
    S::new(
        "tls-private-key-file",
        "",
        "Key of --tls-cert-file",
        |options| &mut options.tls_private_key_file,
    )
    .key("tlsPrivateKeyFile"),
];

/// Who may use the kubelet API. As upstream, the defaults without a configuration file are wider.
const ACCESS: &[S] = &[
    S::new(
        "anonymous-auth",
        "true",
        "Allow requests without credentials. Default with a configuration file: false",
        |options| &mut options.anonymous,
    )
    .key("authentication.anonymous.enabled")
    .default_in_file("false"),
    S::new(
        "authentication-token-webhook",
        "false",
        "Ask the API server about tokens of clients. Default with a configuration file: true",
        |options| &mut options.token_webhook,
    )
    .key("authentication.webhook.enabled")
    .default_in_file("true"),
    S::new(
        "authentication-token-webhook-cache-ttl",
        "2m0s",
        "How long answers about tokens are cached",
        |options| &mut options.token_ttl,
    )
    .key("authentication.webhook.cacheTTL"),
    S::new(
        "authorization-mode",
        "AlwaysAllow",
        "AlwaysAllow, or Webhook: ask the API server about permissions. Default with a configuration file: Webhook",
        |options| &mut options.authorization_mode,
    )
    .key("authorization.mode")
    .default_in_file("Webhook"),
    S::new(
        "authorization-webhook-cache-authorized-ttl",
        "5m0s",
        "How long allowing answers are cached",
        |options| &mut options.allowed_ttl,
    )
    .key("authorization.webhook.cacheAuthorizedTTL"),
    S::new(
        "authorization-webhook-cache-unauthorized-ttl",
        "30s",
        "How long denying answers are cached",
        |options| &mut options.denied_ttl,
    )
    .key("authorization.webhook.cacheUnauthorizedTTL"),
    S::new(
        "client-ca-file",
        "",
        "CA of client certificates: the common name is the user, the organizations are the groups",
        |options| &mut options.client_ca_file,
    )
    .key("authentication.x509.clientCAFile"),
];

const PODS: &[S] = &[
    S::new(
        "allowed-unsafe-sysctls",
        "",
        "Unsafe sysctls that pods may set, separated by commas: names, or prefixes followed by `*`",
        |options| &mut options.allowed_unsafe_sysctls,
    )
    .key("allowedUnsafeSysctls"),
    S::new(
        "cgroup-root",
        "",
        "cgroup below which pods run. Default: one of the kubelet's own, or the root with --container-runtime-endpoint",
        |options| &mut options.cgroup_root,
    )
    .key("cgroupRoot"),
    S::new(
        "cluster-dns",
        "",
        "DNS servers of pods, separated by commas. Default: those of the host",
        |options| &mut options.cluster_dns,
    )
    .key("clusterDNS"),
    S::new(
        "cluster-domain",
        "",
        "DNS domain of the cluster",
        |options| &mut options.cluster_domain,
    )
    .key("clusterDomain"),
    S::new(
        "container-log-max-files",
        "5",
        "Maximum number of log files of a container, at least 2",
        |options| &mut options.log_files,
    )
    .key("containerLogMaxFiles"),
    S::new(
        "container-log-max-size",
        "10Mi",
        "Size at which the log of a container is rotated",
        |options| &mut options.log_size,
    )
    .key("containerLogMaxSize"),
    S::new("max-pods", "110", "Maximum number of pods", |options| {
        &mut options.max_pods
    })
    .key("maxPods")
    .zero_is_default(),
    S::new(
        "pod-manifest-path",
        "",
        "Directory of static pods, or a file with one",
        |options| &mut options.static_pods,
    )
    .key("staticPodPath"),
    S::new(
        "pod-max-pids",
        "-1",
        "Maximum number of processes and threads of one pod; -1: a quarter of the limit of all pods together",
        |options| &mut options.pod_pids,
    )
    .key("podPidsLimit"),
    S::new(
        "resolv-conf",
        "/etc/resolv.conf",
        "Resolver configuration of the host, which pods with the DNS policy Default get",
        |options| &mut options.resolv_conf,
    )
    .key("resolvConf"),
];

const IMAGES: &[S] = &[
    S::new(
        "container-runtime-endpoint",
        "",
        "Socket of another container runtime (CRI), such as unix:///run/containerd/containerd.sock. Default: the built-in \
         runtime",
        |options| &mut options.runtime_endpoint,
    )
    .key("containerRuntimeEndpoint"),
    S::new(
        "image-service-endpoint",
        "",
        "Socket of its image service. Default: --container-runtime-endpoint",
        |options| &mut options.image_endpoint,
    )
    .key("imageServiceEndpoint"),
    S::new(
        "serialize-image-pulls",
        "true",
        "Pull one image at a time from each registry",
        |options| &mut options.images.serialize_pulls,
    )
    .key("serializeImagePulls"),
];

const NODE: &[S] = &[
    S::new(
        "provider-id",
        "",
        "ID of the machine at its provider",
        |options| &mut options.provider_id,
    )
    .key("providerID"),
    S::new(
        "register-node",
        "true",
        "Create the Node object",
        |options| &mut options.register_node,
    )
    .key("registerNode"),
    S::new(
        "register-with-taints",
        "",
        "Taints with which the node is registered: key=value:effect, separated by commas",
        |options| &mut options.taints,
    )
    .key("registerWithTaints"),
];

/// Settings without a flag.
const FILE: &[S] = &[
    S::new(
        "",
        "10s",
        "Interval at which sizes of logs are checked",
        |options| &mut options.log_interval,
    )
    .key("containerLogMonitorInterval"),
    S::new(
        "",
        "NeverVerifyPreloadedImages",
        "When a pod needs credentials for an image that is present",
        |options| &mut options.images.verification,
    )
    .key("imagePullCredentialsVerificationPolicy"),
    S::new(
        "",
        "",
        "Maximum number of images pulled at the same time, if serializeImagePulls is false",
        |options| &mut options.images.max_parallel_pulls,
    )
    .key("maxParallelImagePulls"),
    S::new(
        "",
        "",
        "Images that need no credentials with the policy NeverVerifyAllowlistedImages",
        |options| &mut options.images.allowlist,
    )
    .key("preloadedImagesVerificationAllowlist"),
];
