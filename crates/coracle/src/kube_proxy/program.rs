//! The settings of the proxy, with upstream's names, keys and defaults.

use coracle_settings::{Format, Omission, Program, Section, Setting, Treatment, Unknown};

use super::options::{HEALTHZ, METRICS_ADDRESS, Options};
use crate::settings::{
    HIDDEN_METRICS, LOGGING, burst, feature_gates, kubeconfig, logs, master, qps,
};

pub(super) const PROGRAM: Program<Options> = Program {
    name: "kube-proxy",
    about: "Runs the service proxy, which programs nftables rules that forward Service traffic to pods. The rules stay \
            when it stops.",
    sections: &[
        section("kube-proxy", FLAGS),
        section("kube-proxy", CONNTRACK),
        section("kube-proxy", CLIENT),
        section("kube-proxy", &logs()),
        section("kube-proxy", GATES),
        section("", FILE),
    ],
    omissions: &[OMISSIONS, LOGGING, HIDDEN_METRICS],
    format: Format::Kind {
        api_version: "kubeproxy.config.k8s.io/v1alpha1",
        kind: "KubeProxyConfiguration",
        unknown: Unknown::Warning,
    },
};

const GATES: &[S] = &{
    let [gates] = feature_gates();
    [gates.key("featureGates")]
};

type S = Setting<Options>;

const fn section(name: &'static str, settings: &'static [S]) -> Section<Options> {
    Section { name, settings }
}

const CLIENT: &[S] = &[
    kubeconfig().yields_to_file(),
    master(),
    qps("5").yields_to_file(),
    burst("10").yields_to_file(),
];

const FLAGS: &[S] = &[
    S::new(
        "bind-address",
        "0.0.0.0",
        "An address of the IP family on which the health server listens by default",
        |options| &mut options.bind_address,
    )
    .key("bindAddress")
    .yields_to_file(),
    S::new(
        "bind-address-hard-fail",
        "false",
        "Exit if the health address is in use",
        |options| &mut options.bind_hard_fail,
    )
    .key("bindAddressHardFail")
    .yields_to_file(),
    S::new(
        "cleanup",
        "false",
        "Remove all rules and exit",
        |options| &mut options.cleanup,
    ),
    S::new(
        "cluster-cidr",
        "",
        "Address ranges of pods, for --detect-local-mode=ClusterCIDR; traffic from them is not masqueraded",
        |options| &mut options.cluster_cidrs,
    )
    .key("clusterCIDR")
    .yields_to_file(),
    S::new(
        "config",
        "",
        "File with a KubeProxyConfiguration. Flags that have a key in it are ignored then, except \
         --hostname-override, -v and --vmodule",
        |options| &mut options.config,
    ),
    S::new(
        "detect-local-mode",
        "",
        "How traffic from pods of this node is detected: ClusterCIDR (default), NodeCIDR, BridgeInterface or \
         InterfaceNamePrefix",
        |options| &mut options.detect_local_mode,
    )
    .key("detectLocalMode")
    .yields_to_file(),
    S::new(
        "healthz-bind-address",
        HEALTHZ,
        "Address of /healthz and /livez; empty: none",
        |options| &mut options.healthz_address,
    )
    .key("healthzBindAddress")
    .yields_to_file(),
    S::new(
        "healthz-port",
        "10256",
        "Port for a --healthz-bind-address without one; 0: no health server (deprecated)",
        |options| &mut options.healthz_port,
    )
    .yields_to_file(),
    S::new(
        "hostname-override",
        "",
        "Name of the node. Default: the hostname",
        |options| &mut options.hostname_override,
    )
    .key("hostnameOverride"),
    S::new(
        "init-only",
        "false",
        "Set up connection tracking, which needs all rights of root, and exit; the proxy then needs only CAP_NET_ADMIN",
        |options| &mut options.init_only,
    ),
    S::new(
        "iptables-min-sync-period",
        "1s",
        "Minimum interval between changes of the rules. Applies to nftables, as upstream",
        |options| &mut options.min_sync_period,
    )
    .key("nftables.minSyncPeriod")
    .yields_to_file(),
    S::new(
        "iptables-sync-period",
        "30s",
        "Half of the time after which a change that could not be made is reported as unhealthy; rules are not \
         synchronized periodically. Applies to nftables, as upstream",
        |options| &mut options.sync_period,
    )
    .key("nftables.syncPeriod")
    .yields_to_file(),
    S::new(
        "masquerade-all",
        "false",
        "Masquerade all traffic to cluster IPs",
        |options| &mut options.masquerade_all,
    )
    .key("nftables.masqueradeAll")
    .yields_to_file(),
    S::new(
        "metrics-bind-address",
        METRICS_ADDRESS,
        "Address of /metrics and other pages about the proxy, without TLS; empty: none",
        |options| &mut options.metrics_address,
    )
    .key("metricsBindAddress")
    .yields_to_file(),
    S::new(
        "metrics-port",
        "10249",
        "Port for a --metrics-bind-address without one; 0: no metrics server (deprecated)",
        |options| &mut options.metrics_port,
    )
    .yields_to_file(),
    S::new(
        "nodeport-addresses",
        "",
        "Address ranges on which NodePorts are served, or 'primary'. Default: the addresses of the Node object",
        |options| &mut options.node_port_addresses,
    )
    .key("nodePortAddresses")
    .yields_to_file(),
    S::new(
        "oom-score-adj",
        "-999",
        "OOM score of the process, from -1000 to 1000",
        |options| &mut options.oom_score_adj,
    )
    .key("oomScoreAdj")
    .yields_to_file(),
    S::new(
        "pod-bridge-interface",
        "",
        "Name of the bridge, for --detect-local-mode=BridgeInterface",
        |options| &mut options.bridge,
    )
    .key("detectLocal.bridgeInterface")
    .yields_to_file(),
    S::new(
        "pod-interface-name-prefix",
        "",
        "Prefix of interface names, for --detect-local-mode=InterfaceNamePrefix",
        |options| &mut options.interface_prefix,
    )
    .key("detectLocal.interfaceNamePrefix")
    .yields_to_file(),
    S::new(
        "proxy-mode",
        "",
        "Proxy mode: nftables, which is also the default; there are no others",
        |options| &mut options.mode,
    )
    .key("mode")
    .yields_to_file(),
    S::new(
        "write-config-to",
        "",
        "Write the configuration to this file, and exit",
        |options| &mut options.write_config_to,
    ),
];

const CONNTRACK: &[S] = &[
    S::new(
        "conntrack-max-per-core",
        "32768",
        "Connections that the kernel tracks at most, for each processor; 0: as the kernel has it",
        |options| &mut options.conntrack.max_per_core,
    )
    .key("conntrack.maxPerCore")
    .yields_to_file(),
    S::new(
        "conntrack-min",
        "131072",
        "Connections that the kernel tracks at least, however few processors there are",
        |options| &mut options.conntrack.min,
    )
    .key("conntrack.min")
    .yields_to_file(),
    S::new(
        "conntrack-tcp-be-liberal",
        "false",
        "Track TCP packets outside of the window too, instead of marking them as invalid",
        |options| &mut options.conntrack.tcp_be_liberal,
    )
    .key("conntrack.tcpBeLiberal")
    .yields_to_file(),
    S::new(
        "conntrack-tcp-timeout-close-wait",
        "1h0m0s",
        "Time after which a TCP connection that one side has closed is forgotten; 0s: as the kernel has it",
        |options| &mut options.conntrack.tcp_close_wait_timeout,
    )
    .key("conntrack.tcpCloseWaitTimeout")
    .null_is_default()
    .yields_to_file(),
    S::new(
        "conntrack-tcp-timeout-established",
        "24h0m0s",
        "Time after which an idle TCP connection is forgotten; 0s: as the kernel has it",
        |options| &mut options.conntrack.tcp_established_timeout,
    )
    .key("conntrack.tcpEstablishedTimeout")
    .null_is_default()
    .yields_to_file(),
    S::new(
        "conntrack-udp-timeout",
        "0s",
        "Time after which an idle UDP connection without a reply is forgotten; 0s: as the kernel has it",
        |options| &mut options.conntrack.udp_timeout,
    )
    .key("conntrack.udpTimeout")
    .yields_to_file(),
    S::new(
        "conntrack-udp-timeout-stream",
        "0s",
        "Time after which an idle UDP connection with replies is forgotten; 0s: as the kernel has it",
        |options| &mut options.conntrack.udp_stream_timeout,
    )
    .key("conntrack.udpStreamTimeout")
    .yields_to_file(),
];

/// Settings without a flag.
const FILE: &[S] = &[S::new(
    "",
    "14",
    "Bit of the packet mark that selects packets to masquerade",
    |options| &mut options.masquerade_bit,
)
.key("nftables.masqueradeBit")];

const OMISSIONS: &[Omission] = &[
    Omission {
        why: "nftables is the only mode",
        treatment: Treatment::Ignored,
        switches: &["iptables-localhost-nodeports", "ipvs-strict-arp"],
        values: &[
            "iptables-masquerade-bit",
            "ipvs-exclude-cidrs",
            "ipvs-min-sync-period",
            "ipvs-scheduler",
            "ipvs-sync-period",
            "ipvs-tcp-timeout",
            "ipvs-tcpfin-timeout",
            "ipvs-udp-timeout",
        ],
        keys: &[
            "iptables",
            "ipvs",
            "portRange",
            "windowsRunAsService",
            "winkernel",
        ],
    },
    Omission {
        why: "the proxy follows events; nothing is read periodically",
        treatment: Treatment::Ignored,
        values: &["config-sync-period"],
        keys: &["configSyncPeriod"],
        ..Omission::NONE
    },
    Omission {
        why: "requests are JSON; all API servers accept it",
        treatment: Treatment::Ignored,
        values: &["kube-api-content-type"],
        keys: &[
            "clientConnection.acceptContentTypes",
            "clientConnection.contentType",
        ],
        ..Omission::NONE
    },
    Omission {
        why: "the machine is not identified",
        treatment: Treatment::Ignored,
        values: &["boot-id-file", "machine-id-file"],
        ..Omission::NONE
    },
    Omission {
        why: "there are no profiles of a Go program",
        treatment: Treatment::Ignored,
        switches: &["profiling"],
        keys: &["enableProfiling"],
        ..Omission::NONE
    },
];
