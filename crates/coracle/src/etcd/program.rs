//! The settings of etcd, with upstream's names and defaults.

use coracle_settings::{Format, Program, Section, Setting};

use super::omissions::OMISSIONS;
use super::options::Options;

pub(super) const PROGRAM: Program<Options> = Program {
    name: "etcd",
    about: "Runs the embedded store alone, with etcd's API: a cluster of one member. Every flag can also be set by an \
            environment variable: --data-dir by ETCD_DATA_DIR.",
    sections: &[
        section("member", MEMBER),
        section("clustering", CLUSTERING),
        section("security", SECURITY),
        section("logging", LOGGING),
        section("unsafe", UNSAFE),
    ],
    omissions: &[OMISSIONS],
    format: Format::None,
};

/// The defaults of the URLs of clients.
pub(super) const LISTENED: &str = "http://localhost:2379";
pub(super) const ADVERTISED: &str = "http://localhost:2379";

type S = Setting<Options>;

const fn section(name: &'static str, settings: &'static [S]) -> Section<Options> {
    Section { name, settings }
}

const MEMBER: &[S] = &[
    S::new(
        "auto-compaction-mode",
        "periodic",
        "What --auto-compaction-retention is: periodic, an age; revision, a number of revisions",
        |options| &mut options.auto_compaction_mode,
    ),
    S::new(
        "auto-compaction-retention",
        "0",
        "How much history is kept besides what clients compact: hours or a duration, or a number of revisions; 0: all",
        |options| &mut options.auto_compaction_retention,
    ),
    S::new(
        "data-dir",
        "",
        "Data directory. Default: NAME.etcd in the working directory",
        |options| &mut options.data_dir,
    ),
    S::new(
        "listen-client-http-urls",
        "",
        "URLs to serve only health, metrics and version on",
        |options| &mut options.listen_client_http_urls,
    ),
    S::new(
        "listen-client-urls",
        LISTENED,
        "URLs to serve clients on: http, https, unix or unixs; hosts are IP addresses or localhost",
        |options| &mut options.listen_client_urls,
    ),
    S::new(
        "listen-metrics-urls",
        "",
        "More URLs to serve health and metrics on; those with http need no client certificate",
        |options| &mut options.listen_metrics_urls,
    ),
    S::new(
        "max-request-bytes",
        "1572864",
        "Maximum size of a transaction in bytes",
        |options| &mut options.max_request_bytes,
    ),
    S::new("name", "default", "Name of this member", |options| {
        &mut options.name
    }),
    S::new(
        "experimental-watch-progress-notify-interval",
        "0s",
        "The older name of --watch-progress-notify-interval",
        |options| &mut options.watch_progress_notify_interval,
    ),
    S::new(
        "watch-progress-notify-interval",
        "0s",
        "Time between the notifications of an idle watch that requested them; 0s: 10 minutes",
        |options| &mut options.watch_progress_notify_interval,
    ),
];

const CLUSTERING: &[S] = &[
    S::new(
        "advertise-client-urls",
        ADVERTISED,
        "URLs that the member list shows to clients",
        |options| &mut options.advertise_client_urls,
    ),
    S::new(
        "initial-advertise-peer-urls",
        "http://localhost:2380",
        "URLs that the member list shows for other members; there are none",
        |options| &mut options.initial_advertise_peer_urls,
    ),
    S::new(
        "initial-cluster",
        "default=http://localhost:2380",
        "Members of the cluster: only this one",
        |options| &mut options.initial_cluster,
    ),
    S::new(
        "initial-cluster-state",
        "new",
        "new or existing; the store is created where there is none",
        |options| &mut options.initial_cluster_state,
    ),
];

const SECURITY: &[S] = &[
    S::new(
        "auto-tls",
        "false",
        "Serve https URLs with a self-signed certificate, kept in DATA-DIR/fixtures/client",
        |options| &mut options.auto_tls,
    ),
    S::new(
        "cert-file",
        "",
        "Serving certificate of https URLs, followed by intermediate certificates",
        |options| &mut options.cert_file,
    ),
    S::new(
        "cipher-suites",
        "",
        "Cipher suites of TLS 1.2, by their names in Go; those that do not exist here are left out. Default: all",
        |options| &mut options.cipher_suites,
    ),
    S::new(
        "client-cert-allowed-hostname",
        "",
        "Accept only client certificates for one of these host names or addresses",
        |options| &mut options.client_cert_allowed_hostname,
    ),
    S::new(
        "client-cert-auth",
        "false",
        "Require client certificates of --trusted-ca-file, which does so already",
        |options| &mut options.client_cert_auth,
    ),
    S::new("key-file", "", "Key of --cert-file", |options| {
        &mut options.key_file
    }),
    S::new(
        "tls-min-version",
        "TLS1.2",
        "Minimum TLS version: TLS1.2 or TLS1.3",
        |options| &mut options.tls_min_version,
    ),
    S::new(
        "trusted-ca-file",
        "",
        "CA of client certificates; clients must have one",
        |options| &mut options.trusted_ca_file,
    ),
];

const LOGGING: &[S] = &[S::new(
    "log-level",
    "info",
    "Log level: debug, info, warn, error, panic or fatal",
    |options| &mut options.log_level,
)];

const UNSAFE: &[S] = &[S::new(
    "unsafe-no-fsync",
    "false",
    "Acknowledge writes before they are durable: a power cut loses them. For tests",
    |options| &mut options.unsafe_no_fsync,
)];
