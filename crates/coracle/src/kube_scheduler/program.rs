//! The settings of the scheduler, with upstream's names, sections, keys and defaults.

use coracle_settings::{Format, Omission, Program, Section, Setting, Treatment, Unknown};

use super::options::Options;
use crate::settings::{
    HIDDEN_METRICS, LOGGING, METRICS, PROFILING, SERVING, VERSIONS, authentication, authorization,
    burst, election, feature_gates, kubeconfig, logs, master, qps, serving,
};

pub(super) const PROGRAM: Program<Options> = Program {
    name: "kube-scheduler",
    about: "Runs the Kubernetes scheduler, which assigns pods to nodes.",
    sections: &[
        section("misc", &[CONFIG, master(), WRITE_CONFIG]),
        section("secure serving", &serving("10259", PORT, "")),
        section("authentication", &authentication("true")),
        section("authorization", &authorization()),
        section("deprecated", DEPRECATED),
        section("leader election", &election("kube-scheduler")),
        section("feature gate", &feature_gates()),
        section("logs", &logs()),
        section("", FILE),
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
    format: Format::Kind {
        api_version: "kubescheduler.config.k8s.io/v1",
        kind: "KubeSchedulerConfiguration",
        unknown: Unknown::Error,
    },
};

const PORT: &str = "Port to listen on, with TLS; 0: none";

type S = Setting<Options>;

const fn section(name: &'static str, settings: &'static [S]) -> Section<Options> {
    Section { name, settings }
}

const CONFIG: S = S::new(
    "config",
    "",
    "File with a KubeSchedulerConfiguration",
    |options| &mut options.config,
);

const WRITE_CONFIG: S = S::new(
    "write-config-to",
    "",
    "Write the configuration to this file, and exit",
    |options| &mut options.write_config_to,
);

const DEPRECATED: &[S] = &[
    kubeconfig().yields_to_file(),
    qps("50").yields_to_file(),
    burst("100").yields_to_file(),
    S::new(
        "pod-max-in-unschedulable-pods-duration",
        "5m0s",
        "Time after which an unschedulable pod is tried again without an event",
        |options| &mut options.unschedulable_for,
    ),
];

/// Settings without a flag.
const FILE: &[S] = &[
    S::new(
        "",
        "16",
        "Accepted and validated; a scheduling cycle uses one thread",
        |options| &mut options.parallelism,
    )
    .key("parallelism"),
    S::new(
        "",
        "0",
        "Percentage of feasible nodes after which no more are searched; 0: depends on the size of the cluster",
        |options| &mut options.percentage_of_nodes_to_score,
    )
    .key("percentageOfNodesToScore"),
    S::new(
        "",
        "1",
        "First backoff of a pod that could not be scheduled",
        |options| &mut options.initial_backoff_seconds,
    )
    .key("podInitialBackoffSeconds"),
    S::new(
        "",
        "10",
        "Maximum backoff of a pod that could not be scheduled",
        |options| &mut options.max_backoff_seconds,
    )
    .key("podMaxBackoffSeconds"),
    S::new(
        "",
        "",
        "Profiles: names of schedulers, their plugins and the arguments of these",
        |options| &mut options.profiles,
    )
    .key("profiles"),
];

const OMISSIONS: &[Omission] = &[
    Omission {
        why: "Leases are the only lock of leader election",
        treatment: Treatment::Only(&["leases"]),
        values: &["leader-elect-resource-lock"],
        keys: &["leaderElection.resourceLock"],
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
        why: "caches are filled when the process becomes the leader",
        treatment: Treatment::Ignored,
        keys: &["delayCacheUntilActive"],
        ..Omission::NONE
    },
    Omission {
        why: "there are no scheduler extenders",
        keys: &["extenders"],
        ..Omission::NONE
    },
];
