//! Flags of etcd that do not exist here, and why.

use coracle_settings::{Omission, Treatment};

pub(super) const OMISSIONS: &[Omission] = &[
    Omission {
        why: "there is one member: no peers, no elections, no snapshots for others",
        treatment: Treatment::Ignored,
        switches: &[
            "experimental-enable-lease-checkpoint",
            "experimental-enable-lease-checkpoint-persist",
            "experimental-peer-skip-client-san-verification",
            "initial-election-tick-advance",
            "peer-auto-tls",
            "peer-client-cert-auth",
            "peer-skip-client-san-verification",
            "pre-vote",
            "strict-reconfig-check",
        ],
        values: &[
            "discovery-fallback",
            "election-timeout",
            "experimental-downgrade-check-time",
            "experimental-snapshot-catchup-entries",
            "downgrade-check-time",
            "heartbeat-interval",
            "initial-cluster-token",
            "listen-peer-urls",
            "max-learners",
            "max-snapshots",
            "peer-cert-allowed-cn",
            "peer-cert-allowed-hostname",
            "peer-cert-file",
            "peer-client-cert-file",
            "peer-client-key-file",
            "peer-crl-file",
            "peer-key-file",
            "peer-trusted-ca-file",
            "raft-read-timeout",
            "raft-write-timeout",
            "snapshot-catchup-entries",
            "snapshot-count",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "there is one member: other members are not discovered",
        treatment: Treatment::Only(&[""]),
        values: &[
            "discovery",
            "discovery-cacert",
            "discovery-cert",
            "discovery-endpoints",
            "discovery-key",
            "discovery-password",
            "discovery-proxy",
            "discovery-srv",
            "discovery-srv-name",
            "discovery-token",
            "discovery-user",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "there is one member: other members are not discovered",
        treatment: Treatment::Ignored,
        switches: &[
            "discovery-insecure-skip-tls-verify",
            "discovery-insecure-transport",
        ],
        values: &[
            "discovery-dial-timeout",
            "discovery-keepalive-time",
            "discovery-keepalive-timeout",
            "discovery-request-timeout",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "the member has always been alone",
        treatment: Treatment::Only(&["false"]),
        switches: &["force-new-cluster"],
        ..Omission::NONE
    },
    Omission {
        why: "the log is in the data directory",
        treatment: Treatment::Ignored,
        values: &["wal-dir"],
        ..Omission::NONE
    },
    Omission {
        why: "the store has files of its own, not etcd's",
        treatment: Treatment::Ignored,
        switches: &[
            "experimental-memory-mlock",
            "experimental-stop-grpc-service-on-defrag",
            "experimental-txn-mode-write-with-shared-buffer",
            "memory-mlock",
        ],
        values: &[
            "backend-batch-interval",
            "backend-batch-limit",
            "backend-bbolt-freelist-type",
            "bootstrap-defrag-threshold-megabytes",
            "compaction-batch-limit",
            "compaction-sleep-interval",
            "experimental-bootstrap-defrag-threshold-megabytes",
            "experimental-compaction-batch-limit",
            "experimental-compaction-sleep-interval",
            "max-wals",
            "v2-deprecation",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "every frame of the files has a checksum, which is verified as it is read",
        treatment: Treatment::Ignored,
        switches: &[
            "experimental-compact-hash-check-enabled",
            "experimental-initial-corrupt-check",
        ],
        values: &[
            "compact-hash-check-time",
            "corrupt-check-time",
            "experimental-compact-hash-check-time",
            "experimental-corrupt-check-time",
            "feature-gates",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "the size is limited by the disk",
        treatment: Treatment::Ignored,
        values: &["quota-backend-bytes"],
        ..Omission::NONE
    },
    Omission {
        why: "a transaction has at most 128 operations",
        treatment: Treatment::Only(&["128"]),
        values: &["max-txn-ops"],
        ..Omission::NONE
    },
    Omission {
        why: "connections are kept as long as they are open",
        treatment: Treatment::Ignored,
        values: &[
            "grpc-keepalive-interval",
            "grpc-keepalive-min-time",
            "grpc-keepalive-timeout",
            "max-concurrent-streams",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "the port is not shared with other processes",
        treatment: Treatment::Only(&["false"]),
        switches: &["socket-reuse-address", "socket-reuse-port"],
        ..Omission::NONE
    },
    Omission {
        why: "clients have certificates; there are no users and roles",
        treatment: Treatment::Ignored,
        values: &["auth-token", "auth-token-ttl", "bcrypt-cost"],
        ..Omission::NONE
    },
    Omission {
        why: "this member is no client of other members",
        treatment: Treatment::Ignored,
        values: &["client-cert-file", "client-key-file"],
        ..Omission::NONE
    },
    Omission {
        why: "revocation lists are not read",
        treatment: Treatment::Only(&[""]),
        values: &["client-crl-file"],
        ..Omission::NONE
    },
    Omission {
        why: "certificates of --auto-tls do not expire after years",
        treatment: Treatment::Ignored,
        values: &["self-signed-cert-validity"],
        ..Omission::NONE
    },
    Omission {
        why: "the newest version that both sides have is used",
        treatment: Treatment::Only(&["", "TLS1.3"]),
        values: &["tls-max-version"],
        ..Omission::NONE
    },
    Omission {
        why: "only gRPC, health, metrics and version are served, and none of them to web pages",
        treatment: Treatment::Ignored,
        switches: &["enable-grpc-gateway"],
        values: &["cors", "host-whitelist"],
        ..Omission::NONE
    },
    Omission {
        why: "there are no profiles of a Go program",
        treatment: Treatment::Only(&["false"]),
        switches: &["enable-pprof"],
        ..Omission::NONE
    },
    Omission {
        why: "metrics cannot be selected",
        treatment: Treatment::Ignored,
        values: &["metrics"],
        ..Omission::NONE
    },
    Omission {
        why: "there are no traces",
        treatment: Treatment::Only(&["false"]),
        switches: &[
            "enable-distributed-tracing",
            "experimental-enable-distributed-tracing",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "there are no traces",
        treatment: Treatment::Ignored,
        values: &[
            "distributed-tracing-address",
            "distributed-tracing-instance-id",
            "distributed-tracing-sampling-rate",
            "distributed-tracing-service-name",
            "experimental-distributed-tracing-address",
            "experimental-distributed-tracing-instance-id",
            "experimental-distributed-tracing-sampling-rate",
            "experimental-distributed-tracing-service-name",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "slow requests are not logged",
        treatment: Treatment::Ignored,
        values: &[
            "experimental-warning-apply-duration",
            "experimental-warning-unary-request-duration",
            "warning-apply-duration",
            "warning-unary-request-duration",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "the log is text on standard error",
        treatment: Treatment::Ignored,
        switches: &["enable-log-rotation"],
        values: &[
            "log-format",
            "log-outputs",
            "log-rotation-config-json",
            "logger",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "there is no configuration file: use flags or environment variables",
        treatment: Treatment::Only(&[""]),
        values: &["config-file"],
        ..Omission::NONE
    },
];
