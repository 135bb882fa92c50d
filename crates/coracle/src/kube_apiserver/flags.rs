//! The supported flags of the API server, with upstream's names, sections and defaults.

use super::not_yet::NOT_YET;
use super::options::Options;
use crate::flags::values::{duration, file, ip, list, number, ports, switch, text};
use crate::flags::{Flag, Table, Takes};

pub(super) const TABLE: Table<Options> = Table {
    component: "kube-apiserver",
    about: "Runs the Kubernetes API server, which stores and validates the objects of a cluster and serves the Kubernetes API.",
    sections: &[
        "generic",
        "storage",
        "secure serving",
        "authentication",
        "authorization",
        "admission",
        "misc",
        "logs",
    ],
    flags: &[
        GENERIC,
        STORAGE,
        SERVING,
        super::access::FLAGS,
        ADMISSION,
        MISC,
        super::kubelets::FLAGS,
        LOGS,
    ],
    not_yet: NOT_YET,
};

pub(super) const fn value(
    section: &'static str,
    name: &'static str,
    what: &'static str,
    default: &'static str,
    about: &'static str,
    set: fn(&mut Options, &str) -> Result<(), String>,
) -> Flag<Options> {
    Flag {
        name,
        section,
        takes: Takes::Value(what),
        default,
        about,
        set,
    }
}

pub(super) const fn yes_or_no(
    section: &'static str,
    name: &'static str,
    default: &'static str,
    about: &'static str,
    set: fn(&mut Options, &str) -> Result<(), String>,
) -> Flag<Options> {
    Flag {
        name,
        section,
        takes: Takes::Switch,
        default,
        about,
        set,
    }
}

const GENERIC: &[Flag<Options>] = &[
    value(
        "generic",
        "advertise-address",
        "IP",
        "",
        "Address at which the cluster reaches this server. Default: --bind-address, or, if that is unspecified, the address \
         of the interface with the default route",
        |options, given| ip(&mut options.advertise_address, given),
    ),
    value(
        "generic",
        "request-timeout",
        "DURATION",
        "1m0s",
        "Timeout of requests, except long-running ones such as watches",
        |options, given| duration(&mut options.request_timeout, given),
    ),
    value(
        "generic",
        "min-request-timeout",
        "SECONDS",
        "1800",
        "Minimum timeout of watches without one of their own; the actual timeout is random, up to twice this",
        |options, given| number(&mut options.min_request_timeout, given),
    ),
    value(
        "generic",
        "shutdown-delay-duration",
        "DURATION",
        "0s",
        "Time after SIGTERM in which requests are still served, while /readyz fails",
        |options, given| duration(&mut options.shutdown_delay, given),
    ),
];

const STORAGE: &[Flag<Options>] = &[
    value(
        "storage",
        "data-dir",
        "DIR",
        "",
        "Store objects in the embedded store in this directory (Coracle only)",
        |options, given| file(&mut options.data_dir, given),
    ),
    value(
        "storage",
        "node-lease-write-delay",
        "DURATION",
        "0s",
        "Delay renewals of node leases up to this long, at most 5s, so that many of them share one disk flush. A renewal is still acknowledged only when it is durable. 0s: off (Coracle only; requires --data-dir)",
        |options, given| duration(&mut options.node_lease_write_delay, given),
    ),
    value(
        "storage",
        "etcd-servers",
        "URLS",
        "",
        "Store objects in this etcd: client URLs of its members, separated by commas",
        |options, given| list(&mut options.etcd_servers, given),
    ),
    value(
        "storage",
        "etcd-cafile",
        "FILE",
        "",
        "CA certificate of the etcd servers. Required for https URLs",
        |options, given| file(&mut options.etcd_cafile, given),
    ),
    value(
        "storage",
        "etcd-certfile",
        "FILE",
        "",
        "Client certificate for the etcd servers",
        |options, given| file(&mut options.etcd_certfile, given),
    ),
    value(
        "storage",
        "etcd-keyfile",
        "FILE",
        "",
        "Key of --etcd-certfile",
        |options, given| file(&mut options.etcd_keyfile, given),
    ),
    value(
        "storage",
        "etcd-prefix",
        "PREFIX",
        "/registry",
        "Prefix of all keys in etcd",
        |options, given| text(&mut options.etcd_prefix, given),
    ),
    value(
        "storage",
        "etcd-compaction-interval",
        "DURATION",
        "5m0s",
        "Interval of etcd compaction, shared with other API servers. 0: this server does not compact",
        |options, given| duration(&mut options.etcd_compaction_interval, given),
    ),
    value(
        "storage",
        "storage-backend",
        "NAME",
        "",
        "Storage backend: etcd3 or empty, which is the same",
        |options, given| text(&mut options.storage_backend, given),
    ),
    value(
        "storage",
        "storage-media-type",
        "TYPE",
        "application/vnd.kubernetes.protobuf",
        "Encoding of objects written to etcd; both encodings are read. Some kinds are always written as JSON",
        |options, given| text(&mut options.storage_media_type, given),
    ),
];

const SERVING: &[Flag<Options>] = &[
    value(
        "secure serving",
        "bind-address",
        "IP",
        "0.0.0.0",
        "Address to listen on; 0.0.0.0 or :: for all interfaces",
        |options, given| ip(&mut options.bind_address, given),
    ),
    value(
        "secure serving",
        "secure-port",
        "PORT",
        "6443",
        "Port to listen on, with TLS",
        |options, given| number(&mut options.secure_port, given),
    ),
    value(
        "secure serving",
        "cert-dir",
        "DIR",
        "/var/run/kubernetes",
        "Directory of the self-signed certificate that is generated without --tls-cert-file (apiserver.crt, apiserver.key)",
        |options, given| file(&mut options.cert_dir, given),
    ),
    value(
        "secure serving",
        "tls-cert-file",
        "FILE",
        "",
        "Serving certificate, followed by intermediate certificates. Reloaded when it changes",
        |options, given| file(&mut options.tls_cert_file, given),
    ),
    value(
        "secure serving",
        "tls-private-key-file",
        "FILE",
        "",
        "Key of --tls-cert-file",
        |options, given| file(&mut options.tls_private_key_file, given),
    ),
    value(
        "secure serving",
        "tls-min-version",
        "VERSION",
        "",
        "Minimum TLS version: VersionTLS12 or VersionTLS13",
        |options, given| text(&mut options.tls_min_version, given),
    ),
    yes_or_no(
        "secure serving",
        "disable-http2-serving",
        "false",
        "Serve HTTP/1.1 only",
        |options, given| switch(&mut options.disable_http2_serving, given),
    ),
    value(
        "secure serving",
        "http2-max-streams-per-connection",
        "COUNT",
        "0",
        "Maximum number of concurrent streams of an HTTP/2 connection; 0: 100",
        |options, given| number(&mut options.http2_max_streams, given),
    ),
];

const LOGS: &[Flag<Options>] = &[value(
    "logs",
    "v",
    "LEVEL",
    "0",
    "Log level: 4 and above logs details, 6 and above everything",
    |options, given| number(&mut options.verbosity, given),
)];

const ADMISSION: &[Flag<Options>] = &[
    value(
        "admission",
        "enable-admission-plugins",
        "NAMES",
        "",
        "Admission plugins to enable besides the default ones. The order does not matter",
        |options, given| list(&mut options.enable_admission_plugins, given),
    ),
    value(
        "admission",
        "disable-admission-plugins",
        "NAMES",
        "",
        "Admission plugins to disable although they are on by default",
        |options, given| list(&mut options.disable_admission_plugins, given),
    ),
];

const MISC: &[Flag<Options>] = &[
    value(
        "misc",
        "event-ttl",
        "DURATION",
        "1h0m0s",
        "Time after the last write when an Event is deleted",
        |options, given| duration(&mut options.event_ttl, given),
    ),
    value(
        "misc",
        "service-cluster-ip-range",
        "CIDRS",
        "10.0.0.0/24",
        "Address ranges of Services: one, or one of each IP family separated by a comma",
        |options, given| list(&mut options.service_cluster_ip_range, given),
    ),
    value(
        "misc",
        "service-node-port-range",
        "PORTS",
        "30000-32767",
        "Port range of NodePort Services, inclusive",
        |options, given| ports(&mut options.service_node_port_range, given),
    ),
    value(
        "misc",
        "kubernetes-service-node-port",
        "PORT",
        "0",
        "Make the Service kubernetes a NodePort Service with this port; 0: ClusterIP",
        |options, given| number(&mut options.kubernetes_service_node_port, given),
    ),
    yes_or_no(
        "misc",
        "allow-privileged",
        "false",
        "Allow privileged containers",
        |options, given| switch(&mut options.allow_privileged, given),
    ),
];
