//! The settings of `coracle server`. Their names are also the keys of its configuration file.

use coracle_settings::{Format, Mistakes, Program, Section, Setting};

use super::Server;
use crate::instance::DEFAULT_DATA_DIR;
use crate::settings::{feature_gates, images, logs, node, runtime_config, subdomain};

pub(super) const PROGRAM: Program<Server> = Program {
    name: "server",
    about: "Runs a cluster on this machine: API server, controllers, scheduler, and a node that runs pods, with pod network, \
            Services and DNS. Certificates are generated on the first start. DIR/admin.kubeconfig is the kubeconfig of the \
            administrator, DIR/scheduler.kubeconfig that of a separate scheduler. Pods keep running when the server stops: \
            `coracle stop` stops them, `coracle reset` deletes the cluster.",
    sections: &[
        section("general", GENERAL),
        section("addresses and ports", ADDRESSES),
        section("node and pods", &node()),
        section("node and pods", &images()),
        section("control plane", CONTROL_PLANE),
        section("store", STORE),
        section("logs", &logs()),
        section("feature gates", &feature_gates()),
        section("API enablement", &runtime_config()),
    ],
    omissions: &[],
    format: Format::Names,
};

type S = Setting<Server>;

const fn section(name: &'static str, settings: &'static [S]) -> Section<Server> {
    Section { name, settings }
}

const GENERAL: &[S] = &[
    S::new(
        "config",
        "",
        "Configuration file in YAML; its keys are these flags without the dashes",
        |options| &mut options.config,
    ),
    S::new(
        "controllers",
        "*",
        "Controllers to run: '*' enables the default set, 'name' enables one, '-name' disables one",
        |options| &mut options.controllers,
    ),
    S::new(
        "data-dir",
        DEFAULT_DATA_DIR,
        "Data directory; its path names the cluster on this machine",
        |options| &mut options.data_dir,
    ),
    S::new(
        "disable",
        "",
        "Components that are not started: dns, network, proxy, scheduler",
        |options| &mut options.disable,
    ),
    S::new(
        "no-node",
        "false",
        "Run the control plane only, without a node",
        |options| &mut options.no_node,
    ),
    S::new(
        "write-kubeconfig",
        "",
        "Write the kubeconfig of the administrator to this file, too",
        |options| &mut options.access.kubeconfig,
    ),
    S::new(
        "write-kubeconfig-mode",
        "600",
        "Permissions of --write-kubeconfig, in octal",
        |options| &mut options.access.kubeconfig_mode,
    ),
];

const ADDRESSES: &[S] = &[
    S::new(
        "bind-address",
        "",
        "Address of the API server. Default: 0.0.0.0, :: if pods have IPv6 addresses, or the loopback address with --no-node",
        |options| &mut options.bind_address,
    ),
    S::new(
        "cluster-cidr",
        "",
        "Address range of pods, or one of each IP version, the primary first. Default: 10.244.0.0/16, or the next free range; with --no-node and more than 256 simulated nodes 10.128.0.0/9",
        |options| &mut options.network.cluster_cidr,
    ),
    S::new(
        "cluster-dns",
        "",
        "Addresses of the cluster DNS, which pods ask. Default: the tenth address of the Service range; with --disable dns none",
        |options| &mut options.network.cluster_dns,
    ),
    S::new(
        "cluster-domain",
        "cluster.local",
        "DNS domain of the cluster",
        |options| &mut options.network.cluster_domain,
    ),
    S::new(
        "https-port",
        "",
        "Port of the API server; 0 selects a free port. Default: the port of the last start, 6443, or a free port",
        |options| &mut options.https_port,
    ),
    S::new(
        "kubelet-port",
        "",
        "Port of the kubelet; 0 selects a free port. Default: the port of the last start, 10250, or a free port",
        |options| &mut options.node.kubelet_port,
    ),
    S::new(
        "node-cidr-mask-size-ipv4",
        "0",
        "Mask size of a node's IPv4 pod range; 0: 24",
        |options| &mut options.network.mask_v4,
    ),
    S::new(
        "node-cidr-mask-size-ipv6",
        "0",
        "Mask size of a node's IPv6 pod range; 0: 64",
        |options| &mut options.network.mask_v6,
    ),
    S::new(
        "service-cidr",
        "",
        "Address range of Services, or one of each IP version, the primary first. Default: 10.96.0.0/12, or the next free range",
        |options| &mut options.network.service_cidr,
    ),
    S::new(
        "tls-san",
        "",
        "Further names and addresses in the certificate of the API server, separated by commas",
        |options| &mut options.access.names,
    ),
];

const CONTROL_PLANE: &[S] = &[
    S::new(
        "cluster-signing-duration",
        "8760h0m0s",
        "Maximum validity of certificates that are issued on request, as to nodes that join",
        |options| &mut options.nodes.signing_duration,
    ),
    S::new(
        "kubelet-certificate-authority",
        "",
        "CA of the serving certificates of kubelets that the cluster CA did not sign; set to an empty value, kubelets are not \
         verified, as one with a self-signed certificate requires. Default: only the cluster CA",
        |options| &mut options.network.kubelet_certificate_authority,
    ),
    S::new(
        "node-eviction-rate",
        "0.1",
        "Unreachable nodes per second and zone whose pods are evicted",
        |options| &mut options.nodes.node_eviction_rate,
    ),
    S::new(
        "node-monitor-grace-period",
        "50s",
        "Time without a lease renewal after which a node is marked NotReady",
        |options| &mut options.nodes.node_monitor_grace_period,
    ),
    S::new(
        "simulated-nodes",
        "0",
        "Number of simulated nodes: they exist in the API only, and pods scheduled on them appear to run. The annotation coracle.local/simulate of a pod, or that label of its node, selects the outcome: run, succeed, fail or hang (docs/simulated-nodes.md)",
        |options| &mut options.nodes.simulated_nodes,
    ),
];

const STORE: &[S] = &[
    S::new(
        "etcd-cafile",
        "",
        "CA certificate of the etcd servers",
        |options| &mut options.etcd.cafile,
    ),
    S::new(
        "etcd-certfile",
        "",
        "Client certificate for the etcd servers",
        |options| &mut options.etcd.certfile,
    ),
    S::new(
        "etcd-compaction-interval",
        "300",
        "Interval of etcd compaction by this server in seconds; 0: off",
        |options| &mut options.etcd.compaction_seconds,
    ),
    S::new("etcd-keyfile", "", "Key of --etcd-certfile", |options| {
        &mut options.etcd.keyfile
    }),
    S::new(
        "etcd-listen",
        "",
        "Serve the etcd API of the embedded store at this address, for etcdctl: unix:///PATH, or ADDRESS:PORT with TLS for client certificates of the cluster CA in the group system:masters (DIR/pki: ca.crt, and admin.crt with admin.key for the client)",
        |options| &mut options.etcd_port.listen,
    ),
    S::new(
        "etcd-listen-client-ca-file",
        "",
        "Accept client certificates of this CA at --etcd-listen ADDRESS:PORT, instead of system:masters of the cluster CA",
        |options| &mut options.etcd_port.client_ca_file,
    ),
    S::new(
        "etcd-prefix",
        "/registry",
        "Prefix of all keys in etcd",
        |options| &mut options.etcd.prefix,
    ),
    S::new(
        "etcd-servers",
        "",
        "Store objects in this etcd instead of the embedded store: client URLs of its members, separated by commas",
        |options| &mut options.etcd.servers,
    ),
    S::new(
        "event-ttl",
        "1h",
        "Time after the last write when an Event is deleted; 0: never",
        |options| &mut options.etcd.event_ttl,
    ),
    S::new(
        "node-lease-write-delay",
        "0",
        "Delay renewals of node leases up to this many milliseconds, so that many of them share one disk flush; reduces flash wear. A renewal is still acknowledged only when it is durable. At most 5000; 0: off. Embedded store only",
        |options| &mut options.etcd.lease_delay_milliseconds,
    ),
];

impl Server {
    /// Checks what the types of the settings do not; reports all errors together.
    pub(super) fn check(&self) -> Result<(), Mistakes> {
        let mut mistakes = Vec::new();
        self.check_node(&mut mistakes);
        self.check_store(&mut mistakes);

        if self.nodes.simulated_nodes > 10_000 {
            mistakes.push(String::from("--simulated-nodes: at most 10000"));
        }

        self.access.check(&mut mistakes);
        if let Err(why) = subdomain(&self.network.cluster_domain) {
            mistakes.push(format!("--cluster-domain: {why}"));
        }

        if mistakes.is_empty() {
            Ok(())
        } else {
            Err(Mistakes(mistakes))
        }
    }

    fn check_node(&self, mistakes: &mut Vec<String>) {
        self.node.check(mistakes);
        let mut given = self.node.given();
        if !self.network.cluster_dns.is_empty() {
            given.push("cluster-dns");
        }
        for flag in given.into_iter().filter(|_| self.no_node) {
            mistakes.push(format!("--{flag} cannot be used with --no-node"));
        }
    }

    fn check_store(&self, mistakes: &mut Vec<String>) {
        let (etcd, port) = (&self.etcd, &self.etcd_port);
        let is_external = !etcd.servers.is_empty();
        let wrong = [
            (
                is_external && port.listen.is_some(),
                "--etcd-servers cannot be used with --etcd-listen",
            ),
            (
                is_external && etcd.lease_delay_milliseconds > 0,
                "--etcd-servers cannot be used with --node-lease-write-delay",
            ),
            (
                !is_external && etcd.cafile.is_some(),
                "--etcd-cafile requires --etcd-servers",
            ),
            (
                etcd.certfile.is_some() != etcd.keyfile.is_some(),
                "--etcd-certfile and --etcd-keyfile must be specified together",
            ),
            (
                port.client_ca_file.is_some() && port.listen.is_none(),
                "--etcd-listen-client-ca-file requires --etcd-listen",
            ),
        ];

        let wrong = wrong.iter().filter(|(is_wrong, _)| *is_wrong);
        mistakes.extend(wrong.map(|(_, why)| String::from(*why)));
    }
}
