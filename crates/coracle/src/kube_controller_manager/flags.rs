//! The supported flags of the controller manager, with upstream's names, sections and defaults.

use std::path::PathBuf;
use std::time::Duration;

use coracle_controllers::Manager;

use super::nodes::{NODES, NodeOptions, SECTIONS};
use super::not_yet::NOT_YET;
use crate::flags::values::{duration, file, list, number, switch, text};
use crate::flags::{Flag, Table, Takes};

/// Files of a CA.
#[derive(Default)]
pub(super) struct PairFiles {
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

/// Files of the CAs that sign certificates.
pub(super) struct SigningFiles {
    /// For all signers.
    pub(super) all: PairFiles,
    pub(super) kubelet_serving: PairFiles,
    pub(super) kubelet_client: PairFiles,
    pub(super) apiserver_client: PairFiles,
    pub(super) legacy_unknown: PairFiles,
    pub(super) duration: Duration,
}

impl Default for SigningFiles {
    fn default() -> SigningFiles {
        SigningFiles {
            all: PairFiles::default(),
            kubelet_serving: PairFiles::default(),
            kubelet_client: PairFiles::default(),
            apiserver_client: PairFiles::default(),
            legacy_unknown: PairFiles::default(),
            duration: Duration::from_secs(365 * 24 * 3600),
        }
    }
}

/// The parsed flags.
pub(super) struct Options {
    pub(super) kubeconfig: Option<PathBuf>,
    pub(super) master: String,
    pub(super) controllers: Vec<String>,
    pub(super) manager: Manager,
    pub(super) root_ca_file: Option<PathBuf>,
    pub(super) service_account_private_key_file: Option<PathBuf>,
    pub(super) signing: SigningFiles,
    pub(super) qps: i64,
    pub(super) burst: i64,
    pub(super) own_accounts: bool,
    pub(super) leader_elect: bool,
    pub(super) lease_duration: Duration,
    pub(super) renew_deadline: Duration,
    pub(super) retry_period: Duration,
    pub(super) lease_name: String,
    pub(super) lease_namespace: String,
    pub(super) nodes: NodeOptions,
    pub(super) verbosity: i64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            kubeconfig: None,
            master: String::new(),
            controllers: Vec::new(),
            manager: Manager::default(),
            root_ca_file: None,
            service_account_private_key_file: None,
            signing: SigningFiles::default(),
            qps: 20,
            burst: 30,
            own_accounts: false,
            leader_elect: true,
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            lease_name: "kube-controller-manager".to_string(),
            lease_namespace: "kube-system".to_string(),
            nodes: NodeOptions::default(),
            verbosity: 0,
        }
    }
}

pub(super) const TABLE: Table<Options> = Table {
    component: "kube-controller-manager",
    about: "Runs the Kubernetes controllers, which reconcile the cluster's objects with their desired state.",
    sections: &[
        "generic",
        "leader election",
        "certificatesigningrequest-signing-controller",
        "cronjob-controller",
        "daemonset-controller",
        "deployment-controller",
        SECTIONS[0],
        SECTIONS[1],
        SECTIONS[2],
        SECTIONS[3],
        SECTIONS[4],
        SECTIONS[5],
        "garbage-collector-controller",
        "job-controller",
        "namespace-controller",
        "replicaset-controller",
        "replicationcontroller-controller",
        "resourcequota-controller",
        "serviceaccount-controller",
        "statefulset-controller",
        "ttl-after-finished-controller",
        "misc",
        "logs",
    ],
    flags: &[GENERIC, ELECTION, NODES, CONTROLLERS, UPKEEP, SIGNING],
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

const GENERIC: &[Flag<Options>] = &[
    value(
        "generic",
        "controllers",
        "LIST",
        "*",
        "Controllers to run: '*' enables the default set, 'name' enables one, '-name' disables one",
        |options, given| list(&mut options.controllers, given),
    ),
    value(
        "generic",
        "kube-api-qps",
        "NUMBER",
        "20",
        "Maximum rate of API requests per second",
        |options, given| number(&mut options.qps, given),
    ),
    value(
        "generic",
        "kube-api-burst",
        "NUMBER",
        "30",
        "Burst of API requests above --kube-api-qps",
        |options, given| number(&mut options.burst, given),
    ),
    Flag {
        name: "use-service-account-credentials",
        section: "generic",
        takes: Takes::Switch,
        default: "false",
        about: "Run each controller with its own service account credentials",
        set: |options, given| switch(&mut options.own_accounts, given),
    },
    value(
        "misc",
        "kubeconfig",
        "FILE",
        "",
        "Kubeconfig with the API server and the credentials. Default: the service account of the pod",
        |options, given| file(&mut options.kubeconfig, given),
    ),
    value(
        "misc",
        "master",
        "URL",
        "",
        "URL of the API server; overrides the kubeconfig",
        |options, given| text(&mut options.master, given),
    ),
    value(
        "logs",
        "v",
        "LEVEL",
        "0",
        "Log level: 4 and above logs details, 6 and above everything",
        |options, given| number(&mut options.verbosity, given),
    ),
];

const ELECTION: &[Flag<Options>] = &[
    Flag {
        name: "leader-elect",
        section: "leader election",
        takes: Takes::Switch,
        default: "true",
        about: "Elect a leader among several controller managers; only the leader runs controllers",
        set: |options, given| switch(&mut options.leader_elect, given),
    },
    value(
        "leader election",
        "leader-elect-lease-duration",
        "DURATION",
        "15s",
        "Time after the last renewal when another candidate may take the Lease",
        |options, given| duration(&mut options.lease_duration, given),
    ),
    value(
        "leader election",
        "leader-elect-renew-deadline",
        "DURATION",
        "10s",
        "Time in which the leader must renew the Lease before it stops leading",
        |options, given| duration(&mut options.renew_deadline, given),
    ),
    value(
        "leader election",
        "leader-elect-retry-period",
        "DURATION",
        "2s",
        "Time between attempts to acquire or renew the Lease",
        |options, given| duration(&mut options.retry_period, given),
    ),
    value(
        "leader election",
        "leader-elect-resource-name",
        "NAME",
        "kube-controller-manager",
        "Name of the Lease",
        |options, given| text(&mut options.lease_name, given),
    ),
    value(
        "leader election",
        "leader-elect-resource-namespace",
        "NAMESPACE",
        "kube-system",
        "Namespace of the Lease",
        |options, given| text(&mut options.lease_namespace, given),
    ),
];

/// Parses a number of workers; at least one.
fn workers(count: &mut usize, given: &str) -> Result<(), String> {
    let mut asked = 0;
    number(&mut asked, given)?;
    *count = usize::try_from(asked).unwrap_or_default().max(1);
    Ok(())
}

const CONTROLLERS: &[Flag<Options>] = &[
    value(
        "cronjob-controller",
        "concurrent-cron-job-syncs",
        "NUMBER",
        "5",
        "Number of CronJobs synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_cron_job_syncs, given),
    ),
    value(
        "daemonset-controller",
        "concurrent-daemonset-syncs",
        "NUMBER",
        "2",
        "Number of DaemonSets synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_daemonset_syncs, given),
    ),
    value(
        "deployment-controller",
        "concurrent-deployment-syncs",
        "NUMBER",
        "5",
        "Number of Deployments synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_deployment_syncs, given),
    ),
    value(
        "job-controller",
        "concurrent-job-syncs",
        "NUMBER",
        "5",
        "Number of Jobs synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_job_syncs, given),
    ),
    value(
        "replicaset-controller",
        "concurrent-replicaset-syncs",
        "NUMBER",
        "5",
        "Number of ReplicaSets synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_replicaset_syncs, given),
    ),
    value(
        "replicationcontroller-controller",
        "concurrent-rc-syncs",
        "NUMBER",
        "5",
        "Number of ReplicationControllers synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_rc_syncs, given),
    ),
    value(
        "statefulset-controller",
        "concurrent-statefulset-syncs",
        "NUMBER",
        "5",
        "Number of StatefulSets synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_statefulset_syncs, given),
    ),
    value(
        "ttl-after-finished-controller",
        "concurrent-ttl-after-finished-syncs",
        "NUMBER",
        "5",
        "Number of finished Jobs synced in parallel",
        |options, given| {
            workers(
                &mut options.manager.concurrent_ttl_after_finished_syncs,
                given,
            )
        },
    ),
];

const UPKEEP: &[Flag<Options>] = &[
    value(
        "garbage-collector-controller",
        "concurrent-gc-syncs",
        "NUMBER",
        "20",
        "Number of garbage collector workers",
        |options, given| workers(&mut options.manager.concurrent_gc_syncs, given),
    ),
    value(
        "namespace-controller",
        "concurrent-namespace-syncs",
        "NUMBER",
        "10",
        "Number of namespaces synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_namespace_syncs, given),
    ),
    value(
        "resourcequota-controller",
        "concurrent-resource-quota-syncs",
        "NUMBER",
        "5",
        "Number of ResourceQuotas synced in parallel",
        |options, given| workers(&mut options.manager.concurrent_resource_quota_syncs, given),
    ),
    value(
        "serviceaccount-controller",
        "root-ca-file",
        "FILE",
        "",
        "CA certificate of the API server, published to pods in kube-root-ca.crt. Default: that of the kubeconfig",
        |options, given| file(&mut options.root_ca_file, given),
    ),
    value(
        "serviceaccount-controller",
        "service-account-private-key-file",
        "FILE",
        "",
        "Private key that signs service account tokens in Secrets. Without it none are created",
        |options, given| file(&mut options.service_account_private_key_file, given),
    ),
    value(
        "serviceaccount-controller",
        "concurrent-serviceaccount-token-syncs",
        "NUMBER",
        "5",
        "Number of token Secrets synced in parallel",
        |options, given| {
            workers(
                &mut options.manager.concurrent_serviceaccount_token_syncs,
                given,
            )
        },
    ),
];

/// A flag with a file of a signer.
const fn signing(
    name: &'static str,
    about: &'static str,
    set: fn(&mut Options, &str) -> Result<(), String>,
) -> Flag<Options> {
    value(
        "certificatesigningrequest-signing-controller",
        name,
        "FILE",
        "",
        about,
        set,
    )
}

const SIGNING: &[Flag<Options>] = &[
    signing(
        "cluster-signing-cert-file",
        "CA certificate of all signers",
        |options, given| file(&mut options.signing.all.certificate, given),
    ),
    signing(
        "cluster-signing-key-file",
        "Key of --cluster-signing-cert-file",
        |options, given| file(&mut options.signing.all.key, given),
    ),
    value(
        "certificatesigningrequest-signing-controller",
        "cluster-signing-duration",
        "DURATION",
        "8760h0m0s",
        "Maximum validity of issued certificates",
        |options, given| duration(&mut options.signing.duration, given),
    ),
    signing(
        "cluster-signing-kubelet-serving-cert-file",
        "CA certificate of kubernetes.io/kubelet-serving",
        |options, given| file(&mut options.signing.kubelet_serving.certificate, given),
    ),
    signing(
        "cluster-signing-kubelet-serving-key-file",
        "Key of --cluster-signing-kubelet-serving-cert-file",
        |options, given| file(&mut options.signing.kubelet_serving.key, given),
    ),
    signing(
        "cluster-signing-kubelet-client-cert-file",
        "CA certificate of kubernetes.io/kube-apiserver-client-kubelet",
        |options, given| file(&mut options.signing.kubelet_client.certificate, given),
    ),
    signing(
        "cluster-signing-kubelet-client-key-file",
        "Key of --cluster-signing-kubelet-client-cert-file",
        |options, given| file(&mut options.signing.kubelet_client.key, given),
    ),
    signing(
        "cluster-signing-kube-apiserver-client-cert-file",
        "CA certificate of kubernetes.io/kube-apiserver-client",
        |options, given| file(&mut options.signing.apiserver_client.certificate, given),
    ),
    signing(
        "cluster-signing-kube-apiserver-client-key-file",
        "Key of --cluster-signing-kube-apiserver-client-cert-file",
        |options, given| file(&mut options.signing.apiserver_client.key, given),
    ),
    signing(
        "cluster-signing-legacy-unknown-cert-file",
        "CA certificate of kubernetes.io/legacy-unknown",
        |options, given| file(&mut options.signing.legacy_unknown.certificate, given),
    ),
    signing(
        "cluster-signing-legacy-unknown-key-file",
        "Key of --cluster-signing-legacy-unknown-cert-file",
        |options, given| file(&mut options.signing.legacy_unknown.key, given),
    ),
];
