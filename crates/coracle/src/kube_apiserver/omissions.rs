//! Flags of upstream that the API server does not have, and why.

use coracle_settings::{Omission, Treatment};

pub(super) const OMISSIONS: &[Omission] = &[
    Omission {
        why: "--enable-admission-plugins replaces it",
        values: &["admission-control"],
        ..Omission::NONE
    },
    Omission {
        why: "redirects of aggregated API servers are never forwarded",
        treatment: Treatment::Ignored,
        switches: &["aggregator-reject-forwarding-redirect"],
        ..Omission::NONE
    },
    Omission {
        why: "API servers of a cluster do not proxy to each other",
        treatment: Treatment::Only(&[""]),
        values: &["peer-advertise-ip", "peer-advertise-port", "peer-ca-file"],
        ..Omission::NONE
    },
    Omission {
        why: "there is no audit log",
        switches: &[
            "audit-log-batch-throttle-enable",
            "audit-log-compress",
            "audit-log-truncate-enabled",
            "audit-webhook-batch-throttle-enable",
            "audit-webhook-truncate-enabled",
        ],
        values: &[
            "audit-log-batch-buffer-size",
            "audit-log-batch-max-size",
            "audit-log-batch-max-wait",
            "audit-log-batch-throttle-burst",
            "audit-log-batch-throttle-qps",
            "audit-log-format",
            "audit-log-maxage",
            "audit-log-maxbackup",
            "audit-log-maxsize",
            "audit-log-mode",
            "audit-log-path",
            "audit-log-truncate-max-batch-size",
            "audit-log-truncate-max-event-size",
            "audit-log-version",
            "audit-policy-file",
            "audit-webhook-batch-buffer-size",
            "audit-webhook-batch-initial-backoff",
            "audit-webhook-batch-max-size",
            "audit-webhook-batch-max-wait",
            "audit-webhook-batch-throttle-burst",
            "audit-webhook-batch-throttle-qps",
            "audit-webhook-config-file",
            "audit-webhook-initial-backoff",
            "audit-webhook-mode",
            "audit-webhook-truncate-max-batch-size",
            "audit-webhook-truncate-max-event-size",
            "audit-webhook-version",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "there are no token webhooks and no OpenID Connect",
        values: &[
            "authentication-config",
            "authentication-token-webhook-cache-ttl",
            "authentication-token-webhook-config-file",
            "authentication-token-webhook-version",
            "oidc-ca-file",
            "oidc-client-id",
            "oidc-groups-claim",
            "oidc-groups-prefix",
            "oidc-issuer-url",
            "oidc-required-claim",
            "oidc-signing-algs",
            "oidc-username-claim",
            "oidc-username-prefix",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "authorizers are Node, RBAC, AlwaysAllow and AlwaysDeny",
        values: &[
            "authorization-config",
            "authorization-policy-file",
            "authorization-webhook-cache-authorized-ttl",
            "authorization-webhook-cache-unauthorized-ttl",
            "authorization-webhook-config-file",
            "authorization-webhook-version",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "tokens of deleted service accounts are always refused",
        treatment: Treatment::Only(&["true"]),
        switches: &["service-account-lookup"],
        ..Omission::NONE
    },
    Omission {
        why: "tokens are signed with --service-account-signing-key-file",
        treatment: Treatment::Only(&[""]),
        values: &["service-account-signing-endpoint"],
        ..Omission::NONE
    },
    Omission {
        why: "there is no flow control",
        switches: &["enable-priority-and-fairness"],
        values: &["max-mutating-requests-inflight", "max-requests-inflight"],
        ..Omission::NONE
    },
    Omission {
        why: "connections are not limited in bytes per second",
        treatment: Treatment::Only(&["0"]),
        values: &["max-connection-bytes-per-sec"],
        ..Omission::NONE
    },
    Omission {
        why: "every resource has a watch cache, whose size follows its changes",
        treatment: Treatment::Only(&["true"]),
        switches: &["watch-cache"],
        ..Omission::NONE
    },
    Omission {
        why: "the size of a watch cache follows its changes",
        treatment: Treatment::Ignored,
        values: &["default-watch-cache-size", "watch-cache-sizes"],
        ..Omission::NONE
    },
    Omission {
        why: "deletion of a collection is not divided among workers",
        treatment: Treatment::Ignored,
        values: &["delete-collection-workers"],
        ..Omission::NONE
    },
    Omission {
        why: "the garbage collector's finalizers are always honoured",
        treatment: Treatment::Only(&["true"]),
        switches: &["enable-garbage-collector"],
        ..Omission::NONE
    },
    Omission {
        why: "objects are not encrypted in the store",
        switches: &["encryption-provider-config-automatic-reload"],
        values: &["encryption-provider-config"],
        ..Omission::NONE
    },
    Omission {
        why: "all resources are in one etcd",
        treatment: Treatment::Only(&[""]),
        values: &["etcd-servers-overrides"],
        ..Omission::NONE
    },
    Omission {
        why: "the store is not polled",
        treatment: Treatment::Ignored,
        values: &[
            "etcd-count-metric-poll-period",
            "etcd-db-metric-poll-interval",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "times and counts of the store's client are fixed",
        values: &[
            "etcd-healthcheck-timeout",
            "etcd-readycheck-timeout",
            "lease-reuse-duration-seconds",
            "storage-initialization-timeout",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "it is deprecated and has no effect upstream",
        treatment: Treatment::Ignored,
        switches: &["enable-logs-handler"],
        values: &["apiserver-count", "kubelet-read-only-port"],
        ..Omission::NONE
    },
    Omission {
        why: "coordinated leader election is off, as upstream by default",
        treatment: Treatment::Ignored,
        values: &[
            "coordinated-leadership-lease-duration",
            "coordinated-leadership-renew-deadline",
            "coordinated-leadership-retry-period",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "requests go to nodes and webhooks directly",
        treatment: Treatment::Only(&[""]),
        values: &["egress-selector-config-file"],
        ..Omission::NONE
    },
    Omission {
        why: "API versions cannot be changed",
        switches: &[
            "emulation-forward-compatible",
            "runtime-config-emulation-forward-compatible",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "there is no debug socket",
        treatment: Treatment::Only(&[""]),
        values: &["debug-socket-path"],
        ..Omission::NONE
    },
    Omission {
        why: "there is no tracing",
        treatment: Treatment::Only(&[""]),
        values: &["tracing-config-file"],
        ..Omission::NONE
    },
    Omission {
        why: "/livez answers from the start",
        treatment: Treatment::Ignored,
        values: &["livez-grace-period"],
        ..Omission::NONE
    },
    Omission {
        why: "the shutdown has one delay, --shutdown-delay-duration",
        switches: &["shutdown-send-retry-after"],
        values: &["shutdown-watch-termination-grace-period"],
        ..Omission::NONE
    },
    Omission {
        why: "addresses that clients see are those of --advertise-address",
        values: &["external-hostname"],
        ..Omission::NONE
    },
];
