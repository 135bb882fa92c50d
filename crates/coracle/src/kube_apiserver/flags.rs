//! The flags of the API server: upstream's names, sections and defaults, for what works here.

use super::not_yet::NOT_YET;
use super::options::Options;
use crate::flags::values::{duration, file, ip, list, number, ports, switch, text};
use crate::flags::{Flag, Table, Takes};

pub(super) const TABLE: Table<Options> = Table {
    component: "kube-apiserver",
    about: "The Kubernetes API server: it keeps the cluster's objects, checks who may change them, and tells of changes.",
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
        "Address at which the rest of the cluster finds this server. Without it --bind-address, or, where that is every \
         address, the one of the interface that leads out of the host",
        |options, given| ip(&mut options.advertise_address, given),
    ),
    value(
        "generic",
        "request-timeout",
        "DURATION",
        "1m0s",
        "How long a request may take that is not meant to last (as watches are)",
        |options, given| duration(&mut options.request_timeout, given),
    ),
    value(
        "generic",
        "min-request-timeout",
        "SECONDS",
        "1800",
        "How long a watch lasts at least that does not say; at most it lasts twice as long",
        |options, given| number(&mut options.min_request_timeout, given),
    ),
    value(
        "generic",
        "shutdown-delay-duration",
        "DURATION",
        "0s",
        "How long everything is answered as before when the server is told to end, while /readyz says no",
        |options, given| duration(&mut options.shutdown_delay, given),
    ),
];

const STORAGE: &[Flag<Options>] = &[
    value(
        "storage",
        "data-dir",
        "DIR",
        "",
        "Keep everything in the embedded store in this folder (Coracle's own)",
        |options, given| file(&mut options.data_dir, given),
    ),
    value(
        "storage",
        "node-lease-write-delay",
        "DURATION",
        "0s",
        "Let renewals of node leases wait up to this long, at most 5s, so that many of them share one flush of the disk. They are answered once they are durable, only later: a power cut loses no write that was acknowledged. 0s: off (Coracle's own; --data-dir only)",
        |options, given| duration(&mut options.node_lease_write_delay, given),
    ),
    value(
        "storage",
        "etcd-servers",
        "URLS",
        "",
        "Keep everything in this etcd instead: the client URLs of its members, separated by commas",
        |options, given| list(&mut options.etcd_servers, given),
    ),
    value(
        "storage",
        "etcd-cafile",
        "FILE",
        "",
        "Who signed the certificates of the etcd. Needed where its URLs are https",
        |options, given| file(&mut options.etcd_cafile, given),
    ),
    value(
        "storage",
        "etcd-certfile",
        "FILE",
        "",
        "The certificate that the etcd knows this server by",
        |options, given| file(&mut options.etcd_certfile, given),
    ),
    value(
        "storage",
        "etcd-keyfile",
        "FILE",
        "",
        "The key of --etcd-certfile",
        |options, given| file(&mut options.etcd_keyfile, given),
    ),
    value(
        "storage",
        "etcd-prefix",
        "PREFIX",
        "/registry",
        "What keys in the etcd begin with",
        |options, given| text(&mut options.etcd_prefix, given),
    ),
    value(
        "storage",
        "etcd-compaction-interval",
        "DURATION",
        "5m0s",
        "How often the past of the etcd is forgotten, in turns with its other servers. 0: never by this server",
        |options, given| duration(&mut options.etcd_compaction_interval, given),
    ),
    value(
        "storage",
        "storage-backend",
        "NAME",
        "",
        "etcd3, or nothing, which means the same",
        |options, given| text(&mut options.storage_backend, given),
    ),
    value(
        "storage",
        "storage-media-type",
        "TYPE",
        "application/vnd.kubernetes.protobuf",
        "How objects are kept in the etcd; both forms are understood. Some kinds are always kept as JSON",
        |options, given| text(&mut options.storage_media_type, given),
    ),
];

const SERVING: &[Flag<Options>] = &[
    value(
        "secure serving",
        "bind-address",
        "IP",
        "0.0.0.0",
        "Address to listen on; 0.0.0.0 and :: are every address",
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
        "Where the server keeps the certificate that it makes for itself when none is given (apiserver.crt, apiserver.key)",
        |options, given| file(&mut options.cert_dir, given),
    ),
    value(
        "secure serving",
        "tls-cert-file",
        "FILE",
        "",
        "The server's certificate, followed by those that lead to its authority. Read again when it changes",
        |options, given| file(&mut options.tls_cert_file, given),
    ),
    value(
        "secure serving",
        "tls-private-key-file",
        "FILE",
        "",
        "The key of --tls-cert-file",
        |options, given| file(&mut options.tls_private_key_file, given),
    ),
    value(
        "secure serving",
        "tls-min-version",
        "VERSION",
        "",
        "Oldest version of TLS that is spoken: VersionTLS12 or VersionTLS13",
        |options, given| text(&mut options.tls_min_version, given),
    ),
    yes_or_no(
        "secure serving",
        "disable-http2-serving",
        "false",
        "Speak HTTP/1.1 alone",
        |options, given| switch(&mut options.disable_http2_serving, given),
    ),
    value(
        "secure serving",
        "http2-max-streams-per-connection",
        "COUNT",
        "0",
        "How many requests one HTTP/2 connection may have open; 0: 100",
        |options, given| number(&mut options.http2_max_streams, given),
    ),
];

const LOGS: &[Flag<Options>] = &[value(
    "logs",
    "v",
    "LEVEL",
    "0",
    "How much is told on standard error: from 4 on details, from 6 on everything",
    |options, given| number(&mut options.verbosity, given),
)];

const ADMISSION: &[Flag<Options>] = &[
    value(
        "admission",
        "enable-admission-plugins",
        "NAMES",
        "",
        "Plugins that are on besides those that always are. Their order does not matter",
        |options, given| list(&mut options.enable_admission_plugins, given),
    ),
    value(
        "admission",
        "disable-admission-plugins",
        "NAMES",
        "",
        "Plugins that are off though they would be on",
        |options, given| list(&mut options.disable_admission_plugins, given),
    ),
];

const MISC: &[Flag<Options>] = &[
    value(
        "misc",
        "event-ttl",
        "DURATION",
        "1h0m0s",
        "How long an event is kept after it was last written",
        |options, given| duration(&mut options.event_ttl, given),
    ),
    value(
        "misc",
        "service-cluster-ip-range",
        "CIDRS",
        "10.0.0.0/24",
        "Addresses of Services: one range, or one of each family separated by a comma",
        |options, given| list(&mut options.service_cluster_ip_range, given),
    ),
    value(
        "misc",
        "service-node-port-range",
        "PORTS",
        "30000-32767",
        "Ports that nodes open for Services, both ends included",
        |options, given| ports(&mut options.service_node_port_range, given),
    ),
    value(
        "misc",
        "kubernetes-service-node-port",
        "PORT",
        "0",
        "Make the Service kubernetes one of type NodePort, with this port on every node",
        |options, given| number(&mut options.kubernetes_service_node_port, given),
    ),
    yes_or_no(
        "misc",
        "allow-privileged",
        "false",
        "Let containers be privileged",
        |options, given| switch(&mut options.allow_privileged, given),
    ),
];
