//! The settings of the API server, with upstream's names, sections and defaults.

use coracle_settings::{Format, Program, Section, Setting};

use super::omissions::OMISSIONS;
use super::options::Options;
use crate::settings::{
    HIDDEN_METRICS, LOGGING, METRICS, PROFILING, SERVING, VERSIONS, feature_gates, logs,
    runtime_config, serving,
};

pub(super) const PROGRAM: Program<Options> = Program {
    name: "kube-apiserver",
    about: "Runs the Kubernetes API server, which stores and validates the objects of a cluster and serves the Kubernetes API.",
    sections: &[
        section("generic", GENERIC),
        section("generic", &feature_gates()),
        section("etcd", ETCD),
        section(
            "secure serving",
            &serving("6443", PORT, "/var/run/kubernetes"),
        ),
        section("authentication", AUTHENTICATION),
        section("authorization", AUTHORIZATION),
        section("API enablement", &runtime_config()),
        section("admission", ADMISSION),
        section("logs", &logs()),
        section("misc", MISC),
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

const PORT: &str = "Port to listen on, with TLS. It cannot be turned off with 0";

type S = Setting<Options>;

const fn section(name: &'static str, settings: &'static [S]) -> Section<Options> {
    Section { name, settings }
}

const GENERIC: &[S] = &[
    S::new(
        "advertise-address",
        "",
        "Address at which the cluster reaches this server. Default: --bind-address, or, if that is unspecified, the address of the interface with the default route",
        |options| &mut options.advertise_address,
    ),
    S::new(
        "cors-allowed-origins",
        "",
        "Regular expressions of the origins whose pages may read answers in a browser. Each must have ^ or // for the start \
         of the host, and $ or : for its end",
        |options| &mut options.cors_allowed_origins,
    ),
    S::new(
        "goaway-chance",
        "0",
        "Share of HTTP/2 requests, at most 0.02, after which the client connects anew, so that connections spread over \
         several servers",
        |options| &mut options.goaway_chance,
    ),
    S::new(
        "strict-transport-security-directives",
        "",
        "Directives of the header Strict-Transport-Security: max-age=SECONDS, includeSubDomains, preload. Default: no header",
        |options| &mut options.transport_directives,
    ),
    S::new(
        "min-request-timeout",
        "1800",
        "Minimum timeout of watches without one of their own; the actual timeout is random, up to twice this",
        |options| &mut options.min_request_timeout,
    ),
    S::new(
        "request-timeout",
        "1m0s",
        "Timeout of requests, except long-running ones such as watches",
        |options| &mut options.request_timeout,
    ),
    S::new(
        "shutdown-delay-duration",
        "0s",
        "Time after SIGTERM in which requests are still served, while /readyz fails",
        |options| &mut options.shutdown_delay,
    ),
];

const ETCD: &[S] = &[
    S::new(
        "data-dir",
        "",
        "Store objects in the embedded store in this directory (Coracle only)",
        |options| &mut options.data_dir,
    ),
    S::new(
        "etcd-cafile",
        "",
        "CA certificate of the etcd servers. Required for https URLs",
        |options| &mut options.etcd_cafile,
    ),
    S::new(
        "etcd-certfile",
        "",
        "Client certificate for the etcd servers",
        |options| &mut options.etcd_certfile,
    ),
    S::new(
        "etcd-compaction-interval",
        "5m0s",
        "Interval of etcd compaction, shared with other API servers. 0: this server does not compact",
        |options| &mut options.etcd_compaction_interval,
    ),
    S::new("etcd-keyfile", "", "Key of --etcd-certfile", |options| {
        &mut options.etcd_keyfile
    }),
    S::new(
        "etcd-prefix",
        "/registry",
        "Prefix of all keys in etcd",
        |options| &mut options.etcd_prefix,
    ),
    S::new(
        "etcd-servers",
        "",
        "Store objects in this etcd: client URLs of its members, separated by commas",
        |options| &mut options.etcd_servers,
    ),
    S::new(
        "node-lease-write-delay",
        "0s",
        "Delay renewals of node leases up to this long, at most 5s, so that many of them share one disk flush. A renewal is still acknowledged only when it is durable. 0s: off (Coracle only; requires --data-dir)",
        |options| &mut options.node_lease_write_delay,
    ),
    S::new(
        "storage-backend",
        "",
        "Storage backend: etcd3 or empty, which is the same",
        |options| &mut options.storage_backend,
    ),
    S::new(
        "storage-media-type",
        "application/vnd.kubernetes.protobuf",
        "Encoding of objects written to etcd; both encodings are read. Some kinds are always written as JSON",
        |options| &mut options.storage_media_type,
    ),
];

const AUTHENTICATION: &[S] = &[
    S::new(
        "anonymous-auth",
        "true",
        "Accept requests without credentials, as system:anonymous in the group system:unauthenticated. Off with --authorization-mode=AlwaysAllow",
        |options| &mut options.access.anonymous_auth,
    ),
    S::new(
        "api-audiences",
        "",
        "Audiences of this API in tokens. Default: --service-account-issuer",
        |options| &mut options.access.api_audiences,
    ),
    S::new(
        "client-ca-file",
        "",
        "CA of client certificates: the common name is the user, the organizations are the groups. Reloaded when it changes",
        |options| &mut options.access.client_ca_file,
    ),
    S::new(
        "enable-bootstrap-token-auth",
        "false",
        "Accept bootstrap tokens (Secrets of type bootstrap.kubernetes.io/token in kube-system)",
        |options| &mut options.access.enable_bootstrap_token_auth,
    ),
    S::new(
        "requestheader-allowed-names",
        "",
        "Accepted common names of authenticating proxies; empty: any signed by --requestheader-client-ca-file",
        |options| &mut options.access.requestheader.names,
    ),
    S::new(
        "requestheader-client-ca-file",
        "",
        "CA of client certificates of authenticating proxies, which name the user in headers. Reloaded when it changes",
        |options| &mut options.access.requestheader_client_ca_file,
    ),
    S::new(
        "requestheader-extra-headers-prefix",
        "",
        "Prefixes of headers with extra attributes of the user. Usually X-Remote-Extra-",
        |options| &mut options.access.requestheader.extra_prefixes,
    ),
    S::new(
        "requestheader-group-headers",
        "",
        "Headers with the groups of the user. Usually X-Remote-Group",
        |options| &mut options.access.requestheader.group_headers,
    ),
    S::new(
        "requestheader-uid-headers",
        "",
        "Headers with the UID of the user. Usually X-Remote-Uid",
        |options| &mut options.access.requestheader.uid_headers,
    ),
    S::new(
        "requestheader-username-headers",
        "",
        "Headers with the user name; the first non-empty one is used. Usually X-Remote-User",
        |options| &mut options.access.requestheader.user_headers,
    ),
    S::new(
        "service-account-extend-token-expiration",
        "true",
        "Extend the validity of pod tokens to one year, for programs that do not reload them",
        |options| &mut options.access.service_account_extend_token_expiration,
    ),
    S::new(
        "service-account-issuer",
        "",
        "Accepted issuers of service account tokens; the first one issues new tokens. An https URL serves the OpenID discovery document",
        |options| &mut options.access.service_account_issuer,
    ),
    S::new(
        "service-account-jwks-uri",
        "",
        "URL of the JSON Web Key Set in the discovery document. Default: this server's address",
        |options| &mut options.access.service_account_jwks_uri,
    ),
    S::new(
        "service-account-key-file",
        "",
        "Private or public keys that verify service account tokens, besides --service-account-signing-key-file",
        |options| &mut options.access.service_account_key_file,
    ),
    S::new(
        "service-account-max-token-expiration",
        "0s",
        "Maximum validity of service account tokens; 0s: no limit",
        |options| &mut options.access.service_account_max_token_expiration,
    ),
    S::new(
        "token-auth-file",
        "",
        "File of static bearer tokens, one per line: TOKEN,USER,UID,\"GROUP,GROUP\"",
        |options| &mut options.access.token_auth_file,
    ),
];

const AUTHORIZATION: &[S] = &[S::new(
    "authorization-mode",
    "",
    "Ordered list of authorizers: AlwaysAllow, AlwaysDeny, Node, RBAC. Default: AlwaysAllow",
    |options| &mut options.access.authorization_mode,
)];

const ADMISSION: &[S] = &[
    S::new(
        "admission-control-config-file",
        "",
        "File with the configuration of admission plugins",
        |options| &mut options.admission_control_config_file,
    ),
    S::new(
        "default-not-ready-toleration-seconds",
        "300",
        "How many seconds pods stay on a node that is not ready, unless they say so themselves",
        |options| &mut options.default_not_ready_toleration_seconds,
    ),
    S::new(
        "default-unreachable-toleration-seconds",
        "300",
        "How many seconds pods stay on a node that cannot be reached, unless they say so themselves",
        |options| &mut options.default_unreachable_toleration_seconds,
    ),
    S::new(
        "disable-admission-plugins",
        "",
        "Admission plugins to disable although they are on by default",
        |options| &mut options.disable_admission_plugins,
    ),
    S::new(
        "enable-admission-plugins",
        "",
        "Admission plugins to enable besides the default ones. The order does not matter",
        |options| &mut options.enable_admission_plugins,
    ),
];

const MISC: &[S] = &[
    S::new(
        "allow-privileged",
        "false",
        "Allow privileged containers",
        |options| &mut options.allow_privileged,
    ),
    S::new(
        "endpoint-reconciler-type",
        "lease",
        "Which addresses the Service kubernetes leads to: lease, those of all servers that share the etcd; none, those that \
         others put there",
        |options| &mut options.endpoint_reconciler_type,
    ),
    S::new(
        "controllers",
        "",
        "Controllers to run in this process, for tests that have no controller manager: '*' for the default set, 'name' \
         for one, '-name' without one. Default: none",
        |options| &mut options.controllers,
    ),
    S::new(
        "enable-aggregator-routing",
        "false",
        "Send requests to webhooks and aggregated servers to the endpoints of their Service instead of its cluster IP",
        |options| &mut options.enable_aggregator_routing,
    ),
    S::new(
        "event-ttl",
        "1h0m0s",
        "Time after the last write when an Event is deleted",
        |options| &mut options.event_ttl,
    ),
    S::new(
        "kubelet-certificate-authority",
        "",
        "CA of the serving certificates of kubelets. Without it they are not verified",
        |options| &mut options.kubelet_certificate_authority,
    ),
    S::new(
        "kubelet-client-certificate",
        "",
        "Client certificate for kubelets. Reloaded when it changes",
        |options| &mut options.kubelet_client_certificate,
    ),
    S::new(
        "kubelet-client-key",
        "",
        "Key of --kubelet-client-certificate",
        |options| &mut options.kubelet_client_key,
    ),
    S::new(
        "kubelet-port",
        "10250",
        "Port of kubelets whose Node has no port in its status (deprecated)",
        |options| &mut options.kubelet_port,
    ),
    S::new(
        "kubelet-preferred-address-types",
        "Hostname,InternalDNS,InternalIP,ExternalDNS,ExternalIP",
        "Types of node addresses to use for kubelet connections, in order of preference",
        |options| &mut options.kubelet_preferred_address_types,
    ),
    S::new(
        "kubelet-timeout",
        "5s",
        "Timeout to connect to a kubelet",
        |options| &mut options.kubelet_timeout,
    ),
    S::new(
        "kubernetes-service-node-port",
        "0",
        "Make the Service kubernetes a NodePort Service with this port; 0: ClusterIP",
        |options| &mut options.kubernetes_service_node_port,
    ),
    S::new(
        "proxy-client-cert-file",
        "",
        "Client certificate that this server shows to aggregated servers as their front proxy. Reloaded when it changes",
        |options| &mut options.proxy_client_cert_file,
    ),
    S::new(
        "proxy-client-key-file",
        "",
        "Key of --proxy-client-cert-file",
        |options| &mut options.proxy_client_key_file,
    ),
    S::new(
        "service-account-signing-key-file",
        "",
        "Private key that signs service account tokens: RSA, or EC on P-256 or P-384",
        |options| &mut options.access.service_account_signing_key_file,
    ),
    S::new(
        "service-cluster-ip-range",
        "",
        "Address ranges of Services: one, or one of each IP family separated by a comma. Default: 10.0.0.0/24",
        |options| &mut options.service_cluster_ip_range,
    ),
    S::new(
        "service-node-port-range",
        "30000-32767",
        "Port range of NodePort Services, inclusive",
        |options| &mut options.service_node_port_range,
    ),
];
